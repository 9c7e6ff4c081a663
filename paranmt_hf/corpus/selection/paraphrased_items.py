"""Rows that are paraphrases of evaluation items: the cosine of an encoder, numbers, negation, names and lengths."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.evaluation_sets import EvaluationSentences
from paranmt_hf.corpus.scoring.mismatch_columns import DEFINITION, MismatchReader
from paranmt_hf.corpus.selection.decontamination import MIN_WORDS, is_word, long_enough
from paranmt_hf.corpus.selection.filters import Filter, Verdict
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.word_rules import ENGLISH, word_tokenizer_for

# From pairs that the benchmark does not use (benchmarks/decontamination.py --tune).
ITEM_SIMILARITY = 0.6  # Smallest score of a paraphrase
COUNTED = ("number_mismatch", "negation_mismatch", "name_mismatch")
MISMATCH = 0.04  # What numbers, negation and names that do not agree take off the cosine, each
LENGTH = 0.1  # What the longer text takes off, times the share of its characters that it is longer by


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Normalise vectors [text, dimension] to length 1; vectors of zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


class ItemMeanings:
    """The items of evaluation sets by their meaning, which are searched for in text of a language (ISO 639-1 code).

    The score of a text and an item is the cosine of their vectors, less what `taken_off` computes. Items of fewer than
    `MIN_WORDS` words are not looked for.
    """

    def __init__(
        self, found: EvaluationSentences, encoder: NamedEncoder, similarity: float, language: str = ENGLISH
    ) -> None:
        self.similarity, self._encoder = similarity, encoder
        (table,) = word_tokenizer_for(language).tables(pa.array(found.texts, pa.string()))
        are_words = np.array([*map(is_word, table.vocabulary)], bool)
        words = np.concatenate([[0], np.cumsum(are_words[table.ids])])[table.offsets]
        long = long_enough(np.diff(words), MIN_WORDS).tolist()
        self.items, self.sets = [found.texts[one] for one in long], [found.sets[one] for one in long]
        self._texts = pa.array(self.items, pa.string())
        # The rules of mismatches are those of English.
        self._mismatches = MismatchReader(COUNTED) if language == ENGLISH else None

    @cached_property
    def _loaded(self) -> tuple[Encoder, np.ndarray]:
        encoder = self._encoder.load()
        return encoder, unit_vectors(np.asarray(encoder.encode(self.items), np.float32))

    def nearest(self, texts: pa.Array, *, slack: float = 0, at_once: int = 2_048) -> tuple[np.ndarray, np.ndarray]:
        """Find the item that each text [text] resembles most, the first of equal ones.

        Returns scores [text], float32, and items [text]: minus infinity and -1 if no score is at least the threshold
        less `slack`. `at_once` texts are compared with all items at once.
        """
        scores = np.full(len(texts), -np.inf, np.float32)
        items = np.full(len(texts), -1)
        for start in range(0, len(texts), at_once):
            block = slice(start, start + at_once)
            self._find(texts.slice(start, at_once), self.similarity - slack, scores[block], items[block])
        return scores, items

    def _find(self, texts: pa.Array, least: float, scores: np.ndarray, items: np.ndarray) -> None:
        """Fill in the scores and items of some texts."""
        encoder, vectors = self._loaded
        cosines = unit_vectors(np.asarray(encoder.encode(texts.to_pylist()), np.float32)) @ vectors.T
        # No score is above its cosine. Most texts are like no item, and the largest is found fast.
        close = np.flatnonzero(cosines.max(axis=1) >= least)
        places, near = np.nonzero(cosines[close] >= least)
        rows = close[places]
        off = taken_off(texts.take(pa.array(rows)), self._texts.take(pa.array(near)), self._mismatches)
        found = cosines[rows, near] - off
        # The best is written last.
        order = np.lexsort((-near, found, rows))
        order = order[found[order] >= least]
        scores[rows[order]] = found[order]
        items[rows[order]] = near[order]


def taken_off(texts: pa.Array, items: pa.Array, reader: MismatchReader | None) -> np.ndarray:
    """What is taken off the cosines of texts and items [pair], float32; without a reader for lengths alone."""
    lengths = [pc.utf8_length(side).to_numpy() for side in (texts, items)]
    off = LENGTH * (1 - np.minimum(*lengths) / np.maximum(np.maximum(*lengths), 1))
    if reader is not None and len(texts):
        counts = reader.columns(items, texts).values()
        off += MISMATCH * np.sum([count.to_numpy() > 0 for count in counts], axis=0)
    return off.astype(np.float32)


class NotParaphrased(Filter):
    """Drops rows with a side that is a paraphrase of an item of an evaluation set."""

    explains, task = True, "decontaminate"

    def __init__(
        self,
        found: EvaluationSentences,
        encoder: NamedEncoder,
        similarity: float = ITEM_SIMILARITY,
        language: str = ENGLISH,
    ) -> None:
        encoder.check_language(language)
        self._meanings = ItemMeanings(found, encoder, similarity, language)
        super().__init__(
            "paraphrased items",
            "that paraphrase an item of an evaluation set",
            ["reference", "translation"],
            "similarity",
            sentences=found.checksum,
            encoder=encoder.identity,
            similarity=similarity,
            mismatch=MISMATCH,
            mismatches=DEFINITION,
            length=LENGTH,
            min_words=MIN_WORDS,
            language=language,
        )

    def judge(self, table: pa.Table) -> Verdict:
        scores, _ = self._nearest(table)
        return Verdict(np.isneginf(scores), scores.astype(np.float64))

    def explain(self, table: pa.Table) -> list[tuple[str, str]]:
        # Products of other batches differ by less.
        _, items = self._nearest(table, slack=1e-3)
        return [(self._meanings.items[item], self._meanings.sets[item]) for item in items.tolist()]

    def _nearest(self, table: pa.Table, *, slack: float = 0) -> tuple[np.ndarray, np.ndarray]:
        """Score and item of the better side of each row, the first of equal ones."""
        sides = [table[name].combine_chunks() for name in self.columns]
        texts = pa.concat_arrays(sides).dictionary_encode()
        places = texts.indices.to_numpy().reshape(2, -1)
        scores, items = self._meanings.nearest(texts.dictionary, slack=slack)
        better = scores[places].argmax(axis=0)
        chosen = places[better, np.arange(len(table))]
        return scores[chosen], items[chosen]
