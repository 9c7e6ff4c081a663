"""Read and choose the templates that control the syntax of paraphrases."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.corpus.parsing.parsers import NAMED_PARSERS, TreeSource
from paranmt_hf.corpus.parsing.trees import read_template
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.paraphrase.record import ParaphraserRecord
from paranmt_hf.util.files import parse_json
from paranmt_hf.util.records import from_json, read_json
from paranmt_hf.util.wording import perhaps

logger = logging.getLogger(__name__)
TEMPLATES_FILE = "templates.json"  # Templates of the training targets with their counts, the most frequent first
PARSE_GENERATOR = "parse-generator"  # Name of the folder of the parse generator, inside that of the paraphraser
# Code files that are released with the weights, by the `model_type` of `config.json`.
LSTM_TYPE, CONTROLLED_TYPE = "paranmt-lstm", "paranmt-controlled"
CODE = {
    LSTM_TYPE: ("modeling_paranmt_lstm.py",),
    CONTROLLED_TYPE: ("modeling_paranmt_controlled.py", "modeling_paranmt_lstm.py"),
}


def read_templates(folder: Path) -> dict[str, int]:
    """Read the templates of a controlled network from its folder, with their counts, the most frequent first."""
    path = folder / TEMPLATES_FILE
    values = read_json(path, "the templates of a syntactically controlled paraphraser")
    counts: dict[str, int] = from_json(dict[str, int], values, path)
    if not counts:
        raise InputError(f"{path} is damaged: it has no templates; put a whole copy in its place", path=path)
    return counts


def choose_templates(known: Mapping[str, int], wanted: Sequence[str] | int) -> list[str]:
    """Return the templates that a user asks for.

    Args:
        known: Templates of the network with their counts, the most frequent first.
        wanted: Templates such as `(S(NP)(VP))`; or a number of the most frequent ones, of which there are fewer if the
            network knows fewer. A list with a number as text counts as a number.

    Returns:
        Templates in normal form, each once.

    Raises:
        InputError: The network does not know a template, or nothing is asked for.
    """
    if not isinstance(wanted, int | str) and len(wanted) == 1 and wanted[0].isdecimal():
        # The command line gives a number as text; templates are never numbers.
        wanted = int(wanted[0])
    if isinstance(wanted, str) or not wanted or (isinstance(wanted, int) and wanted < 1):
        raise InputError(
            f"expected a list of templates such as (S(NP)(VP)), or a number of at least 1, got {wanted!r}",
            option="templates",
        )
    if isinstance(wanted, int):
        if wanted > len(known):
            logger.warning(f"the model knows {len(known):,} templates, fewer than {wanted:,}; all are taken")
        return list(known)[:wanted]
    found = list(dict.fromkeys(read_template(template) for template in wanted))
    for template in found:
        if template not in known:
            # A similar template is looked for among frequent ones only, which is fast.
            frequent = list(known)[:5000]
            raise InputError(
                f"the template {template} is in none of the sentences that the model was trained on; the most "
                f"frequent ones are {', '.join(frequent[:3])}{perhaps(template, frequent)}",
                option="templates",
            )
    return found


def is_controlled(files: Model) -> bool:
    """Return whether a model is a syntactically controlled network, by its configuration and without torch."""
    return _values(files.folder / "config.json").get("model_type") == CONTROLLED_TYPE


def _values(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file; empty if it is missing or damaged, which loading the model reports."""
    try:
        values = parse_json(path.read_text(encoding="utf8"))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def check_control(files: Model, *, templates: bool) -> None:
    """Raise `InputError` for templates without a controlled network, or a controlled network without templates.

    `templates` says whether templates are given.
    """
    controlled = is_controlled(files)
    if templates and not controlled:
        raise InputError(
            f"{files.folder} is not syntactically controlled, so it has no templates; leave these out, or use a model "
            "trained with `paranmt paraphrase train --model controlled`",
            option="templates",
        )
    if controlled and not templates:
        raise InputError(
            f"{files.folder} is syntactically controlled, so it needs templates: give some to `paranmt paraphrase "
            "text`, or load it with Paraphraser.from_pretrained; other commands need another paraphraser",
            option="model",
        )


def warn_of_other_trees(files: Model, parser: str) -> None:
    """Warn if the parser of sentences differs from that of the network's training trees.

    Files of trees do not name their parser, so there is no warning about them.
    """
    inputs = _values(files.folder / ParaphraserRecord.FILE).get("inputs")
    learned = str(inputs.get("parser", "")) if isinstance(inputs, dict) else ""
    for name in NAMED_PARSERS:
        others = [other for other in NAMED_PARSERS if other != name]
        if learned.startswith(name) and parser.startswith(tuple(others)):
            logger.warning(
                f"{files.name} was trained on trees of {learned} and gets those of {parser}, which look different; "
                f"use the parser {name}"
            )


@dataclass(frozen=True)
class TemplateControl:
    """What controls the paraphrases of a syntactically controlled network."""

    templates: tuple[str, ...]  # Requested templates, in normal form
    trees: TreeSource  # Where the trees of sentences come from


def control_of(
    model: str | Path, templates: Sequence[str] | int | None, parser: str | Path, index: Path
) -> TemplateControl | None:
    """Find the templates and the parser for a controlled network before the work begins.

    Args:
        model: Folder or Hub id of the network.
        templates: Templates, or the number of most frequent ones, see `choose_templates`.
        parser: Name of a parser, or a file of trees.
        index: Where `TreeSource.write_index` will index a file of trees.

    Returns:
        The control; None if `templates` is None.

    Raises:
        InputError: The model is not controlled, or a template or the parser is not known.
    """
    if templates is None:
        return None
    files = locate(model)
    check_control(files, templates=True)
    chosen = choose_templates(read_templates(files.folder), templates)
    source = TreeSource.of(parser, index)
    warn_of_other_trees(files, source.name)
    return TemplateControl(tuple(chosen), source)
