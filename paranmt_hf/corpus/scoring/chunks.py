"""Sentences split at blanks, each chunk with marks that say what it may be a part of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.scoring.items import Lists

# Marks of a chunk: of numbers, of negations, of names, and of addresses.
NUMBER, SCALE, AND, PER, CENT, HALF_DAY, HALF, A, PART = (1 << bit for bit in range(9))
NEGATES, CONFIRMS, IS_NOT, IS_NO, TAKES_NOT, TAKES_NO, IS_OR, NEGATIVE, DEGREE, TURNS = (1 << b for b in range(9, 19))
CAPITAL, LETTERS, ENDS, OPENS, TAIL, PLAIN = (1 << bit for bit in range(19, 25))
ADDRESS = 1 << 25


@dataclass(frozen=True)
class Chunks:
    """Sentences split at blanks."""

    texts: pa.DictionaryArray  # The chunks [chunk], sentence after sentence, as a dictionary column
    bounds: np.ndarray  # Bounds [sentence + 1]: sentence `i` has the chunks from `bounds[i]` to `bounds[i + 1]`
    flags: np.ndarray  # Bits for numbers, negations, names and addresses of each chunk [chunk]
    keys: Lists  # Keys of names that each chunk confirms [chunk]

    def has(self, *bits: int) -> np.ndarray:
        """Mark the chunks [chunk] with any of some flags."""
        return self.flags & sum(bits) != 0

    @property
    def begins(self) -> np.ndarray:
        """Mark the chunks [chunk] that are the first of a sentence."""
        marks = np.zeros(len(self.flags) + 1, bool)
        marks[self.bounds[:-1]] = True
        return marks[:-1]

    def before(self, marks: np.ndarray) -> np.ndarray:
        """Mark the chunks [chunk] whose neighbour on the left, in the same sentence, is marked."""
        moved = np.zeros_like(marks)
        moved[1:] = marks[:-1]
        return moved & ~self.begins

    def after(self, marks: np.ndarray) -> np.ndarray:
        """Mark the chunks [chunk] whose neighbour on the right, in the same sentence, is marked."""
        moved = np.zeros_like(marks)
        moved[:-1] = (marks & ~self.begins)[1:]
        return moved

    def count(self, marks: np.ndarray) -> np.ndarray:
        """Count the marked chunks of each sentence [sentence]."""
        sums = np.concatenate([[0], np.cumsum(marks)])
        return sums[self.bounds[1:]] - sums[self.bounds[:-1]]

    def runs(self, inside: np.ndarray, breaks: np.ndarray, special: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        """Join neighbouring chunks that are `inside` [chunk] into runs [run], with blanks between them.

        A chunk that `breaks` begins a new run though its left neighbour is in one; a `special` chunk gets a blank
        before the run that it begins. Also returns the bounds of each sentence in the runs [sentence + 1].
        """
        chosen = np.flatnonzero(inside)
        starts = inside & (breaks | ~self.before(inside))
        first = np.flatnonzero(starts[chosen])
        texts = self.texts.take(pa.array(chosen)).dictionary_decode()
        lists = pa.ListArray.from_arrays(pa.array(np.append(first, len(chosen)), pa.int32()), texts)
        joined = pc.binary_join(lists, " ")
        marked = pa.array(np.where(special[chosen[first]], " ", ""), pa.string())
        joined = pc.binary_join_element_wise(marked, joined, "")
        return joined, np.concatenate([[0], np.cumsum(starts)])[self.bounds]
