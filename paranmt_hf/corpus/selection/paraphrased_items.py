"""Rows that are paraphrases of evaluation items: the cosine of an encoder, numbers, negation, names and lengths."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.meaning.columns import DEFINITION, MismatchReader
from paranmt_hf.corpus.selection.decontamination import MIN_WORDS
from paranmt_hf.corpus.selection.duplicates import unit_vectors
from paranmt_hf.corpus.selection.filters import Filter, Verdict
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.text.evaluation_sets import EvaluationSentences
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.word_rules import ENGLISH, word_tokenizer_for

# From pairs that the benchmark does not use (benchmarks/decontamination.py --tune).
SIMILARITY = 0.6  # Smallest score of a paraphrase
MISMATCH = 0.04  # What numbers, negation and names that do not agree take off the cosine, each
LENGTH = 0.1  # What the longer text takes off, times the share of its characters that it is longer by
ROUNDING = 1e-3  # More than products of other batches differ
_ROWS = 2_048  # Texts that are compared with all items at once
_NOTHING = -1


@dataclass(frozen=True)
class Resemblance:
    """The items that texts resemble most."""

    scores: np.ndarray  # Score with the best item [text], float32; minus infinity if none reaches the threshold
    items: np.ndarray  # Index of that item [text], the first of equal ones; -1 if there is none

    def take(self, rows: np.ndarray) -> Resemblance:
        return Resemblance(self.scores[rows], self.items[rows])

    def or_better(self, other: Resemblance) -> Resemblance:
        """Take for each text the better of two, the first of equal ones."""
        better = other.scores > self.scores
        return Resemblance(np.where(better, other.scores, self.scores), np.where(better, other.items, self.items))


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
        is_word = np.array([any(map(str.isalnum, token)) for token in table.vocabulary], bool)
        words = np.concatenate([[0], np.cumsum(is_word[table.ids])])[table.offsets]
        long = np.flatnonzero(np.diff(words) >= MIN_WORDS).tolist()
        if not long:
            raise InputError(
                f"no evaluation sentence has {MIN_WORDS} words, so nothing can be found; name folders with "
                "evaluation sets"
            )
        self.items, self.sets = [found.texts[one] for one in long], [found.sets[one] for one in long]
        self._texts = pa.array(self.items, pa.string())
        # The rules of mismatches are those of English.
        self._mismatches = MismatchReader() if language == ENGLISH else None

    @cached_property
    def _loaded(self) -> tuple[Encoder, np.ndarray]:
        encoder = self._encoder.load()
        return encoder, unit_vectors(np.asarray(encoder.encode(self.items), np.float32))

    def nearest(self, texts: pa.Array, *, slack: float = 0) -> Resemblance:
        """Find the item that each text [text] resembles most, if its score is at least the threshold less `slack`."""
        least = self.similarity - slack
        encoder, vectors = self._loaded
        parts = []
        for start in range(0, len(texts), _ROWS):
            block = texts.slice(start, _ROWS)
            cosines = unit_vectors(np.asarray(encoder.encode(block.to_pylist()), np.float32)) @ vectors.T
            # No score is above its cosine. Most texts are like no item, and the largest is found fast.
            close = np.flatnonzero(cosines.max(axis=1) >= least)
            rows, items = np.nonzero(cosines[close] >= least)
            pairs = block.take(pa.array(close[rows])), self._texts.take(pa.array(items))
            scores = cosines[close[rows], items] - taken_off(*pairs, self._mismatches)
            order = np.lexsort((items, -scores, rows))
            order = order[scores[order] >= least]
            rows, first = np.unique(close[rows[order]], return_index=True)
            best = Resemblance(np.full(len(block), -np.inf, np.float32), np.full(len(block), _NOTHING))
            best.scores[rows], best.items[rows] = scores[order[first]], items[order[first]]
            parts.append(best)
        return Resemblance(
            np.concatenate([part.scores for part in parts] or [np.empty(0, np.float32)]),
            np.concatenate([part.items for part in parts] or [np.empty(0, np.int64)]),
        )


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

    explains = True

    def __init__(
        self,
        found: EvaluationSentences,
        encoder: NamedEncoder,
        similarity: float = SIMILARITY,
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
        scores = self._resemblance(table).scores
        return Verdict(np.isneginf(scores), scores.astype(np.float64))

    def explain(self, table: pa.Table) -> list[tuple[str, str]]:
        found = self._resemblance(table, slack=ROUNDING).items.tolist()
        return [(self._meanings.items[item], self._meanings.sets[item]) for item in found]

    def _resemblance(self, table: pa.Table, *, slack: float = 0) -> Resemblance:
        """What each row resembles most with the better of its sides."""
        sides = [table[name].combine_chunks() for name in self.columns]
        texts = pa.concat_arrays(sides).dictionary_encode()
        found, where = self._meanings.nearest(texts.dictionary, slack=slack), texts.indices.to_numpy()
        return found.take(where[: len(table)]).or_better(found.take(where[len(table) :]))
