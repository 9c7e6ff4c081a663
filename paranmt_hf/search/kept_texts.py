"""The texts that `paranmt dedup` keeps, as rows of the file, and the file of those that it drops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.splitting import SentenceSplitter
from paranmt_hf.corpus.reading.tables import NewTexts
from paranmt_hf.corpus.selection.dropped_rows import SELECTION
from paranmt_hf.corpus.selection.minhash import BATCH
from paranmt_hf.search.storage import StoredSentences, spans

DROPPED_SCHEMA = pa.schema(
    {
        "line": pa.int64(),
        "text": pa.string(),
        "reason": pa.string(),
        "score": pa.float32(),
        "like_line": pa.int64(),
        "like_text": pa.string(),
    }
)
# The numbers of sentences in their documents, which the file of dropped sentences has too.
SENTENCE_NUMBERS = ("sentence", "like_sentence")


@dataclass(frozen=True)
class KeptTexts:
    """Which texts are kept: one of each row, or the sentences of its document.

    Attributes:
        rows: Index of the row that each text is from [text], int64, ascending.
        kept: Booleans [text] that say which texts are kept.
    """

    rows: np.ndarray
    kept: np.ndarray

    @cached_property
    def of_rows(self) -> np.ndarray:
        """Booleans [row] that say of which rows a text is kept."""
        found = np.zeros(int(self.rows[-1]) + 1 if len(self.rows) else 0, bool)
        found[self.rows[self.kept]] = True
        return found

    def new_texts(self, column: str, splitter: SentenceSplitter) -> NewTexts:
        """Return the documents without the sentences that are dropped.

        Args:
            column: Column of the documents.
            splitter: What split them.
        """
        first = first_texts(self.rows)
        bounds = np.append(first, len(self.rows))
        changed = np.zeros(len(first), bool)
        changed[self.rows[~self.kept]] = True

        def text(row: int, document: str) -> str:
            return splitter.remaining(document, self.kept[bounds[row] : bounds[row + 1]])

        return NewTexts(column, changed, text)


def first_texts(rows: np.ndarray) -> np.ndarray:
    """Return the index of the first text of each row [row], given the row of each text [text], ascending."""
    return np.flatnonzero(np.diff(rows, prepend=-1))


def write_dropped(
    path: Path,
    texts: StoredSentences,
    is_split: bool,
    found: Mapping[str, np.ndarray],
    checksum: str,
    others: Sequence[str],
    bounds: Sequence[int],
) -> None:
    """Write the dropped texts of all methods into a Parquet file, in their order.

    Args:
        path: The file.
        texts: All texts, those of the other files first.
        is_split: Whether the texts are sentences of documents.
        found: Texts that each method dropped, arrays of type `DROPPED`.
        checksum: Checksum of input and settings, which becomes metadata of the file.
        others: Names of the other files, with which the texts were compared.
        bounds: Bounds of each file among the texts [file + 1].
    """
    every = np.concatenate(list(found.values()))
    methods = np.repeat(np.arange(len(found)), [len(rows) for rows in found.values()])
    names = pa.array(list(found), pa.string())
    order = np.argsort(every["row"])
    schema = DROPPED_SCHEMA.with_metadata({SELECTION: checksum.encode()})
    lines_of = texts.lines(np.arange(len(texts)))
    if others:
        schema = schema.append(pa.field("like_file", pa.string()))
    if is_split:
        parts = [start + first_texts(lines_of[start:stop]) for start, stop in pairwise(bounds)]
        # The first sentence of the document of each sentence
        first = np.repeat(np.concatenate(parts), np.diff(np.append(np.concatenate(parts), len(texts))))
        for name in SENTENCE_NUMBERS:
            schema = schema.append(pa.field(name, pa.int64()))
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start, stop in spans(len(every), BATCH):
            rows = every[order[start:stop]]
            columns = {
                "line": pa.array(lines_of[rows["row"]] + 1),
                "text": texts.take(rows["row"]).cast(pa.string()),
                "reason": names.take(pa.array(methods[order[start:stop]])),
                "score": pa.array(rows["score"]),
                "like_line": pa.array(lines_of[rows["like"]] + 1),
                "like_text": texts.take(rows["like"]).cast(pa.string()),
            }
            if others:
                files = pa.array([*others, None], pa.string())
                columns["like_file"] = files.take(pa.array(np.searchsorted(bounds, rows["like"], side="right") - 1))
            if is_split:
                for name, side in zip(SENTENCE_NUMBERS, ("row", "like"), strict=True):
                    columns[name] = pa.array(rows[side] - first[rows[side]] + 1)
            writer.write_table(pa.table(columns, schema=schema))
