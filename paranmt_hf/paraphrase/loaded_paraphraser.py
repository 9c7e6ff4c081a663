"""Loads a paraphraser of either kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paranmt_hf.corpus.parsing.parsers import Parser, SentenceTrees, open_parser
from paranmt_hf.corpus.parsing.tree_file import IndexedFile, TreeFile
from paranmt_hf.hub.repository import locate
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.control import PARSER
from paranmt_hf.paraphrase.paraphraser import Paraphraser, check_names
from paranmt_hf.paraphrase.syntax.kind import is_controlled, warn_of_other_trees
from paranmt_hf.paraphrase.syntax.paraphraser import ControlledParaphraser


def load_paraphraser(
    model: str | Path,
    *,
    revision: str | None = None,
    parser: str | Path | Parser = PARSER,
    **settings: Any,  # noqa: ANN401
) -> Paraphraser:
    """Load a paraphraser.

    Args:
        model: Folder or Hub id.
        revision: Branch, tag or commit on the Hub.
        parser: For a syntactically controlled network, what gives the trees of sentences: `link-grammar`, `stanza`, a
            file of trees or a parser of your own; that whose trees it was trained on.
        settings: Fields of `ParaphraseConfig`.

    Returns:
        A `Paraphraser`; of a syntactically controlled network a `ControlledParaphraser`, which takes `templates` too.

    Raises:
        InputError: There is no such model, or it is of another kind or damaged; the parser is not installed.
    """
    check_names(settings)
    files, config = locate(model, revision), ParaphraseConfig(**settings)
    if not is_controlled(files):
        return Paraphraser(files, config)
    opened = open_parser(parser)
    warn_of_other_trees(files, opened.name)
    # Calls have other sentences, for each of which the file would be read anew.
    syntax = SentenceTrees(IndexedFile(opened) if isinstance(opened, TreeFile) else opened)
    return ControlledParaphraser(files, config, syntax=syntax)
