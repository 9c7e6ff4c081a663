"""The texts that `paranmt dedup` drops: rows, what they are like, and the file of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.selection.minhash import BLOCK
from paranmt_hf.corpus.selection.run_filters import SELECTION
from paranmt_hf.search.storage import StoredSentences, spans

# A dropped row, the row it is like, and their similarity.
DROPPED = np.dtype([("row", np.int64), ("like", np.int64), ("score", np.float32)])
SCHEMA = pa.schema(
    {
        "line": pa.int64(),
        "text": pa.string(),
        "reason": pa.string(),
        "score": pa.float32(),
        "like_line": pa.int64(),
        "like_text": pa.string(),
    }
)


def dropped_rows(rows: np.ndarray, like: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Dropped rows [row] of the type `DROPPED`."""
    found = np.empty(len(rows), DROPPED)
    found["row"], found["like"], found["score"] = rows, like, scores.clip(-1, 1)
    return found


def write_dropped(path: Path, texts: StoredSentences, found: Mapping[Any, np.ndarray], checksum: str) -> None:
    """Write the file of dropped rows, in the order of the rows; lines count from 1."""
    every = np.concatenate([np.empty(0, DROPPED), *found.values()])
    reasons = np.repeat(np.arange(len(found)), [len(rows) for rows in found.values()])
    names, order = pa.array(list(found), pa.string()), np.argsort(every["row"])
    schema = SCHEMA.with_metadata({SELECTION: checksum.encode()})
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start, stop in spans(len(every), BLOCK):
            some, chosen = every[order[start:stop]], reasons[order[start:stop]]
            sides = [texts.take(some[name]).cast(pa.string()) for name in ("row", "like")]
            lines = [pa.array(some[name] + 1) for name in ("row", "like")]
            columns = [lines[0], sides[0], names.take(pa.array(chosen)), pa.array(some["score"]), lines[1], sides[1]]
            writer.write_table(pa.table(columns, schema=schema))
