"""A corpus read as a stream, of selected columns and rows, that can be closed at any time.

`load_dataset(..., streaming=True)` hands a Python file object to Arrow, whose threads read ahead in it. If the stream
is left before its end, these threads are still at work while the interpreter ends, and the process hangs or aborts
(docs/known-problems.md). Here nothing reads ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

import datasets
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from datasets.builder import Key

from paranmt_hf.corpus.release.release import FOLDERS, release_files
from paranmt_hf.corpus.release.schema import ADDED, describe_missing
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import fetching, is_id, split_revision

# Column, operator and value.
Condition: TypeAlias = tuple[str, str, Any]
# Conditions that all hold, or alternatives of such conditions.
Filters: TypeAlias = Sequence[Condition] | Sequence[Sequence[Condition]]
HUB = "hf://"


def stream(
    corpus: str | Path,
    config: str = "default",
    *,
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
) -> datasets.IterableDataset:
    """Read a corpus as a stream, row group by row group; only what is needed is read.

    The stream can be closed at any time. Each row group is a shard, so that the workers of a `DataLoader` share them.

    Args:
        corpus: Folder of the corpus, or its id on the Hub, which `@` and a revision may follow.
        config: `default`, `filtered` or `sample`.
        columns: Names of the columns to read; None for all.
        filters: Which rows are read, in the notation of `pyarrow.parquet`: in `[("para_score", ">", 0.7)]` all
            conditions must hold; in a list of such lists one of them must. Row groups that cannot have such rows are
            not read.

    Raises:
        InputError: If there is no such corpus or column, or the filters cannot be applied.
    """
    files = _files(corpus, config)
    with _open(files[0]) as opened:
        schema = pq.read_schema(opened)
    # Turn both notations into alternatives of conditions.
    parts: list[Any] = list(filters or ())
    nested = [parts] if parts and isinstance(parts[0], tuple) else parts
    try:
        alternatives = [[(name, operator, value) for name, operator, value in conditions] for conditions in nested]
    except (TypeError, ValueError):
        raise InputError(
            f'a filter is a list of (column, operator, value), such as [("para_score", ">", 0.7)]; found {filters!r}',
            option="filters",
        ) from None
    deciding = [name for conditions in alternatives for name, _, _ in conditions]
    wanted = list(columns or schema.names)
    needed = list(dict.fromkeys([*wanted, *deciding]))
    if unknown := [name for name in needed if name not in schema.names]:
        if made := set(unknown) & set(ADDED):
            raise InputError(describe_missing(corpus, made))
        raise InputError(f"{corpus} has no column {unknown[0]!r}; it has {', '.join(schema.names)}")
    chosen = _expression(alternatives, schema) if alternatives else None
    groups = []
    for file in files:
        with _open(file) as opened:
            fragment = ds.ParquetFileFormat().make_fragment(opened)
            # Only row groups that, by their statistics, may contain chosen rows.
            groups += [(file, part.row_groups[0].id) for part in fragment.split_by_row_group(chosen)]
    features = datasets.Features.from_arrow_schema(pa.schema([schema.field(name) for name in wanted]))
    reader = _Reader(groups=groups, columns=wanted, needed=needed, chosen=chosen, features=features)
    return reader.as_streaming_dataset(split="train")


class _Reader(datasets.ArrowBasedBuilder):
    """A builder of `datasets` that passes on tables of a corpus, without the cache of `datasets`.

    Args:
        groups: The row groups to read: file, and index of the row group in it.
        columns: Names of the columns of the result.
        needed: Names of the columns to read, those that decide about rows included.
        chosen: Condition that rows must meet; None for all rows.
        features: Types of the columns of the result.
    """

    def __init__(
        self,
        *,
        groups: list[tuple[str, int]],
        columns: list[str],
        needed: list[str],
        chosen: pc.Expression | None,
        features: datasets.Features,
    ) -> None:
        self._groups, self._columns, self._needed = groups, columns, needed
        self._chosen, self._features = chosen, features
        super().__init__(dataset_name="paranmt")

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(features=self._features)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:  # noqa: ANN401
        # `datasets` shares lists among workers.
        return [datasets.SplitGenerator(datasets.Split.TRAIN, gen_kwargs={"groups": self._groups})]

    def _generate_tables(self, groups: list[tuple[str, int]]) -> Iterator[tuple[Key, pa.Table]]:
        for index, (file, group) in enumerate(groups):
            with _open(file) as opened, pq.ParquetFile(opened) as parquet:
                # No threads are used, so that nothing is at work while nobody asks for the next table.
                table = parquet.read_row_group(group, columns=self._needed, use_threads=False)
            if self._chosen is not None:
                table = table.filter(self._chosen)
            if table.num_rows:
                yield Key(index, 0), table.select(self._columns)


def _expression(alternatives: list[list[Condition]], schema: pa.Schema) -> pc.Expression:
    """Turn filters into an expression of Arrow, and check that it fits the schema."""
    try:
        for conditions in alternatives:
            for index, (name, operator, value) in enumerate(conditions):
                if operator in ("in", "not in"):
                    # Values are cast to the type of the column here, because Arrow would turn 1.5 into 1.
                    kind = schema.field(name).type
                    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
                    conditions[index] = name, operator, pa.array(list(value)).cast(kind)
        expression = pq.filters_to_expression(alternatives)
        schema.empty_table().filter(expression)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"the filters {alternatives!r} cannot be applied: {reason}", option="filters") from None
    return expression


def _files(release: str | Path, config: str) -> list[str]:
    """Return the paths of the Parquet files of a config; those on the Hub begin with `hf://`."""
    if config not in FOLDERS:
        raise InputError(f"config must be one of {', '.join(FOLDERS)}, was {config!r}", option="config")
    path = Path(release).expanduser()
    if path.exists() or not is_id(split_revision(str(release))[0]):
        return [str(file) for file in release_files(path, config)]
    from huggingface_hub import HfFileSystem

    name, revision = split_revision(str(release))
    where = f"datasets/{name}" + (f"@{revision}" if revision else "")
    with fetching(name, "dataset", revision):
        files = sorted(str(file) for file in HfFileSystem().glob(f"{where}/{FOLDERS[config]}/train-*.parquet"))
    if not files:
        raise InputError(
            f"{release} is not a corpus with a config {config!r}: it has no {FOLDERS[config]}/train-*.parquet"
        )
    return [f"{HUB}{file}" for file in files]


def _open(file: str) -> IO[bytes] | pa.NativeFile:
    """Open a file for reading; a local file by Arrow itself, so that its threads need no Python."""
    if not file.startswith(HUB):
        return pa.OSFile(file)
    from huggingface_hub import HfFileSystem

    opened: IO[bytes] = HfFileSystem().open(file.removeprefix(HUB), "rb")
    return opened
