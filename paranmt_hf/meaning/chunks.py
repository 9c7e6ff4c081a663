"""Sentences cut at blanks into chunks, with flags that say what each chunk may be a part of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.meaning.items import Lists

# Flags of a chunk for numbers (see `number_bits`), negations (`negation_bits`), names (`name_bits`) and addresses.
NUMBER, SCALE, AND, PER, CENT, HALF_DAY, HALF, A, PART = (1 << bit for bit in range(9))
NEGATES, CONFIRMS, IS_NOT, IS_NO, TAKES_NOT, TAKES_NO, IS_OR, NEGATIVE, DEGREE, TURNS = (1 << b for b in range(9, 19))
CAPITAL, LETTERS, ENDS, OPENS, TAIL, PLAIN = (1 << bit for bit in range(19, 25))
ADDRESS = 1 << 25


@dataclass(frozen=True)
class Chunks:
    """Sentences cut at blanks."""

    texts: pa.DictionaryArray  # The chunks [chunk] of all sentences, one sentence after the other
    bounds: np.ndarray  # Sentence `i` has the chunks from `bounds[i]` up to `bounds[i + 1]` [sentence + 1]
    flags: np.ndarray  # Flags of each chunk [chunk], as bits
    keys: Lists  # Numbers of the keys of names that each chunk confirms [chunk]

    def has(self, *bits: int) -> np.ndarray:
        """Mark the chunks [chunk] that have any of some flags."""
        return self.flags & sum(bits) != 0

    @property
    def begins(self) -> np.ndarray:
        """A mask of the chunks [chunk] that are the first of their sentence."""
        marks = np.zeros(len(self.flags) + 1, bool)
        marks[self.bounds[:-1]] = True
        return marks[:-1]

    def before(self, marks: np.ndarray) -> np.ndarray:
        """Mark the chunks [chunk] whose left neighbour, in the same sentence, is marked."""
        moved = np.zeros_like(marks)
        moved[1:] = marks[:-1]
        return moved & ~self.begins

    def after(self, marks: np.ndarray) -> np.ndarray:
        """Mark the chunks [chunk] whose right neighbour, in the same sentence, is marked."""
        moved = np.zeros_like(marks)
        moved[:-1] = (marks & ~self.begins)[1:]
        return moved

    def count(self, marks: np.ndarray) -> np.ndarray:
        """Count the marked chunks in each sentence [sentence]."""
        sums = np.concatenate([[0], np.cumsum(marks)])
        return sums[self.bounds[1:]] - sums[self.bounds[:-1]]

    def runs(self, inside: np.ndarray, breaks: np.ndarray, special: np.ndarray) -> tuple[pa.Array, np.ndarray]:
        """Join neighbouring chunks into runs, with blanks between them.

        Args:
            inside: Mask [chunk] of the chunks that are joined.
            breaks: Mask [chunk] of those that begin a new run even if the left neighbour is joined.
            special: Mask [chunk]; a run that begins with such a chunk gets a blank before it.

        Returns:
            The runs [run], and their bounds: sentence `i` has the runs from `bounds[i]` up to `bounds[i + 1]`
            [sentence + 1].
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
