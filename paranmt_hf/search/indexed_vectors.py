"""Encode the sentences of a corpus, store them with their vectors on disk, and search them.

There are three steps: sentences, vectors and, for many sentences, an inverted index. A run that was interrupted
continues with the first step that is not complete.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.readers import Reader, Report
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.search.inverted_index import InvertedIndex, nearest_in_lists
from paranmt_hf.search.neighbours import ItemPairs, Neighbours, nearest_vectors
from paranmt_hf.search.storage import (
    VECTORS,
    WRITTEN,
    Counted,
    Precision,
    StoredSentences,
    Vectors,
    normalised,
    spans,
    write_encoded,
    write_in_order,
    write_sentences,
)
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.files import replacing, sweep, write_bytes
from paranmt_hf.util.markers import Group, Range
from paranmt_hf.util.records import from_json, read_json
from paranmt_hf.util.settings import Settings

COUNTED, SORTED = "sentences.json", "sorted.npy"
WRITE_ROWS = 20_000  # Number of pairs that are written at once
SEARCH = Group("search", "How vectors are stored and compared.")


@dataclass(frozen=True)
class IndexConfig(Settings):
    """How sentences are stored and searched.

    Attributes:
        lists: Number of lists of an inverted index. A query is compared only with the sentences of the nearest lists;
            with 0 lists, it is compared with all sentences. By default 0 for few sentences, else 2 x the square root
            of their number.
        precision: Number format of the stored vectors; float16 takes half the space.
    """

    lists: Annotated[int | None, Range(at_least=0), SEARCH] = None
    precision: Annotated[Precision, SEARCH] = "float32"

    def count(self, sentences: int, max_exact: int) -> int:
        """Return the number of lists for a number of sentences; 0 if each query is compared with all of them.

        By default that is so for up to `max_exact` sentences.
        """
        if self.lists is None:
            return 0 if sentences <= max_exact else round(2 * math.sqrt(sentences))
        return min(sentences, self.lists)


class IndexedVectors:
    """The sentences and vectors that `index_sentences` wrote into a folder.

    The number of a sentence is its item, and the number of a vector is its place. Without an inverted index both are
    the same. With an inverted index, the vectors are sorted by list.

    Attributes:
        counted: Numbers of stored and dropped sentences.
        sentences: The sentences, by item.
        lists: The inverted index; None if queries are compared with all vectors.
        vectors: The vectors, by place.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / COUNTED
        self.counted = from_json(Counted, read_json(path, "numbers of sentences"), path)
        self.sentences = StoredSentences(folder)
        self.lists: InvertedIndex | None = None
        if (folder / SORTED).exists():
            self.lists = InvertedIndex.read(folder)
            self.vectors = Vectors(folder / SORTED)
        else:
            self.vectors = Vectors(folder / VECTORS)

    def items(self, places: np.ndarray) -> np.ndarray:
        """Return the items of the vectors in the given places."""
        return places if self.lists is None else self.lists.order[places]

    def nearest(self, queries: np.ndarray, top: int, probes: int) -> Neighbours:
        """Find the vectors that are most similar to each query.

        Args:
            queries: Vectors of length 1 [query, dimension].
            top: Maximum number of neighbours of a query.
            probes: Number of lists that each query is compared with, if there are lists.

        Returns:
            Neighbours whose `items` are places of vectors, which `IndexedVectors.items` converts.
        """
        most = min(top, len(self.sentences))
        if self.lists is None:
            return nearest_vectors(queries, self.vectors, most)
        return nearest_in_lists(queries, self.vectors, self.lists, most, probes)


def index_sentences(
    folder: Path,
    write: Callable[[Path], Counted],
    encoder: NamedEncoder,
    config: IndexConfig,
    *,
    max_exact: int,
) -> IndexedVectors:
    """Store sentences and their vectors in a folder, continuing after an interruption.

    Args:
        folder: Folder, empty or left by an interrupted call with the same arguments.
        write: Stores the sentences in the folder it is given, and returns their numbers.
        encoder: Encoder of the sentences; it is loaded only if vectors are missing.
        config: How the sentences are stored and searched.
        max_exact: Up to this number of sentences there is no inverted index by default.
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
        lists = InvertedIndex.make(vectors, count)
        lists.save(folder)
        write_in_order(vectors, lists.order, folder / SORTED, config.precision)
    # The vectors in the order of the items are no longer needed, because the sorted ones are a copy of them.
    for name in (VECTORS, WRITTEN):
        (folder / name).unlink(missing_ok=True)
    return IndexedVectors(folder)


def write_source(source: Reader, folder: Path, *, copies: bool = False) -> Counted:
    """Store the sentences of a corpus, and return the numbers of stored and dropped ones.

    With `copies`, each occurrence of a sentence is searched; otherwise only the first. Raises `InputError` if there is
    no sentence.
    """
    report = Report()
    counted = write_sentences(source.batches(report), folder, copies=copies)
    if not counted.items:
        raise InputError("there is no sentence to search in: every line is empty, too long or not UTF-8")
    return replace(counted, dropped=dict(report.dropped))


def encoded(encoder: Encoder, sentences: list[str]) -> np.ndarray:
    """Encode sentences into vectors [sentence, dimension], float32, of length 1.

    A sentence without a word that the encoder knows gets zeros. Raises `InputError` for a vector that is not finite.
    """
    vectors = np.asarray(encoder.encode(sentences))
    infinite = ~np.isfinite(vectors).all(axis=1)
    if infinite.any():
        sentence = sentences[int(infinite.argmax())]
        raise InputError(f"the encoder gave a vector that is not finite for {sentence!r}; choose another one")
    return normalised(vectors)


def holds_vectors(folder: Path) -> bool:
    """Return whether a work folder holds vectors, which took long to compute."""
    return any(folder.rglob(WRITTEN)) or any(folder.rglob(SORTED))


def write_pairs(
    path: Path,
    pairs: ItemPairs,
    margins: np.ndarray | None,
    sides: tuple[IndexedVectors, IndexedVectors],
) -> None:
    """Write pairs with the sentences of both sides into a Parquet file.

    Args:
        path: The file.
        pairs: The pairs [pair].
        margins: Margin score of each pair [pair], float32; None to leave their column out.
        sides: Where the first sentences of pairs are, and where the second ones are.
    """
    first, second = (side.sentences for side in sides)
    names = ["first", "second", "cosine", "margin", "first_line", "second_line"]
    kinds = [pa.string()] * 2 + [pa.float32()] * 2 + [pa.int64()] * 2
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in zip(names, kinds, strict=True)])
    if margins is None:
        schema = schema.remove(names.index("margin"))
    with replacing(path) as aside, pq.ParquetWriter(aside, schema, compression="zstd") as writer:
        for start, stop in spans(len(pairs), WRITE_ROWS):
            some = pairs.take(np.arange(start, stop))
            columns = {
                "first": first.take(some.first).cast(pa.string()),
                "second": second.take(some.second).cast(pa.string()),
                "cosine": some.cosine.clip(-1, 1),
                "first_line": first.lines(some.first) + 1,
                "second_line": second.lines(some.second) + 1,
            }
            if margins is not None:
                columns["margin"] = margins[start:stop]
            writer.write_table(pa.table(columns, schema=schema))
