"""Templates that control the syntax of paraphrases: those of a model, and those of a request."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.corpus.parsing.parsers import NAMED_PARSERS, Parser, TreeSource, linearised_trees
from paranmt_hf.corpus.parsing.trees import read_template, template_of
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.paraphrase.record import ParaphraserRecord
from paranmt_hf.util.files import parse_json, write_bytes
from paranmt_hf.util.records import from_json, read_json
from paranmt_hf.util.wording import perhaps

logger = logging.getLogger(__name__)
TEMPLATES_FILE = "templates.json"
DEFAULT_PARSER = "link-grammar"
# The `model_type` in `config.json` of a controlled network.
CONTROLLED_TYPE = "paranmt-controlled"
LSTM_TYPE, LSTM_CODE = "paranmt-lstm", "modeling_paranmt_lstm.py"
# Files of code by `model_type`.
CODE = {LSTM_TYPE: (LSTM_CODE,), CONTROLLED_TYPE: ("modeling_paranmt_controlled.py", LSTM_CODE)}
# Maximum number of templates that are kept, the most frequent ones; long sentences have flat trees of any shape.
MAX_TEMPLATES = 100_000
# Frequent templates that an error names, and those among which it looks for a similar one.
SUGGESTIONS, SUGGESTED_FROM = 3, 5000


class KnownTemplates:
    """Templates of training sentences with their counts, most frequent first."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        self.counts: dict[str, int] = dict(order[:MAX_TEMPLATES])

    def __len__(self) -> int:
        return len(self.counts)

    def most_frequent(self, count: int) -> list[str]:
        """The `count` most frequent templates; fewer if there are fewer."""
        return list(self.counts)[:count]

    def chosen(self, wanted: Sequence[str] | int) -> list[str]:
        """Find templates written by a person, or a number of the most frequent ones."""
        wanted = template_count(wanted)
        if isinstance(wanted, int):
            if wanted < 1:
                raise InputError(f"templates must be at least 1, was {wanted}", option="templates")
            return self.most_frequent(wanted)
        found = list(dict.fromkeys(read_template(template) for template in wanted))
        if not found:
            raise InputError("expected templates, got none; name one such as (S(NP)(VP)), or give a number")
        for template in found:
            if template not in self.counts:
                frequent = self.most_frequent(SUGGESTED_FROM)
                raise InputError(
                    f"the template {template} is in none of the sentences that the model was trained on; the most "
                    f"frequent ones are {', '.join(frequent[:SUGGESTIONS])}{perhaps(template, frequent)}",
                    option="templates",
                )
        return found

    def write(self, folder: Path) -> None:
        """Write them into a folder."""
        write_bytes(folder / TEMPLATES_FILE, f"{json.dumps(self.counts, indent=0)}\n".encode())


def template_count(wanted: Sequence[str] | int) -> Sequence[str] | int:
    """Convert a single number given as text to an integer; templates are never numbers."""
    if isinstance(wanted, Sequence) and len(wanted) == 1 and wanted[0].isdecimal():
        return int(wanted[0])
    return wanted


def read_templates(folder: Path) -> KnownTemplates:
    """Read the templates of a network."""
    path = folder / TEMPLATES_FILE
    values = read_json(path, "the templates of a syntactically controlled paraphraser")
    counts: dict[str, int] = from_json(dict[str, int], values, path)
    if not counts:
        raise InputError(f"{path} is damaged: it has no templates; put a whole copy in its place", path=path)
    return KnownTemplates(counts)


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
    if templates and not is_controlled(files):
        raise InputError(
            f"{files.folder} is not syntactically controlled, so it has no templates; leave these out, or use a model "
            "trained with `paranmt paraphrase train --model controlled`",
            option="templates",
        )
    if not templates and is_controlled(files):
        raise InputError(
            f"{files.folder} is syntactically controlled, so it needs templates: give some to `paranmt paraphrase "
            "text`, or load it with Paraphraser.from_pretrained; other commands need another paraphraser"
        )


def warn_of_other_trees(files: Model, parser: str) -> None:
    """Warn if the parser of sentences differs from that of the network's training trees.

    Files of trees do not name their parser, so there is no warning about them.
    """
    inputs = _values(files.folder / ParaphraserRecord.FILE).get("inputs")
    learned = str(inputs.get("parser", "")) if isinstance(inputs, dict) else ""
    former, own = (next((name for name in NAMED_PARSERS if each.startswith(name)), None) for each in (learned, parser))
    if former and own and former != own:
        logger.warning(
            f"{files.name} was trained on trees of {learned} and gets those of {parser}, which look different; use "
            f"the parser {former}"
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
    known, templates = read_templates(files.folder), template_count(templates)
    if isinstance(templates, int) and templates > len(known):
        logger.warning(f"{files.name} knows {len(known):,} templates, fewer than {templates:,}; all are taken")
    chosen = known.chosen(templates)
    source = TreeSource.of(parser, index)
    warn_of_other_trees(files, source.name)
    return TemplateControl(tuple(chosen), source)


def having_template(parser: Parser, choices: Sequence[Sequence[str]], template: str | None) -> list[list[str]]:
    """Keep the candidates of each sentence whose tree has the template."""
    distinct = list(dict.fromkeys(choice for own in choices for choice in own))
    trees = linearised_trees(parser, distinct)
    right = {text for text, tree in zip(distinct, trees, strict=True) if tree and template_of(tree) == template}
    return [[choice for choice in own if choice in right] for own in choices]
