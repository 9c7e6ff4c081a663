"""The rows that filters dropped, in a Parquet file: which, why, and the number that decided."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.filters import Filter
from paranmt_hf.corpus.schema import key_columns
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular

WORDS = pa.dictionary(pa.int8(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("reference", pa.string(), nullable=False),
        pa.field("translation", pa.string(), nullable=False),
        pa.field("reason", WORDS, nullable=False),
        # What decided: a score, a number of tokens, the id of the row that this one repeats; and which of these it is.
        pa.field("number", pa.float64()),
        pa.field("number_is", WORDS),
    ]
)
# Key of the file's metadata: which selection dropped these rows.
SELECTION = b"paranmt_selection"


class DroppedRows:
    """Writes the file.

    Args:
        path: Where to; the caller renames it when all is there.
        filters: Those of the codes, in order.
        selection: Checksum of what determines the selection.
        ranked: Whether the rows have a `rank`, which then stands beside their id.
    """

    def __init__(self, path: Path, filters: Sequence[Filter], selection: str, *, ranked: bool = False) -> None:
        self._reasons = pa.array([one.reason for one in filters], pa.string())
        names = list(dict.fromkeys(one.number for one in filters if one.number))
        self._names = pa.array(names, pa.string())
        self._name_of = np.array([names.index(one.number) if one.number else -1 for one in filters], np.int8)
        fields = [*SCHEMA][:1] + [pa.field("rank", pa.int32(), nullable=False)] * ranked + [*SCHEMA][1:]
        self._schema = pa.schema(fields, {SELECTION: selection.encode()})
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")

    def __enter__(self) -> DroppedRows:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    def add(self, table: pa.Table, codes: np.ndarray, numbers: np.ndarray) -> None:
        """Add the dropped rows of a table.

        Args:
            table: Rows of a release.
            codes: By which filter, from 1, each was dropped [row]; 0 where it is kept.
            numbers: What decided [row].
        """
        chosen = np.flatnonzero(codes)
        if not len(chosen):
            return
        filters = codes[chosen].astype(np.int8) - 1
        rows = table.select([*key_columns(self._schema.names), "reference", "translation"]).take(pa.array(chosen))
        names = self._name_of[filters]
        known = (names >= 0) & ~np.isnan(numbers[chosen])
        columns = [
            *rows.columns,
            pa.DictionaryArray.from_arrays(filters, self._reasons),
            pa.array(numbers[chosen], mask=~known),
            pa.DictionaryArray.from_arrays(pa.array(names, mask=~known), self._names),
        ]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))


def selection_of(path: Path) -> str | None:
    """Tell which selection dropped the rows of a file; None where there is no file.

    Raises:
        InputError: Something else is there.
    """
    check_regular(path)
    if not path.exists():
        return None
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (pa.ArrowInvalid, OSError):
        metadata = {}
    if SELECTION not in metadata:
        raise InputError(f"{path} exists and holds no dropped rows; choose another --keep-dropped or move it away")
    return str(metadata[SELECTION].decode("ascii", "replace"))
