"""Averages of word vectors as encoders: plain, weighted, and with SIF's component removed."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix

from paranmt_hf.errors import InputError
from paranmt_hf.text.tokens import TokenTable, WordTokenizer
from paranmt_hf.text.word_vectors import WordVectors


class WordAverage:
    """Encodes a sentence as the mean of the weighted vectors of those of its words that have one.

    A sentence without such a word is zeros, and words of weight 0 do not count. SentEval's own example of an encoder
    is the plain average; here words are the tokens of `paranmt_hf.text.definitions`, in lower case.

    Args:
        vectors: The word vectors; a vector for unknown words is not used.
        weights: Weight of each word [word], at least 0; all alike if left out.
        remove_component: Whether `fitted` removes the first principal component, as SIF does.
        checksum: Checksum of the file that the vectors come from.
        notes: Sentences that a reader of a result must know.
    """

    def __init__(
        self,
        vectors: WordVectors,
        weights: np.ndarray | None = None,
        *,
        remove_component: bool = False,
        checksum: str | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        weights = np.ones(len(vectors.words)) if weights is None else np.asarray(weights, np.float64)
        if weights.shape != (len(vectors.words),) or not np.isfinite(weights).all() or (weights < 0).any():
            raise InputError(
                f"expected a weight of at least 0 for each of {len(vectors.words):,} words, got the shape "
                f"{weights.shape} and values from {weights.min(initial=0):g} to {weights.max(initial=0):g}"
            )
        if not np.isfinite(vectors.matrix).all():
            word = vectors.words[int(np.argmin(np.isfinite(vectors.matrix).all(axis=1)))]
            raise InputError(f"the vector of {word!r} has a number that is not finite")
        used = np.flatnonzero(weights)
        self.checksum, self.notes = checksum, tuple(notes)
        self._matrix = (vectors.matrix[used] * weights[used, None]).astype(np.float32)
        self._rows = {vectors.words[row]: index for index, row in enumerate(used.tolist())}
        self._removes = remove_component
        self._component: np.ndarray | None = None
        self._tokenizer = WordTokenizer()

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension], float32."""
        rows, bounds = self._lookup(sentences)
        shape = (len(sentences), len(self._matrix))
        counts = csr_matrix((np.ones(len(rows), np.float32), rows, bounds), shape)
        means = (counts @ self._matrix / np.maximum(np.diff(bounds), 1)[:, None]).astype(np.float32)
        if self._component is not None:
            means -= (means @ self._component)[:, None] * self._component
        return means

    def known_tokens(self, sentences: list[str]) -> np.ndarray:
        """Count the tokens of each sentence that have a vector and a weight [sentence]."""
        return np.diff(self._lookup(sentences)[1])

    def fitted(self, sentences: list[str]) -> WordAverage:
        """Make the encoder of a data set, whose first principal component it removes if it does so at all.

        Arora et al. 2017, algorithm 1: the first right singular vector of the matrix of sentence vectors, which is
        not centred. Their program takes the first and the second sentences of pairs each by themselves; here all
        sentences of a data set are one matrix, each distinct sentence once.

        Args:
            sentences: The distinct sentences of the data set.
        """
        if not self._removes:
            return self
        other = copy.copy(self)
        other._component = None
        vectors = other.encode(sentences).astype(np.float64)
        # The eigenvector of the largest eigenvalue; eigenvalues ascend.
        other._component = np.linalg.eigh(vectors.T @ vectors)[1][:, -1].astype(np.float32)
        return other

    def _lookup(self, sentences: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the known tokens, sentence after sentence, and the bounds of each sentence [sentence + 1]."""
        table: TokenTable = self._tokenizer.tables(sentences)[0]
        row_of = np.array([self._rows.get(word, -1) for word in table.vocabulary], np.int64)
        rows = row_of[table.ids] if len(table.ids) else np.empty(0, np.int64)
        known = rows >= 0
        return rows[known], np.concatenate([[0], np.cumsum(known)])[table.offsets]
