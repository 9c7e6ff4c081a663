"""A folder that is searched: sentences, their vectors, and lists where there are too many to compare with all.

It is made in steps, each of which is found complete by a run that continues.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.search.sentences import Batch, Counted, Sentences, write_sentences
from paranmt_hf.search.vector_file import (
    VECTORS,
    WRITTEN,
    Precision,
    Vectors,
    normalised,
    write_in_order,
    write_vectors,
)
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.files import write_bytes
from paranmt_hf.util.records import from_json, read_json
from paranmt_hf.util.settings import check, seed_setting, setting

if TYPE_CHECKING:
    from paranmt_hf.search.lists import Lists

Method = Literal["auto", "exact", "lists"]
COUNTED, LISTED, SORTED = "sentences.json", "lists.json", "sorted.npy"


@dataclass(frozen=True)
class SpaceConfig:
    """How sentences are stored and searched."""

    method: Method = setting(
        "auto", "exact: compare with all; lists: look into the nearest lists (default: exact for few sentences)"
    )
    lists: int | None = setting(None, "number of lists (default: 2 x square root of the sentences)", at_least=1)
    precision: Precision = setting("float32", "of the stored vectors; float16 takes half the room")
    seed: int = seed_setting(1, "decides where the lists are")

    def __post_init__(self) -> None:
        check(self)
        if self.lists is not None and self.method == "exact":
            raise InputError("an exact search has no lists: leave out --lists, or give --method lists")

    def count(self, sentences: int, most_exact: int) -> int | None:
        """Number of lists for so many sentences; None where the search is exact."""
        if self.method == "exact" or (self.method == "auto" and self.lists is None and sentences <= most_exact):
            return None
        return min(sentences, self.lists or round(2 * math.sqrt(sentences)))


class Space:
    """What is searched.

    Attributes:
        counted: How many sentences were read, taken and dropped.
        sentences: The sentences; their numbers are items.
        lists: Where the vectors lie, unless they lie in the order of the items.
        vectors: Their vectors; their numbers are places.

    Args:
        folder: Where `prepare` put everything.
    """

    def __init__(self, folder: Path) -> None:
        self.counted = _counted(folder)
        self.sentences = Sentences(folder)
        self.lists: Lists | None = None
        if (folder / LISTED).exists():
            # Torch is loaded only now, so that the help of the commands needs none.
            from paranmt_hf.search.lists import Lists

            self.lists = Lists.read(folder)
        self.vectors = Vectors(folder / (VECTORS if self.lists is None else SORTED))

    def items(self, places: np.ndarray) -> np.ndarray:
        """Turn places of vectors into items."""
        return places if self.lists is None else self.lists.order[places]


def prepare(
    folder: Path,
    batches: Callable[[], Iterable[Batch]],
    encoder: Callable[[], Encoder],
    config: SpaceConfig,
    *,
    most_exact: int,
    copies: bool = False,
    dropped: Callable[[], dict[str, int]] = dict,
) -> Space:
    """Make what is searched, or go on with it.

    Args:
        folder: Where it is made; it must belong to these arguments.
        batches: Reads the sentences.
        encoder: Loads the encoder.
        config: How they are stored and searched.
        most_exact: Up to so many sentences an `auto` search is exact.
        copies: Whether copies of a sentence are items of their own.
        dropped: Says, when all were read, what was left out, by reason.

    Raises:
        InputError: There are no sentences, or the encoder gave a vector that is not finite.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob(".*.tmp"):
        # What a kill left in the middle of writing a file.
        path.unlink()
    if not (folder / COUNTED).exists():
        counted = write_sentences(batches(), folder, copies=copies)
        if not counted.items:
            raise InputError(
                "there is no sentence to search in: every line was dropped, as empty, too long or no UTF-8"
            )
        write_bytes(folder / COUNTED, json.dumps(asdict(replace(counted, dropped=dropped()))).encode())
    items = _counted(folder).items
    if not (folder / LISTED).exists():
        vectors = _vectors(folder, items, encoder, config.precision)
        count = config.count(items, most_exact)
        if count is None:
            return Space(folder)
        _sort(folder, vectors, count, config)
    # The vectors in the order of the items, of which the sorted ones are a copy.
    for name in (VECTORS, WRITTEN):
        (folder / name).unlink(missing_ok=True)
    return Space(folder)


def _counted(folder: Path) -> Counted:
    path = folder / COUNTED
    return from_json(Counted, read_json(path, "how many sentences there are"), path)


def _vectors(folder: Path, items: int, encoder: Callable[[], Encoder], precision: Precision) -> Vectors:
    """Write the vectors of the sentences that have none yet."""
    sentences, loaded = Sentences(folder), None

    def encode(start: int, stop: int) -> np.ndarray:
        nonlocal loaded
        loaded = loaded or encoder()
        return encoded(loaded, sentences.take(np.arange(start, stop)).to_pylist())

    return write_vectors(folder, items, encode, precision)


def encoded(encoder: Encoder, sentences: list[str]) -> np.ndarray:
    """Encode sentences into vectors [sentence, dimension] of length 1, or 0 for a sentence that is not known at all.

    Raises:
        InputError: The encoder gave a vector that is not finite.
    """
    vectors = np.asarray(encoder.encode(sentences))
    if not np.isfinite(vectors).all():
        where = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise InputError(f"the encoder gave a vector that is not finite for {sentences[where]!r}; choose another one")
    return normalised(vectors)


def _sort(folder: Path, vectors: Vectors, count: int, config: SpaceConfig) -> None:
    """Put the vectors into lists, and write them in that order."""
    from paranmt_hf.search.lists import Lists

    lists = Lists.make(vectors, count, config.seed)
    lists.save(folder)
    write_in_order(vectors, lists.order, folder / SORTED, config.precision)
    write_bytes(folder / LISTED, json.dumps({"lists": count}).encode())
