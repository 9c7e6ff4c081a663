"""Templates that control the syntax of paraphrases: those of a model, and those of a request."""

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
TEMPLATES_FILE = "templates.json"  # The templates of the training targets with their counts, the most frequent first
PARSE_GENERATOR = "parse-generator"  # The folder of the parse generator in that of the paraphrase generator
# Files of code that are released with the weights, by the `model_type` of `config.json`.
LSTM_TYPE, CONTROLLED_TYPE = "paranmt-lstm", "paranmt-controlled"
CODE = {
    LSTM_TYPE: ("modeling_paranmt_lstm.py",),
    CONTROLLED_TYPE: ("modeling_paranmt_controlled.py", "modeling_paranmt_lstm.py"),
}


def read_templates(folder: Path) -> dict[str, int]:
    """Read the templates of a network with their counts, the most frequent first."""
    path = folder / TEMPLATES_FILE
    values = read_json(path, "the templates of a syntactically controlled paraphraser")
    counts: dict[str, int] = from_json(dict[str, int], values, path)
    return counts


def choose_templates(known: Mapping[str, int], wanted: Sequence[str] | int) -> list[str]:
    """Find the templates that a person names, or a number of the most frequent ones (fewer if fewer are known)."""
    if not isinstance(wanted, int | str) and len(wanted) == 1 and wanted[0].isdecimal():
        # A number as typed: templates are never numbers.
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
            # A similar one is looked for among frequent ones only.
            frequent = list(known)[:5000]
            raise InputError(
                f"the template {template} is in none of the sentences that the model was trained on; the most "
                f"frequent ones are {', '.join(frequent[:3])}{perhaps(template, frequent)}",
                option="templates",
            )
    return found


def is_controlled(files: Model) -> bool:
    """Whether a folder holds a syntactically controlled network, by its configuration, without torch."""
    return _values(files.folder / "config.json").get("model_type") == CONTROLLED_TYPE


def _values(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty if it is missing or damaged, which loading reports."""
    try:
        values = parse_json(path.read_text(encoding="utf8"))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def check_control(files: Model, *, templates: bool) -> None:
    """Reject templates for a model without control, and a controlled model without templates."""
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
    """A request to a syntactically controlled network: normalised templates, and a source of trees."""

    templates: tuple[str, ...]
    trees: TreeSource


def control_of(
    model: str | Path, templates: Sequence[str] | int | None, parser: str | Path, index: Path
) -> TemplateControl | None:
    """Find templates and parser before the work; None if no templates are given.

    `parser` is the name of a parser or a file of trees, and `index` where `TreeSource.write_index` will put those.
    """
    if templates is None:
        return None
    files = locate(model)
    check_control(files, templates=True)
    chosen = choose_templates(read_templates(files.folder), templates)
    source = TreeSource.of(parser, index)
    warn_of_other_trees(files, source.name)
    return TemplateControl(tuple(chosen), source)
