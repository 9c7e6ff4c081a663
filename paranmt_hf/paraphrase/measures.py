"""Measure paraphrases (meaning, distance to the input, distance to references) and normalised sentences."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.baselines import Meteor
from paranmt_hf.evaluation.results import Results, Row
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.meaning.mismatch_columns import MismatchReader
from paranmt_hf.text.definitions import words
from paranmt_hf.util.optional import require

COPIED, REFERENCE, NOISY = "copied input", "first reference", "noisy input"


@dataclass(frozen=True)
class EvaluationItems:
    """The sentences that are paraphrased in an evaluation, with their references.

    To measure normalisation, the sentences are all noisy sentences, and then all clean ones in the same order. Each
    has one reference, the clean sentence.

    Attributes:
        name: Name of the data.
        sources: The sentences [item].
        references: Reference paraphrases of each sentence [item][reference]; none if they are not known.
        noise: Number of sentences that noise did not change, and of changes of each kind; empty without added noise.
    """

    name: str
    sources: list[str]
    references: list[list[str]]
    noise: dict[str, Any] = field(default_factory=dict)

    @property
    def checksum(self) -> str:
        """SHA-256 of all sentences and references, in hexadecimal."""
        rows = ["\t".join([source, *own]) for source, own in zip(self.sources, self.references, strict=True)]
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()


class ParaphraseMeasures:
    """The measures of paraphrases.

    All measures except `among_bleu` and `outputs` are about the first output of each sentence:

    - `bleu`: corpus BLEU against the references, 0 to 100; a sentence without output counts as an empty one.
    - `meteor`: mean METEOR against the nearest reference, in [0, 1]; a sentence without output counts as 0.
    - `self_bleu`: corpus BLEU of the outputs against their inputs, 0 to 100; copies have 100.
    - `among_bleu`: corpus BLEU of each output against the other outputs of its sentence, 0 to 100 (self-BLEU of
      Zhu et al. 2018). The lower it is, the more diverse are the outputs. It needs a sentence with two outputs.
    - `score`: mean paraphrase score of output and input, in [-1, 1].
    - `number`, `negation`, `name` and so on: shares of the outputs that differ from their input in a number, a
      negation, a name or an address.
    - `copies`: share of the outputs with the words of their input, case and white space aside.
    - `length_ratio`: number of words of all outputs, divided by that of their inputs.
    - `without`: number of sentences without output; all measures but `bleu`, `meteor` and `outputs` leave them out.
    - `outputs`: mean number of outputs of a sentence.

    `bleu` and `meteor` need references.
    """

    kind = "paraphrases"
    note = (
        "BLEU and METEOR against the references, self-BLEU against the input, BLEU among the outputs of a sentence; "
        "numbers, negation, names, addresses: % of the paraphrases that differ in one from their input."
    )

    def __init__(self, scorer: NamedEncoder) -> None:
        self._scorer = scorer.load()
        self._mismatches = MismatchReader()
        self._meteor = Meteor()
        self.settings = {
            "bleu": "sacrebleu, corpus, 13a tokens, mixed case, exponential smoothing",
            "meteor": f"nltk, stages {', '.join(self._meteor.stages)}",
            "scorer": scorer.identity,
        }

    def rows(self, name: str, items: EvaluationItems, outputs: Sequence[Sequence[str]]) -> list[Row]:
        """Return the row of scores of a decoding or file; `outputs` are [item][output], the best first."""
        return [Row(name=name, items=len(outputs), values=self.figures(items.sources, outputs, items.references))]

    def baselines(self, items: EvaluationItems) -> list[Row]:
        """Return rows of scores for comparison: of copies of the input, and of the references if there are any."""
        rows = self.rows(COPIED, items, [[source] for source in items.sources])
        if all(items.references):
            values = self.figures(items.sources, items.references)
            rows.append(Row(name=REFERENCE, items=len(items.sources), values=values))
        return rows

    def figures(
        self, sources: Sequence[str], outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]] = ()
    ) -> dict[str, float]:
        """Compute all measures of outputs.

        Args:
            sources: The input sentences [item].
            outputs: Outputs of each sentence, the best first [item][output].
            references: References of each sentence [item][reference]; without them, `bleu` and `meteor` are left out.

        Raises:
            InputError: No sentence has an output.
        """
        with_output = [(source, texts[0]) for source, texts in zip(sources, outputs, strict=True) if texts]
        if not with_output:
            raise InputError(f"none of {len(outputs):,} sentences has a paraphrase; nothing to measure")
        inputs, best = map(list, zip(*with_output, strict=True))
        figures: dict[str, float] = {}
        if references and all(references):
            every = [texts[0] if texts else "" for texts in outputs]
            figures["bleu"] = corpus_bleu(every, references)
            figures["meteor"] = float(np.mean([self._nearest(*each) for each in zip(every, references, strict=True)]))
        figures["self_bleu"] = corpus_bleu(best, [[source] for source in inputs])
        if any(len(texts) > 1 for texts in outputs):
            figures["among_bleu"] = _bleu_among(outputs)
        figures["score"] = float(pair_similarities(self._scorer, inputs, best, "paraphrases").values.mean())
        input_words = [words(source) for source in inputs]
        output_words = [words(text) for text in best]
        figures["copies"] = float(
            np.mean([one == other for one, other in zip(input_words, output_words, strict=True)])
        )
        figures["length_ratio"] = sum(map(len, output_words)) / max(1, sum(map(len, input_words)))
        figures["without"] = len(outputs) - len(best)
        figures["outputs"] = float(np.mean([len(texts) for texts in outputs]))
        mismatches = self._mismatches.columns(pa.array(inputs, pa.string()), pa.array(best, pa.string()))
        for name, counts in mismatches.items():
            figures[name.removesuffix("_mismatch")] = float(np.mean(counts.to_numpy() > 0))
        return figures

    def _nearest(self, text: str, references: Sequence[str]) -> float:
        """Return the METEOR of a text against the nearest reference; 0 for a text without words."""
        hypothesis = words(text)
        return max(self._meteor.one_direction(hypothesis, words(each)) for each in references) if hypothesis else 0.0


class NormalisationMeasures:
    """The measures of normalisation: how close the outputs of noisy sentences are to the clean sentences.

    ParaNMT-50M, section 6, table 11, shows examples. Here the clean sentence is known, so the distance to it is
    measured before and after. A sentence without output counts as its own output.
    """

    kind = "canonical"
    note = "Edits for each 100 characters or words of the clean sentence."
    settings: Mapping[str, Any] = {}

    def rows(self, name: str, items: EvaluationItems, outputs: Sequence[Sequence[str]]) -> list[Row]:
        """Return a row of scores for the outputs of noisy sentences, and a row for the outputs of clean sentences.

        `improved` and `worse` are the shares of the noisy sentences whose output needs fewer, or more, character edits
        to become the clean sentence than the noisy sentence does.
        """
        made = [texts[0] if texts else source for texts, source in zip(outputs, items.sources, strict=True)]
        count = len(made) // 2
        noisy, clean = items.sources[:count], items.sources[count:]
        before = np.array([edit_distance(*pair) for pair in zip(noisy, clean, strict=True)])
        after = np.array([edit_distance(*pair) for pair in zip(made[:count], clean, strict=True)])
        changes = {"improved": float(np.mean(after < before)), "worse": float(np.mean(after > before))}
        return [
            Row(name=name, items=count, values=closeness(made[:count], clean) | changes),
            Row(name=f"{name}, clean input", items=count, values=closeness(made[count:], clean)),
        ]

    def baselines(self, items: EvaluationItems) -> list[Row]:
        """Return the row of scores of the noisy sentences themselves, for comparison."""
        count = len(items.sources) // 2
        return [Row(name=NOISY, items=count, values=closeness(items.sources[:count], items.sources[count:]))]


Measures = ParaphraseMeasures | NormalisationMeasures


def noisy_examples(results: Results, count: int) -> list[tuple[str, str, str]]:
    """Return the first `count` noisy sentences of an evaluation, each with its output and the clean sentence.

    Outputs are those of the first decoding; a sentence without output is its own output.
    """
    found = []
    for each in results.examples[:count]:
        outputs = next(iter(each["outputs"].values()))
        found.append((each["source"], outputs[0] if outputs else each["source"], each["references"][0]))
    return found


def corpus_bleu(sentences: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Compute the corpus BLEU of sentences with one or more references each [sentence][reference], from 0 to 100."""
    sacrebleu: Any = require("sacrebleu", "evaluate")
    streams = []
    # sacrebleu takes a list of the first references of all sentences, a list of the second ones, and so on, with None
    # for a sentence that has no such reference.
    for place in range(max(map(len, references))):
        streams.append([own[place] if place < len(own) else None for own in references])
    # `force` silences a warning about tokenised sentences.
    return float(sacrebleu.BLEU(force=True).corpus_score(list(sentences), streams).score)


