"""The average of word vectors as an encoder, such as the GloVe averages that papers compare with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from paranmt_hf.errors import InputError
from paranmt_hf.tokens import WordTokenizer
from paranmt_hf.util.files import checksum
from paranmt_hf.vectors import WordVectors, read_vectors


class WordAverage:
    """Encodes a sentence as the mean of the vectors of those of its words that have one; zeros where none has.

    SentEval's own example of an encoder does the same; here words are the tokens of `paranmt_hf.text`, in lower case.

    Args:
        vectors: The word vectors; a vector for unknown words is not used.
        weights: Checksum of the file that they come from.
    """

    def __init__(self, vectors: WordVectors, weights: str | None = None) -> None:
        self.weights = weights
        self._matrix = vectors.matrix
        self._rows = {word: row for row, word in enumerate(vectors.words)}
        self._tokenizer = WordTokenizer()

    @classmethod
    def read(cls, path: Path, sentences: Iterable[str]) -> WordAverage:
        """Read the vectors of the words of some sentences from a file.

        Args:
            path: A text file of word vectors, see `read_vectors`.
            sentences: The sentences that will be encoded.

        Raises:
            InputError: The file cannot be read, or has none of the words.
        """
        words = set(WordTokenizer().tables(list(sentences))[0].vocabulary)
        # What is wrong with a file that is none is said first.
        read_vectors(path, limit=1)
        vectors = read_vectors(path, limit=1, wanted=words)
        if len(vectors.words) == 1 and vectors.words[0] not in words:
            raise InputError(f"--vectors {path} has none of the {len(words):,} words of the tasks; is it of English?")
        return cls(vectors, f"sha256:{checksum(path)}")

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension], float32."""
        table = self._tokenizer.tables(sentences)[0]
        row_of = np.array([self._rows.get(word, -1) for word in table.vocabulary], np.int64)
        rows = row_of[table.ids] if len(table.ids) else np.empty(0, np.int64)
        known = rows >= 0
        bounds = np.concatenate([[0], np.cumsum(known)])[table.offsets]
        shape = (len(sentences), len(self._matrix))
        counts = csr_matrix((np.ones(int(known.sum()), np.float32), rows[known], bounds), shape)
        sums = counts @ self._matrix
        return (sums / np.maximum(np.diff(bounds), 1)[:, None]).astype(np.float32)
