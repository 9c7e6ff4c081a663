"""Word n-grams hashed into buckets: the one definition, for whole columns of sentences.

Sent2Vec (Pagliardini, Gupta and Jaggi 2018, arXiv:1703.02507), section 2: a sentence is the set of its n-grams, those
of one word included. The paper leaves the hash open; it is that of the authors' program, so that models of theirs can
be read. This file needs no package but numpy, because it is also put beside the weights of models.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

# An n-gram's hash is that of the n-gram one word shorter, times this, plus the id of its last word, modulo 2**64.
FACTOR = np.uint64(116049371)
# The most words of an n-gram and the most buckets that are taken for meant.
LONGEST, MOST_BUCKETS = 20, 2**31 - 1
# With at most so many buckets the row of each is read from a table of four bytes each.
DIRECT = 2**25
# The tensor of the buckets that have a row, beside the weights.
HASHES = "ngrams.hashes"
# What the authors' program takes for the end of a word; other white space of Unicode stays inside words.
_BETWEEN = re.compile(r"[ \t\n\v\f\r\0]+")


def blank_tokens(text: str) -> list[str]:
    """Cut one text at its white space, as the authors' program does, and change nothing else."""
    return [token for token in _BETWEEN.split(text) if token]


def ngram_buckets(rows: np.ndarray, offsets: np.ndarray, order: int, buckets: int) -> tuple[np.ndarray, np.ndarray]:
    """Hash the n-grams of two words and more of every sentence; none reaches across a sentence's end.

    The hash of the words i to j begins with the id of word i; each further word turns h into h * 116049371 + id modulo
    2**64; the bucket is the hash modulo the number of buckets.

    Args:
        rows: Id of each word [word], sentence after sentence, words without an id left out.
        offsets: Bounds of the sentences [sentence + 1], from 0.
        order: Number of words of the longest n-grams.
        buckets: Number of buckets, above 0 where the order is above 1.

    Returns:
        The bucket of each n-gram [n-gram], int64, by its first word and then by its length, and the bounds of the
        sentences in them [sentence + 1], int64.
    """
    lengths = np.diff(offsets)
    order = min(order, int(lengths.max(initial=0)))
    if order < 2:
        return np.empty(0, np.int64), np.zeros(len(offsets), np.int64)
    ids = rows.astype(np.uint64)
    # Words from each one to the end of its sentence, itself included: so long is its longest n-gram.
    left = np.repeat(offsets[1:], lengths) - np.arange(len(rows))
    found = np.empty((len(rows), order - 1), np.int64)
    hashed = ids
    for size in range(2, order + 1):
        hashed = hashed[:-1] * FACTOR + ids[size - 1 :]
        found[: len(hashed), size - 2] = hashed % np.uint64(buckets)
    exists = left[:, None] >= np.arange(2, order + 1)
    ends = np.concatenate([[0], np.cumsum(np.minimum(left, order) - 1)])
    return found[exists], ends[offsets]


def known_rows(rows: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Leave out the units without a row of their own, which are at row 0.

    Args:
        rows: Row of each unit [unit], sentence after sentence.
        offsets: Bounds of the sentences [sentence + 1], from 0.

    Returns:
        What is left, in the same form.
    """
    known = rows != 0
    return rows[known], np.concatenate([[0], np.cumsum(known)])[offsets]


@dataclass(frozen=True, eq=False)
class NgramTable:
    """Which n-grams have a row, behind the rows of the words.

    Attributes:
        order: Number of words of the longest n-grams; 1 where there are only words.
        buckets: Number of buckets.
        hashes: The buckets that have a row [row], int64, ascending.
        first: Row of the first of them.

    Raises:
        ValueError: The numbers do not fit together.
    """

    order: int
    buckets: int
    hashes: np.ndarray
    first: int

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("order", self.order, 1, LONGEST),
            ("buckets", self.buckets, int(self.order > 1), MOST_BUCKETS),
        ):
            if type(value) is not int or not least <= value <= most:
                raise ValueError(f"{name} must be a whole number from {least} to {most}, was {value!r}")
        hashes = self.hashes
        if hashes.dtype != np.int64 or hashes.ndim != 1:
            raise ValueError(f"hashes must be one row of int64, was {hashes.dtype} of {hashes.ndim} dimensions")
        if len(hashes) and (hashes[0] < 0 or hashes[-1] >= self.buckets or not (np.diff(hashes) > 0).all()):
            raise ValueError(f"hashes must ascend from 0 on and stay below {self.buckets} buckets")
        if len(hashes) and self.order == 1:
            raise ValueError(f"{len(hashes)} buckets of n-grams need an order above 1")

    @cached_property
    def _row_of(self) -> np.ndarray:
        """Row of each bucket [bucket], int32, 0 where it has none."""
        rows = np.zeros(self.buckets, np.int32)
        rows[self.hashes] = np.arange(self.first, self.first + len(self.hashes), dtype=np.int32)
        return rows

    def look_up(self, buckets: np.ndarray) -> np.ndarray:
        """Find the row of each bucket [bucket], int32; 0 where it has none."""
        if len(self.hashes) == self.buckets:
            return (buckets + self.first).astype(np.int32)
        if self.buckets <= DIRECT:
            return self._row_of[buckets]
        if not len(self.hashes):
            return np.zeros(len(buckets), np.int32)
        found = np.minimum(np.searchsorted(self.hashes, buckets), len(self.hashes) - 1)
        return np.where(self.hashes[found] == buckets, found + self.first, 0).astype(np.int32)

    def rows(self, rows: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Find the rows of the n-grams of every sentence; those without a row are left out.

        Args:
            rows: Row of each known word [word], sentence after sentence.
            offsets: Bounds of the sentences [sentence + 1], from 0.

        Returns:
            Rows [n-gram], int32, and the bounds of the sentences in them [sentence + 1].
        """
        buckets, bounds = ngram_buckets(rows, offsets, self.order, self.buckets)
        return known_rows(self.look_up(buckets), bounds)

    def bags(self, rows: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Find the rows whose mean is the vector of each sentence: its known words, and then its n-grams.

        Args:
            rows: Row of each word [word], sentence after sentence, 0 where it is unknown.
            offsets: Bounds of the sentences [sentence + 1], from 0.

        Returns:
            Rows [unit], int32, and the bounds of the sentences in them [sentence + 1], int64.
        """
        words, ends = known_rows(rows, offsets)
        ngrams, bounds = self.rows(words, ends)
        joined = np.empty(len(words) + len(ngrams), np.int32)
        # The words of a sentence come behind the n-grams of those before it, its n-grams behind its own words too.
        joined[np.arange(len(words)) + np.repeat(bounds[:-1], np.diff(ends))] = words
        joined[np.arange(len(ngrams)) + np.repeat(ends[1:], np.diff(bounds))] = ngrams
        return joined, ends + bounds
