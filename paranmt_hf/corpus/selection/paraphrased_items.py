"""Finds rows that paraphrase evaluation sentences (items), by the cosine of an encoder and by checks of the texts.

The checks are of numbers, negation, names and lengths.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.evaluation_sets import EvaluationSentences
from paranmt_hf.corpus.selection.decontamination import MIN_WORDS, is_word, long_enough
from paranmt_hf.corpus.selection.filters import Filter, Verdict
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.meaning.mismatch_columns import DEFINITION, MismatchReader
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.word_rules import word_tokenizer_for

# These values come from pairs that the benchmark does not use (benchmarks/decontamination.py --tune).
ITEM_SIMILARITY = 0.6  # Smallest score of a paraphrase
COUNTED = ("number_mismatch", "negation_mismatch", "name_mismatch")
MISMATCH = 0.04  # Penalty for each of the columns `COUNTED` that is not 0
LENGTH = 0.1  # Penalty if one text is empty; for texts of nearly equal length it is nearly 0


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors [text, dimension] to length 1; zero vectors stay as they are."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


class ItemMeanings:
    """The items of evaluation sets by their meaning, which can be searched for in text.

    The score of a text and an item is the cosine of their vectors, less `penalties`. Items of fewer than `MIN_WORDS`
    words are not looked for.

    Args:
        found: The evaluation sentences and the files they are from.
        encoder: The encoder of the vectors.
        similarity: Smallest score of a paraphrase.
        language: Language of the text (ISO 639-1).

    Attributes:
        items: The items that are looked for.
        sets: The file that each item is from.
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
        # The rules of mismatches are for English only.
        self._mismatches = MismatchReader(COUNTED) if language == ENGLISH else None

    @cached_property
    def _loaded(self) -> tuple[Encoder, np.ndarray]:
        """The encoder, and the unit vectors of all items [item, dimension]."""
        encoder = self._encoder.load()
        return encoder, unit_vectors(np.asarray(encoder.encode(self.items), np.float32))

    def nearest(self, texts: pa.Array, *, slack: float = 0, at_once: int = 2_048) -> tuple[np.ndarray, np.ndarray]:
        """Find for each text the item with the largest score, the first of equal ones.

        Args:
            texts: The texts [text].
            slack: Scores count that are at least the threshold less this.
            at_once: Number of texts that are compared with all items at once.

        Returns:
            Scores [text], float32, and indices of items [text]; minus infinity and -1 if no score is large enough.
        """
        scores = np.full(len(texts), -np.inf, np.float32)
        items = np.full(len(texts), -1)
        for start in range(0, len(texts), at_once):
            block = slice(start, start + at_once)
            self._find(texts.slice(start, at_once), self.similarity - slack, scores[block], items[block])
        return scores, items

    def _find(self, texts: pa.Array, least: float, scores: np.ndarray, items: np.ndarray) -> None:
        """Fill in the scores and items of some texts.

        Args:
            texts: The texts [text].
            least: Smallest score that counts.
            scores: Scores [text], which are filled in.
            items: Indices of items [text], which are filled in.
        """
        encoder, vectors = self._loaded
        cosines = unit_vectors(np.asarray(encoder.encode(texts.to_pylist()), np.float32)) @ vectors.T
        # No score is larger than its cosine. Most texts are like no item, which their largest cosine shows fast.
        close = np.flatnonzero(cosines.max(axis=1) >= least)
        index_in_close, near = np.nonzero(cosines[close] >= least)
        rows = close[index_in_close]
        lost = penalties(texts.take(pa.array(rows)), self._texts.take(pa.array(near)), self._mismatches)
        pair_scores = cosines[rows, near] - lost
        # The best pair of each text is the last one, so it is what stays in the arrays.
        order = np.lexsort((-near, pair_scores, rows))
        order = order[pair_scores[order] >= least]
        scores[rows[order]] = pair_scores[order]
        items[rows[order]] = near[order]


def penalties(texts: pa.Array, items: pa.Array, reader: MismatchReader | None) -> np.ndarray:
    """Return what is subtracted from the cosine of each text and item [pair], float32.

    It is `MISMATCH` for each kind of mismatch, and `LENGTH` times the share of the characters of the longer text that
    the shorter one lacks.

    Args:
        texts: The texts [pair].
        items: The items [pair].
        reader: Finds mismatches; None to count lengths only.
    """
    lengths = [pc.utf8_length(side).to_numpy() for side in (texts, items)]
    lost = LENGTH * (1 - np.minimum(*lengths) / np.maximum(np.maximum(*lengths), 1))
    if reader is not None and len(texts):
        counts = reader.columns(items, texts).values()
        lost += MISMATCH * np.sum([count.to_numpy() > 0 for count in counts], axis=0)
    return lost.astype(np.float32)


class NotParaphrased(Filter):
    """Drops rows with a side that is a paraphrase of an evaluation sentence.

    Args:
        found: The evaluation sentences and the files they are from.
        encoder: The encoder that finds paraphrases.
        similarity: Smallest score of a paraphrase.
        language: Language of the rows (ISO 639-1).
    """

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
        # These rows are in other batches than before, which changes scores by less than the slack.
        _, items = self._nearest(table, slack=1e-3)
        return [(self._meanings.items[item], self._meanings.sets[item]) for item in items.tolist()]

    def _nearest(self, table: pa.Table, *, slack: float = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return score and item of the side of each row with the larger score, the first of equal ones [row]."""
        sides = [table[name].combine_chunks() for name in self.columns]
        texts = pa.concat_arrays(sides).dictionary_encode()
        text_of = texts.indices.to_numpy().reshape(2, -1)
        scores, items = self._meanings.nearest(texts.dictionary, slack=slack)
        better = scores[text_of].argmax(axis=0)
        chosen = text_of[better, np.arange(len(table))]
        return scores[chosen], items[chosen]
