"""The file of the rows that a selection drops, with the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.release.schema import key_columns
from paranmt_hf.corpus.selection.filters import Filter
from paranmt_hf.errors import InputError, OtherSettingsError
from paranmt_hf.util.files import check_regular, resolved, result_file
from paranmt_hf.util.work import work_folder

LABEL = pa.dictionary(pa.int8(), pa.string())
SELECTION = b"paranmt_selection"  # Key in the metadata of the file for the checksum of the selection


class DroppedRows:
    """Writes the file of dropped rows, which the caller renames when it is complete.

    Args:
        path: The file.
        filters: The filters of the selection, in order.
        selection: Checksum of what determines the selection.
        ranked: Whether the corpus has the column `rank`.
    """

    def __init__(self, path: Path, filters: Sequence[Filter], selection: str, *, ranked: bool = False) -> None:
        self._reasons = pa.array([one.reason for one in filters], pa.string())
        names = list(dict.fromkeys(one.number for one in filters if one.number))
        self._names = pa.array(names, pa.string())
        self._name_of = np.array([names.index(one.number) if one.number else -1 for one in filters], np.int8)
        self._explaining = {number: one for number, one in enumerate(filters) if one.explains}
        fields = [pa.field("id", pa.int64(), nullable=False)]
        if ranked:
            fields.append(pa.field("rank", pa.int32(), nullable=False))
        fields += [
            pa.field("reference", pa.string(), nullable=False),
            pa.field("translation", pa.string(), nullable=False),
            pa.field("reason", LABEL, nullable=False),
            # The number that decided, such as a score, a length or the id of the row that this one repeats.
            pa.field("number", pa.float64()),
            pa.field("number_is", LABEL),
        ]
        if self._explaining:
            # The evaluation sentence that a row resembles, and the file that it is from.
            fields += [pa.field("item", pa.string()), pa.field("item_set", pa.string())]
        self._schema = pa.schema(fields, {SELECTION: selection.encode()})
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")

    def close(self) -> None:
        """Finish the file."""
        self._writer.close()

    def add(self, table: pa.Table, verdicts: np.ndarray) -> None:
        """Write the dropped rows of a table.

        Args:
            table: The rows.
            verdicts: The verdict about each row [row], `VERDICT`.
        """
        chosen = np.flatnonzero(verdicts["filter"])
        if not len(chosen):
            return
        filters = verdicts["filter"][chosen].astype(np.int8) - 1
        numbers = verdicts["number"][chosen]
        rows = table.select([*key_columns(self._schema.names), "reference", "translation"]).take(pa.array(chosen))
        names = self._name_of[filters]
        unknown = (names < 0) | np.isnan(numbers)
        columns = [
            *rows.columns,
            pa.DictionaryArray.from_arrays(filters, self._reasons),
            pa.array(numbers, mask=unknown),
            pa.DictionaryArray.from_arrays(pa.array(names, mask=unknown), self._names),
        ]
        if self._explaining:
            columns += self._items(rows, filters)
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))

    def _items(self, rows: pa.Table, filters: np.ndarray) -> Iterator[pa.Array]:
        """Return the columns `item` and `item_set` of dropped rows, null where a filter explains nothing.

        Args:
            rows: The rows.
            filters: Index of the filter that dropped each row [row].
        """
        found: list[tuple[str | None, str | None]] = [(None, None)] * rows.num_rows
        for number, one in self._explaining.items():
            chosen = np.flatnonzero(filters == number)
            for row, explanation in zip(chosen.tolist(), one.explain(rows.take(pa.array(chosen))), strict=True):
                found[row] = explanation
        for values in zip(*found, strict=True):
            yield pa.array(values, pa.string())


def dropped_lines(rows: int, dropped: Iterable[tuple[str, int]]) -> list[str]:
    """Return a table for a terminal of the rows that each filter dropped, and of the rows left after it.

    Args:
        rows: Number of all rows.
        dropped: Reason and number of dropped rows of each filter, in order.
    """
    lines = [f"  {'dropped':>12} {'left':>12}", f"  {'':>12} {rows:>12,}"]
    for reason, count in dropped:
        rows -= count
        lines.append(f"  {count:>12,} {rows:>12,}  {reason}")
    return lines


def dropped_file(path: str | Path | None, source: Path, out: Path, selection: str) -> Path | None:
    """Check where the file of dropped rows is to be written, and return its resolved path; None if it is not wanted.

    Args:
        path: The path that the user gives, or None.
        source: Folder of the corpus that rows are selected from.
        out: Folder of the result.
        selection: Checksum of what determines the selection.

    Raises:
        InputError: If the file would be in the result or the source, or it exists and holds anything else.
        OtherSettingsError: If it exists and is of another selection.
    """
    if path is None:
        return None
    option = "keep_dropped"
    file = resolved(path)
    if file.is_relative_to(out) or file.is_relative_to(work_folder(out)):
        raise InputError(f"{path} is inside the result {out}; name a file elsewhere", option=option)
    result_file(file, [".parquet"], sources=[source], option=option)
    check_regular(file)
    if not file.exists():
        return file
    try:
        metadata = pq.read_schema(file).metadata or {}
    except (pa.ArrowInvalid, OSError):
        metadata = {}
    if SELECTION not in metadata:
        raise InputError(f"{file} exists and holds no dropped rows; choose another file or move it away", path=file)
    if metadata[SELECTION].decode("ascii", "replace") != selection:
        raise OtherSettingsError(
            f"{file} holds rows that another selection dropped; choose another file or delete it",
            option=option,
            path=file,
        )
    return file
