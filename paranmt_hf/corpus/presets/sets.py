"""Sets of sentences that mean the same, made into pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paranmt_hf.errors import InputError

# The pairs of a set grow with the square of its sentences; sets of TaPaCo have some, and none comes near it.
MOST_SENTENCES = 2000


class Sentences(NamedTuple):
    """Consecutive sentences and the sets they belong to.

    Attributes:
        sets: Name of the set [sentence], binary.
        text: The sentences [sentence], binary.
    """

    sets: pa.Array
    text: pa.Array


def pairs_of_sets(blocks: Iterable[Sentences], label: str) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Make a pair of every two sentences of a set, the one that stands first as its first side.

    The sentences of a set stand together. One set and one block are held at a time.

    Args:
        blocks: The sentences in order.
        label: What is read, for the error.

    Yields:
        First and second sentences [pair], binary.

    Raises:
        InputError: A set has more than `MOST_SENTENCES` sentences.
    """
    held = Sentences(pa.array([], pa.binary()), pa.array([], pa.binary()))
    for block in blocks:
        sets = pa.concat_arrays([held.sets, block.sets])
        text = pa.concat_arrays([held.text, block.text])
        if not len(sets):
            continue
        starts = _starts(sets)
        # The last set may go on in the next block.
        last = int(starts[-1])
        yield _pairs(text.slice(0, last), starts[:-1], last, label)
        held = Sentences(sets.slice(last), text.slice(last))
        if len(held.text) > MOST_SENTENCES:
            raise _too_many(label)
    if len(held.text):
        yield _pairs(held.text, np.zeros(1, np.int64), len(held.text), label)


def _starts(sets: pa.Array) -> np.ndarray:
    """Where each set begins."""
    codes = sets.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return np.append(0, np.flatnonzero(codes[1:] != codes[:-1]) + 1)


def _pairs(text: pa.Array, starts: np.ndarray, end: int, label: str) -> tuple[pa.Array, pa.Array]:
    sizes = np.diff(np.append(starts, end))
    if sizes.size and sizes.max() > MOST_SENTENCES:
        raise _too_many(label)
    rows = np.arange(end)
    # How many sentences of its set follow each one.
    following = np.repeat(starts + sizes, sizes) - rows - 1
    first = np.repeat(rows, following)
    before = np.cumsum(following) - following
    second = first + 1 + np.arange(first.size) - np.repeat(before, following)
    return text.take(pa.array(first)), text.take(pa.array(second))


def _too_many(label: str) -> InputError:
    return InputError(
        f"{label}: a set has more than {MOST_SENTENCES:,} sentences, which no set of paraphrases has; look at the "
        "column that names the sets"
    )