def _bleu_among(outputs: Sequence[Sequence[str]]) -> float:
    """Compute corpus BLEU of each output against the other outputs of its sentence, without single outputs."""
    texts, others = [], []
    for own in outputs:
        for place, text in enumerate(own):
            if len(own) > 1:
                texts.append(text)
                others.append([*own[:place], *own[place + 1 :]])
    return corpus_bleu(texts, others)


def closeness(sentences: Sequence[str], clean: Sequence[str]) -> dict[str, float]:
    """Measure how close sentences are to the clean sentences with the same index.

    Returns:
        `character_edits`, for 100 characters of the clean sentences; `word_edits`, for 100 words of them, separated by
        white space; `bleu`, the corpus BLEU from 0 to 100; and `equal`, the share of sentences that are clean.
    """
    characters = word_edits = equal = 0
    for sentence, wanted in zip(sentences, clean, strict=True):
        characters += edit_distance(sentence, wanted)
        word_edits += edit_distance(sentence.split(), wanted.split())
        equal += sentence == wanted
    return {
        "character_edits": 100 * characters / sum(map(len, clean)),
        "word_edits": 100 * word_edits / sum(len(each.split()) for each in clean),
        "bleu": corpus_bleu(sentences, [[each] for each in clean]),
        "equal": equal / len(clean),
    }


def edit_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return the smallest number of insertions, deletions and replacements that turn one sequence into the other.

    This is the distance of Levenshtein (1966). Neighbours in a column of its table differ by +1, 0 or -1. A column is
    kept as these differences, in the bits of two numbers. Each item of `second` then costs a few operations on whole
    columns (Hyyrö 2003).

    >>> edit_distance("kitten", "sitting"), edit_distance("a b c".split(), "a c".split())
    (3, 1)
    """
    if not first:
        return len(second)
    places: dict[Hashable, int] = {}
    for place, item in enumerate(first):
        places[item] = places.get(item, 0) | 1 << place
    column = (1 << len(first)) - 1
    last = 1 << len(first) - 1
    up, down, distance = column, 0, len(first)
    for item in second:
        equal = places.get(item, 0)
        diagonal = ((equal & up) + up ^ up) | equal | down
        rises, falls = down | ~(diagonal | up) & column, diagonal & up
        distance += bool(rises & last) - bool(falls & last)
        rises, falls = rises << 1 | 1, falls << 1
        up, down = (falls | ~(diagonal | rises)) & column, rises & diagonal & column
    return distance
