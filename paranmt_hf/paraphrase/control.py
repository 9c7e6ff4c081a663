"""How far templates control the paraphrases of a syntactically controlled network."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
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
# Held-out sentences that are paraphrased, and the number of templates that each is asked for.
SENTENCES, TEMPLATES = 100, 5


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
    # A copy is right where the sentence has the template already.
    config = ParaphraseConfig(device="cpu", keep_copies=True)
    paraphraser = Paraphraser(locate(folder), config, scorer=None, syntax=known, templates=TEMPLATES)
    sentences = list(known.of)
    found = paraphraser(sentences)
    made = [(sentence, each) for sentence, own in zip(sentences, found, strict=True) for each in own]
    if not made:
        return None
    match = _have_templates([each for _, each in made], parser)
    # Whether the template is not that of the sentence.
    other = np.array([template_of(known.of[sentence]) != each.template for sentence, each in made])
    return ControlFigures(
        paraphrases=len(made),
        distinct=sum(len({each.text for each in own}) for own in found) / len(made),
        template_match=None if match is None else float(match.mean()),
        other_template_match=None if match is None or not other.any() else float(match[other].mean()),
    )


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
