"""What a syntactically controlled network is asked for: templates, and trees of the sentences."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from paranmt_hf.corpus.parsing.parsers import TreeSource
from paranmt_hf.corpus.parsing.templates import read_template
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import locate
from paranmt_hf.paraphrase.stage import Control
from paranmt_hf.paraphrase.syntax.kind import check_control, warn_of_other_trees
from paranmt_hf.paraphrase.syntax.templates import read_templates

logger = logging.getLogger(__name__)

PARSER = "link-grammar"


def control_of(
    model: str | Path, templates: Sequence[str] | int | None, parser: str | Path, index: Path
) -> Control | None:
    """Find what a syntactically controlled network is asked for, before any work.

    Args:
        model: Folder or Hub id.
        templates: Templates, or how many of the most frequent ones; None for another paraphraser.
        parser: Name of a parser, or a file of trees.
        index: Where `make_index` will put these.

    Returns:
        Templates and trees; None where there are no templates.

    Raises:
        InputError: A template is none or was never seen, the model knows none, or there is no such parser.
    """
    if templates is None:
        return None
    if isinstance(templates, int) and templates < 1:
        raise InputError(f"templates must be at least 1, was {templates}")
    files = locate(model)
    check_control(files, templates=True)
    known = read_templates(files.folder)
    if isinstance(templates, int) and templates > len(known):
        logger.warning(f"{files.name} knows {len(known):,} templates, fewer than {templates:,}; all are taken")
    chosen = known.chosen(templates, read_template)
    source = TreeSource.of(parser, index)
    warn_of_other_trees(files, source.name)
    return Control(tuple(chosen), source)


def make_index(parser: str | Path, index: Path, control: Control | None) -> None:
    """Read a file of trees once, so that workers look sentences up in it; nothing is done for other parsers."""
    if control is not None and isinstance(control.trees, TreeSource):
        control.trees.write_index(parser)
