"""The sentences of a corpus and their vectors on disk, ready to be searched.

They are stored in steps, each of which an interrupted run finds complete: sentences, their vectors, and an inverted
index if there are too many to compare with all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np

from paranmt_hf.corpus.reading.readers import Reader, Report
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.search.storage import (
    VECTORS,
    WRITTEN,
    Counted,
    Precision,
    StoredSentences,
    Vectors,
    normalised,
    write_encoded,
    write_in_order,
    write_sentences,
)
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.files import sweep, write_bytes
from paranmt_hf.util.markers import Group, Range
from paranmt_hf.util.records import from_json, read_json
from paranmt_hf.util.settings import Settings

if TYPE_CHECKING:
    from paranmt_hf.search.inverted_index import InvertedIndex
    from paranmt_hf.search.neighbours import Neighbours

COUNTED, SORTED = "sentences.json", "sorted.npy"
SEARCH = Group("search", "How vectors are stored and compared.")


@dataclass(frozen=True)
class IndexConfig(Settings):
    """How sentences are stored and searched.

    Attributes:
        lists: Number of lists of an inverted index, of which a search compares the nearest few; 0 compares with all
            sentences. By default 0 for few sentences, else 2 x the square root of their number.
        precision: Number format of the stored vectors; float16 takes half the space.
    """

    lists: Annotated[int | None, Range(at_least=0), SEARCH] = None
    precision: Annotated[Precision, SEARCH] = "float32"

    def count(self, sentences: int, max_exact: int) -> int:
        """Number of lists for a number of sentences; 0 if the search is exact."""
        if self.lists is None:
            return 0 if sentences <= max_exact else round(2 * math.sqrt(sentences))
        return min(sentences, self.lists)


class IndexedVectors:
    """Sentences and their vectors in a folder, as `index_sentences` wrote them.

    The numbers of sentences are items, and those of vectors are places; `lists` says where the vectors are, unless
    they are in the order of the items.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / COUNTED
        self.counted = from_json(Counted, read_json(path, "numbers of sentences"), path)
        self.sentences = StoredSentences(folder)
        self.lists: InvertedIndex | None = None
        if (folder / SORTED).exists():
            # Imports torch, which the help of commands does not need.
            from paranmt_hf.search.inverted_index import InvertedIndex

            self.lists = InvertedIndex.read(folder)
            self.vectors = Vectors(folder / SORTED)
        else:
            self.vectors = Vectors(folder / VECTORS)

    def items(self, places: np.ndarray) -> np.ndarray:
        return places if self.lists is None else self.lists.order[places]

    def nearest(self, queries: np.ndarray, top: int, probes: int) -> Neighbours:
        """Find the places of the vectors that are most similar to queries [query, dimension] of length 1."""
        import torch

        from paranmt_hf.search.inverted_index import nearest_in_lists
        from paranmt_hf.search.neighbours import nearest_vectors

        vectors, most = torch.from_numpy(queries), min(top, len(self.sentences))
        if self.lists is None:
            return nearest_vectors(vectors, self.vectors, most)
        return nearest_in_lists(vectors, self.vectors, self.lists, most, probes)


def index_sentences(
    folder: Path,
    write: Callable[[Path], Counted],
    encoder: NamedEncoder,
    config: IndexConfig,
    *,
    max_exact: int,
) -> IndexedVectors:
    """Store sentences and their vectors, continuing after an interruption.

    `write` stores the sentences in the folder. What is in the folder must be of the same arguments. Up to `max_exact`
    sentences a search is exact by default.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    if not (folder / COUNTED).exists():
        write_bytes(folder / COUNTED, json.dumps(asdict(write(folder))).encode())
    if not (folder / SORTED).exists():
        sentences, load = StoredSentences(folder), cache(lambda: encoder.load())

        def encode(start: int, stop: int) -> np.ndarray:
            return encoded(load(), sentences.take(np.arange(start, stop)).to_pylist())

        vectors = write_encoded(folder, len(sentences), encode, config.precision)
        count = config.count(len(vectors), max_exact)
        if not count:
            return IndexedVectors(folder)
        from paranmt_hf.search.inverted_index import InvertedIndex

        lists = InvertedIndex.make(vectors, count)
        lists.save(folder)
        write_in_order(vectors, lists.order, folder / SORTED, config.precision)
    # The vectors in the order of the items, of which the sorted ones are a copy.
    for name in (VECTORS, WRITTEN):
        (folder / name).unlink(missing_ok=True)
    return IndexedVectors(folder)


def write_source(source: Reader, folder: Path, *, copies: bool = False) -> Counted:
    """Store the sentences of a corpus; with `copies`, copies of a sentence are items of their own."""
    report = Report()
    counted = write_sentences(source.batches(report), folder, copies=copies)
    if not counted.items:
        raise InputError("there is no sentence to search in: every line is empty, too long or not UTF-8")
    return replace(counted, dropped=dict(report.dropped))


def encoded(encoder: Encoder, sentences: list[str]) -> np.ndarray:
    """Encode sentences into vectors [sentence, dimension] of length 1, or 0 without a known word."""
    vectors = np.asarray(encoder.encode(sentences))
    infinite = ~np.isfinite(vectors).all(axis=1)
    if infinite.any():
        sentence = sentences[int(infinite.argmax())]
        raise InputError(f"the encoder gave a vector that is not finite for {sentence!r}; choose another one")
    return normalised(vectors)


def holds_vectors(folder: Path) -> bool:
    """Whether a work folder holds vectors, which are expensive."""
    return any(folder.rglob(WRITTEN)) or any(folder.rglob(SORTED))
