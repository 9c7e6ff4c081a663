"""Measure how far templates control the paraphrases of a syntactically controlled network."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.parsing.parsers import NAMED_PARSERS, Parser, open_parser
from paranmt_hf.corpus.parsing.trees import Tree, read_tree, template_of
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import locate
from paranmt_hf.paraphrase.candidates import have_templates
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.paraphraser import Paraphraser
from paranmt_hf.paraphrase.record import ControlFigures
from paranmt_hf.paraphrase.templates import read_templates
from paranmt_hf.paraphrase.training_data import TrainingPairs, held_out_keys

logger = logging.getLogger(__name__)


class KnownTrees:
    """A parser that looks up sentences whose linearised trees are known, and gives all others to another parser.

    Attributes:
        of: Linearised tree of each known sentence.
        others: Parser of all other sentences; None if they have no tree.
    """

    name = "known trees"

    def __init__(self, trees: dict[str, str], others: Parser | None) -> None:
        self.of, self.others = trees, others
        self.at_once = None if others is None else others.at_once

    def trees(self, sentences: Sequence[str]) -> Iterable[Tree | None]:
        """Return the tree of each sentence, looked up or parsed; None for a sentence without a tree."""
        unknown = [sentence for sentence in sentences if sentence not in self.of]
        parsed = iter(self.others.trees(unknown) if self.others is not None else [None] * len(unknown))
        return [read_tree(self.of[each]) if each in self.of else next(parsed) for each in sentences]


def installed_parser(parser: str | None) -> Parser | None:
    """Open the parser with a name that a training recorded, such as the name with a version.

    Returns None if `parser` is None, not a known parser, or not installed.
    """
    name = next((name for name in NAMED_PARSERS if (parser or "").startswith(name)), None)
    if name is None:
        return None
    try:
        return open_parser(name)
    except InputError as error:
        logger.warning(f"paraphrases are not parsed, so it is not known whether they have their templates: {error}")
        return None


def measure_control(folder: Path, text: TrainingPairs, parser: Parser | None) -> ControlFigures | None:
    """Paraphrase held-out sentences after the five most frequent templates, and measure how many have the template.

    Args:
        folder: Folder of the network, as users load it.
        text: Training pairs, some of which are held out.
        parser: The parser that made the trees of the pairs; without it fewer figures are measured.

    Returns:
        The figures; None if no sentence is held out, or no paraphrase is generated.
    """
    known = KnownTrees(held_out_trees(text), parser)
    if not known.of:
        return None
    # A copy is a right answer if the sentence has the requested template already.
    config = ParaphraseConfig(device="cpu", keep_copies=True)
    frequent = list(read_templates(folder))[:5]
    paraphraser = Paraphraser(locate(folder), config, scorer=None, syntax=known, templates=frequent)
    sentences = list(known.of)
    probable = paraphraser(sentences, has_template=False)
    made = [(sentence, each) for sentence, own in zip(sentences, probable, strict=True) for each in own]
    if not made:
        return None
    distinct = sum(len({each.text for each in own}) for own in probable) / len(made)
    figures = ControlFigures(len(made), distinct)
    if known.others is None:
        return figures
    match = have_templates(known, [each.text for _, each in made], [each.template for _, each in made])
    kept: set[tuple[str, str | None]] = set()
    for sentence, own in zip(sentences, paraphraser(sentences, keep_copies=False), strict=True):
        kept.update((sentence, each.template) for each in own)
    found = np.array([(sentence, each.template) in kept for sentence, each in made])
    figures = replace(figures, template_match=float(match.mean()), found=float(found.mean()))
    # Marks the paraphrases whose requested template is not that of their sentence.
    other = np.array([template_of(known.of[sentence]) != each.template for sentence, each in made])
    if other.any():
        figures = replace(
            figures, other_template_match=float(match[other].mean()), other_found=float(found[other].mean())
        )
    return figures


def held_out_trees(text: TrainingPairs) -> dict[str, str]:
    """Return the linearised trees of the first 100 different held-out source sentences, by sentence."""
    found: dict[str, str] = {}
    for table in text.tables("read held-out sentences"):
        held_out = table.filter(pa.array(held_out_keys(table["reference"], text.training.held_out)))
        for sentence, tree in zip(held_out["source"].to_pylist(), held_out["source_parse"].to_pylist(), strict=True):
            found.setdefault(" ".join(sentence.split()), tree)
            if len(found) == 100:
                return found
    return found
