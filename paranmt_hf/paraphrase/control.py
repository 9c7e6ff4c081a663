"""How far templates control the paraphrases of a syntactically controlled network."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.parsing.parsers import NAMED_PARSERS, open_parser, parse_sentences
from paranmt_hf.corpus.parsing.trees import Tree, linearised, read_tree, template_of
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import locate
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.paraphraser import Paraphrase, Paraphraser
from paranmt_hf.paraphrase.record import ControlFigures
from paranmt_hf.paraphrase.training_pairs import TrainingPairs, held_out_keys

logger = logging.getLogger(__name__)
# Held-out sentences that are paraphrased, the number of templates that each is asked for, and the beams of each.
SENTENCES, TEMPLATES, BEAMS = 100, 5, 8


class KnownTrees:
    """A parser of the sentences whose linearised trees are known."""

    name = "known trees"
    at_once: int | None = None

    def __init__(self, trees: dict[str, str]) -> None:
        self.of = trees

    def trees(self, sentences: Sequence[str]) -> Iterable[Tree | None]:
        """Look up the trees of sentences."""
        return [read_tree(self.of[sentence]) for sentence in sentences]


def measure_control(folder: Path, text: TrainingPairs, parser: str | None) -> ControlFigures | None:
    """Paraphrase held-out sentences after the most frequent templates; None if no sentences are held out.

    `folder` holds the network as users load it, `parser` names the parser of the trees of its pairs.
    """
    known = KnownTrees(held_out_trees(text))
    if not known.of:
        return None
    # A copy is right where the sentence has the template already. What has another template is kept, to be counted.
    config = ParaphraseConfig(device="cpu", keep_copies=True, has_template=False, beams=BEAMS, n=BEAMS)
    paraphraser = Paraphraser(locate(folder), config, scorer=None, syntax=known, templates=TEMPLATES)
    requests: list[list[Paraphrase]] = []
    distinct, other = 0, list[bool]()
    for sentence, found in zip(known.of, paraphraser(list(known.of)), strict=True):
        # Without a scorer the paraphrases of a template stay in the order of their probability.
        own = [list(group) for _, group in groupby(found, key=lambda each: each.template)]
        requests += own
        distinct += len({beams[0].text for beams in own})
        other += [template_of(known.of[sentence]) != beams[0].template for beams in own]
    if not requests:
        return None
    match = _have_templates([each for beams in requests for each in beams], parser)
    names = ("template_match", "found", "other_template_match", "other_found")
    shares: dict[str, float | None] = dict.fromkeys(names)
    if match is not None:
        ends = np.cumsum([0, *map(len, requests)])
        first, found_any = match[ends[:-1]], np.logical_or.reduceat(match, ends[:-1])
        shares |= {"template_match": float(first.mean()), "found": float(found_any.mean())}
        if any(other):
            shares["other_template_match"] = float(first[np.array(other)].mean())
            shares["other_found"] = float(found_any[np.array(other)].mean())
    return ControlFigures(paraphrases=len(requests), distinct=distinct / len(requests), **shares)


def held_out_trees(text: TrainingPairs) -> dict[str, str]:
    """Return the linearised trees of the first `SENTENCES` different held-out sources."""
    found: dict[str, str] = {}
    for table in text.tables("read held-out sentences"):
        held_out = table.filter(pa.array(held_out_keys(table["reference"], text.training.held_out)))
        for sentence, tree in zip(held_out["source"].to_pylist(), held_out["source_parse"].to_pylist(), strict=True):
            found.setdefault(" ".join(sentence.split()), tree)
            if len(found) == SENTENCES:
                return found
    return found


def _have_templates(paraphrases: Sequence[Paraphrase], parser: str | None) -> np.ndarray | None:
    """Parse paraphrases and mark those with their template [paraphrase]; None without the parser of the training."""
    name = next((name for name in NAMED_PARSERS if (parser or "").startswith(name)), None)
    if name is None:
        return None
    try:
        opened = open_parser(name)
    except InputError as error:
        logger.warning(f"paraphrases are not parsed, so it is not known whether they have their templates: {error}")
        return None
    texts = [each.text for each in paraphrases]
    templates = parse_sentences(opened, texts, lambda tree: template_of(linearised(tree)), label="parse paraphrases")
    return np.array([own == each.template for own, each in zip(templates, paraphrases, strict=True)])
