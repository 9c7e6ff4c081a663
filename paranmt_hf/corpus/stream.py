"""A release as a stream: selected columns and rows, and it can be closed at any time.

`load_dataset(..., streaming=True)` hands Arrow a file object of Python's and lets threads read ahead in it. When the
stream is left before its end, these threads are still at work while the interpreter ends: the process hangs or aborts
(docs/known-problems.md). Here nothing reads ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from datasets.builder import Key

from paranmt_hf.corpus.release import FOLDERS, release_files
from paranmt_hf.corpus.schema import ADDED, describe_missing
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import explain_absence, is_id, split_revision

Condition: TypeAlias = tuple[str, str, Any]
Filters: TypeAlias = Sequence[Condition] | Sequence[Sequence[Condition]]
HUB = "hf://"
COMPARE: dict[str, Callable[[pa.ChunkedArray, Any], pa.ChunkedArray]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "in": lambda column, values: _is_in(column, values),
    "not in": lambda column, values: pc.invert(_is_in(column, values)),
}


def stream(
    release: str | Path,
    config: str = "default",
    *,
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
) -> datasets.IterableDataset:
    """Read a release row group by row group; only what is needed is read, and the stream can be closed at any time.

    Each row group is a shard, so that the workers of a `DataLoader` share them.

    Args:
        release: Its folder, or its id on the Hub, which `@` and a revision may follow.
        config: `default`, `filtered` or `sample`.
        columns: Names of the columns of the rows; all of them if left out. Others are not read.
        filters: Which rows, in the notation of `pyarrow.parquet`: `[("para_score", ">", 0.7)]` are conditions that all
            hold, a list of such lists alternatives. Row groups without such a row are not read.
    """
    if config not in FOLDERS:
        raise InputError(f"a release has the configs {', '.join(FOLDERS)}, not {config!r}")
    alternatives = _alternatives(filters)
    files = _files(release, config)
    with _open(files[0]) as opened:
        schema = pq.read_schema(opened)
    wanted = list(columns or schema.names)
    needed = list(dict.fromkeys([*wanted, *(name for conditions in alternatives for name, _, _ in conditions)]))
    unknown = [name for name in needed if name not in schema.names]
    if made := set(unknown) & set(ADDED):
        raise InputError(describe_missing(release, made))
    if unknown:
        raise InputError(f"{release} has no column {unknown[0]!r}; it has {', '.join(schema.names)}")
    _check_values(schema, alternatives)
    groups = [(file, group) for file in files for group in _groups(file, alternatives)]
    features = datasets.Features.from_arrow_schema(pa.schema([schema.field(name) for name in wanted]))
    return _Reader(
        groups=groups, columns=wanted, needed=needed, alternatives=alternatives, features=features
    ).as_streaming_dataset(split="train")


class _Reader(datasets.ArrowBasedBuilder):
    """Passes tables to `datasets`, without its cache.

    It reads the columns `needed` of `groups`, row groups of files, and gives `columns` of the rows for which all
    conditions of one of the `alternatives` hold.
    """

    def __init__(
        self,
        *,
        groups: list[tuple[str, int]],
        columns: list[str],
        needed: list[str],
        alternatives: list[list[Condition]],
        features: datasets.Features,
    ) -> None:
        self._groups, self._columns, self._needed = groups, columns, needed
        self._alternatives, self._features = alternatives, features
        super().__init__(dataset_name="paranmt")

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(features=self._features)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:  # noqa: ANN401
        # Lists are what `datasets` deals out to workers.
        return [datasets.SplitGenerator(datasets.Split.TRAIN, gen_kwargs={"groups": self._groups})]

    def _generate_tables(self, groups: list[tuple[str, int]]) -> Iterator[tuple[Key, pa.Table]]:
        for index, (file, group) in enumerate(groups):
            with _open(file) as opened, pq.ParquetFile(opened) as parquet:
                # Without threads, so that nothing is at work when nobody asks for the next table.
                table = parquet.read_row_group(group, columns=self._needed, use_threads=False)
            if self._alternatives:
                table = table.filter(_chosen(table, self._alternatives))
            if table.num_rows:
                yield Key(index, 0), table.select(self._columns)


def _alternatives(filters: Filters | None) -> list[list[Condition]]:
    """Check filters, and convert both notations to alternatives of conditions."""
    parts: list[Any] = list(filters or ())
    nested = (
        [parts]
        if parts and isinstance(parts[0], tuple)
        else [list(part) if isinstance(part, list | tuple) else [part] for part in parts]
    )
    for condition in (condition for conditions in nested for condition in conditions):
        if not (isinstance(condition, tuple) and len(condition) == 3 and condition[1] in list(COMPARE)):
            raise InputError(
                f'a filter is (column, one of {", ".join(COMPARE)}, value), such as ("para_score", ">", 0.7); found '
                f"{condition!r}"
            )
    return nested


def _check_values(schema: pa.Schema, alternatives: list[list[Condition]]) -> None:
    """Reject values that cannot be compared with their columns."""
    for name, operator, value in (condition for conditions in alternatives for condition in conditions):
        kind = schema.field(name).type
        try:
            COMPARE[operator](pa.chunked_array([], kind), value)
        except (pa.ArrowException, TypeError, ValueError) as error:
            reason = str(error).split("\n")[0]
            raise InputError(
                f"the filter {(name, operator, value)!r} cannot be applied to {name!r}, a column of {kind}: {reason}"
            ) from None


def _is_in(column: pa.ChunkedArray, values: Any) -> pa.ChunkedArray:  # noqa: ANN401
    """Mark the values of a column that are among others."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    # A cast, because Arrow makes the integer 1 of 1.5 and says nothing when the type is given at once.
    return pc.is_in(column, pa.array(list(values)).cast(kind))


def _chosen(table: pa.Table, alternatives: list[list[Condition]]) -> pa.ChunkedArray:
    """Mark the rows [row] for which all conditions of one of the alternatives hold.

    As in Arrow no comparison holds for a null, which is `in` a list that has None, and else `not in` it.
    """
    chosen = pa.chunked_array([np.zeros(table.num_rows, bool)])
    for conditions in alternatives:
        all_hold = pa.chunked_array([np.ones(table.num_rows, bool)])
        for name, operator, value in conditions:
            all_hold = pc.and_(all_hold, pc.fill_null(COMPARE[operator](table[name], value), False))
        chosen = pc.or_(chosen, all_hold)
    return chosen


def _files(release: str | Path, config: str) -> list[str]:
    """Paths of the Parquet files of a config; those on the Hub begin with `hf://`."""
    path = Path(release).expanduser()
    if path.exists() or not is_id(split_revision(str(release))[0]):
        return [str(file) for file in release_files(path, config)]
    from huggingface_hub import HfFileSystem

    name, revision = split_revision(str(release))
    where = f"datasets/{name}" + (f"@{revision}" if revision else "")
    try:
        files = sorted(str(file) for file in HfFileSystem().glob(f"{where}/{FOLDERS[config]}/train-*.parquet"))
    # The client passes on errors of several libraries; all mean that the dataset cannot be loaded.
    except Exception as error:
        raise InputError(explain_absence(error, name, "dataset", revision)) from error
    if not files:
        raise InputError(
            f"{release} is not a release with a config {config!r}: it has no {FOLDERS[config]}/train-*.parquet"
        )
    return [f"{HUB}{file}" for file in files]


def _open(file: str) -> IO[bytes] | pa.NativeFile:
    """Open a file; a local one by Arrow, whose threads do not need Python."""
    if not file.startswith(HUB):
        return pa.OSFile(file)
    from huggingface_hub import HfFileSystem

    opened: IO[bytes] = HfFileSystem().open(file.removeprefix(HUB), "rb")
    return opened


def _groups(file: str, alternatives: list[list[Condition]]) -> list[int]:
    """Row groups of a file that, by their statistics, may contain selected rows."""
    with _open(file) as opened, pq.ParquetFile(opened) as parquet:
        metadata = parquet.metadata
        groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    return [
        index
        for index, group in enumerate(groups)
        if not alternatives or any(all(_may_hold(group, *one) for one in conditions) for conditions in alternatives)
    ]


def _may_hold(group: pq.RowGroupMetaData, name: str, operator: str, value: Any) -> bool:  # noqa: ANN401
    """Whether a row group may have a row for which a condition holds."""
    column = next((group.column(i) for i in range(group.num_columns) if group.column(i).path_in_schema == name), None)
    if column is None or column.statistics is None or not column.statistics.has_min_max:
        return True
    low, high = column.statistics.min, column.statistics.max
    try:
        if operator in ("<", "<="):
            return bool(low < value or (operator == "<=" and low == value))
        if operator in (">", ">="):
            return bool(high > value or (operator == ">=" and high == value))
        return not operator == "==" or bool(low <= value <= high)
    except TypeError:
        # Values that Arrow compares and Python does not, such as None.
        return True
