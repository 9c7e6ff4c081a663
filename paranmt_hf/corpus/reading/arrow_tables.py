"""Parquet files, folders of `Dataset.save_to_disk`, and what all tables of Arrow share.

Columns are found by their names or dotted paths, such as `translation.cs`, and read as text in bytes or as numbers.
"""

from __future__ import annotations

import contextlib
import json
from abc import abstractmethod
from collections.abc import Collection, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.tables import BLOCK_ROWS, NewTexts, Piece, Table, file_identity
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import existing
from paranmt_hf.util.parquet import open_parquet, read_schema, without_views
from paranmt_hf.util.records import read_json

STRINGS = (pa.string(), pa.large_string(), pa.string_view())
TEXTS = (*STRINGS, pa.binary(), pa.large_binary(), pa.binary_view(), pa.null())


def is_number_type(kind: pa.DataType) -> bool:
    """Whether a type of Arrow is numeric: integer, floating point or decimal."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def leaf_types(fields: pa.Schema | pa.StructType) -> list[tuple[str, pa.DataType]]:
    """Return names and types of all columns, with paths such as `translation.cs` for columns inside structs."""
    found: list[tuple[str, pa.DataType]] = []
    for item in fields:
        inner = leaf_types(item.type) if pa.types.is_struct(item.type) else []
        found += [(f"{item.name}.{name}", kind) for name, kind in inner] or [(item.name, item.type)]
    return found


def find_column(fields: pa.Schema | pa.StructType, path: str, name: str) -> list[str]:
    """Find a column by its name or its dotted path into structs, and return the names on the way to it.

    A name may itself have dots: `a.b` is first looked for as a whole.

    Args:
        fields: The schema.
        path: Name or path of the column.
        name: Name of the file or dataset, for errors.

    Raises:
        InputError: If there is no such column.
    """
    steps: list[str] = []
    level, rest = fields, path
    while level.get_field_index(rest) < 0:
        step, _, rest = rest.partition(".")
        index = level.get_field_index(step)
        if not rest or index < 0 or not pa.types.is_struct(level.field(index).type):
            leaves = [leaf for leaf, _ in leaf_types(fields)]
            found = f"are {leaves.count(path)} columns" if path in leaves else "is no column"
            raise InputError(f"{name}: there {found} {path!r}; the columns are {', '.join(leaves)}", option="columns")
        level = level.field(index).type
        steps.append(step)
    return [*steps, rest]


def read_column(batch: pa.RecordBatch, path: str, name: str, *, may_be_number: bool) -> pa.Array:
    """Return a column of a batch: text as bytes, numbers with their type.

    Text is not decoded, because files of Parquet may hold text that is not UTF-8.

    Args:
        batch: Rows of a dataset.
        path: Name or dotted path of the column.
        name: Name of the file or dataset, for errors.
        may_be_number: Whether the column may be numeric or boolean; booleans become 0 and 1.

    Raises:
        InputError: If there is no such column, or it has another type.
    """
    first, *rest = find_column(batch.schema, path, name)
    column = batch.column(first)
    for step in rest:
        column = pc.struct_field(column, step)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if kind in TEXTS:
        return column.cast(pa.binary())
    if may_be_number and pa.types.is_boolean(kind):
        return column.cast(pa.int8())
    if may_be_number and is_number_type(kind):
        return column
    wanted = "numbers" if may_be_number else "text"
    advice = ""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        advice = f"; write a row for each, such as with `frame.explode({path!r})` of pandas"
    raise InputError(f"{name}: expected {wanted} in column {path!r}, got values of type {kind}{advice}")


class ArrowTable(Table):
    """Rows that a library of Arrow reads; a column is named by its name or by a path such as `translation.cs`."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        names, texts = [], []
        for name, kind in leaf_types(schema):
            names.append(name)
            if (kind.value_type if pa.types.is_dictionary(kind) else kind) in STRINGS:
                texts.append(name)
        super().__init__(path, names, texts)

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the rows, block by block, with at least the columns of these names."""

    def pieces(self, columns: Sequence[str], *, numbers: Collection[str] = ()) -> Iterator[Piece]:
        names = [self.names[self.position(column)] for column in columns]
        read_as_numbers = [self.names[self.position(column)] for column in numbers]
        rows = 0
        for batch in self.batches(names):
            found = []
            for name in names:
                found.append(read_column(batch, name, str(self.path), may_be_number=name in read_as_numbers))
            yield Piece(found, f"{self.path}, row (from 0) ", rows)
            rows += batch.num_rows

    def with_new_texts(self, batch: pa.RecordBatch, first: int, new: NewTexts) -> pa.RecordBatch:
        """Return rows of the file with new texts in a column; the schema stays.

        Args:
            batch: The rows, with all columns.
            first: Number of the first row, from 0.
            new: The new texts.
        """
        rows = np.flatnonzero(new.changed[first : first + batch.num_rows])
        if not rows.size:
            return batch
        column = self.names[self.position(new.column)]
        texts = read_column(batch, column, str(self.path), may_be_number=False).to_pylist()
        for row in rows.tolist():
            texts[row] = new.text(first + row, texts[row].decode()).encode()
        steps = find_column(batch.schema, column, str(self.path))
        replaced = _replaced(batch.to_struct_array(), steps, pa.array(texts, pa.binary()))
        return pa.RecordBatch.from_arrays(replaced.flatten(), schema=batch.schema)


def rebatch(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Regroup batches so that all but the last have exactly `rows` rows, and none is empty."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= rows:
            joined = pa.concat_batches(held)
            count %= rows
            whole = joined.num_rows - count
            yield from (joined.slice(start, rows) for start in range(0, whole, rows))
            held = [joined.slice(whole)]
    if count:
        yield pa.concat_batches(held)


def stream_batches(stream: Any, name: str, rows: int) -> Generator[pa.RecordBatch, None, None]:  # noqa: ANN401 - a streamed dataset
    """Read a streamed dataset of the library `datasets`, block by block.

    Args:
        stream: The dataset.
        name: Its name, for errors.
        rows: Number of rows that are read at once.

    Raises:
        InputError: If the dataset cannot be read further.
    """
    done = 0
    # Readers that are left open abort the interpreter when it ends, so they are closed in any case.
    with contextlib.closing(iter(stream.with_format("arrow").iter(rows))) as tables:
        try:
            for table in tables:
                yield from table.combine_chunks().to_batches()
                done += table.num_rows
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(
                f"{name}: cannot be read beyond row {done}: {error}; fetch it again, or run the command once more"
            ) from error


def label_names(schema: pa.Schema, column: str) -> list[str] | None:
    """Return the names [label] that the library `datasets` stored for a column of labels; None if there are none."""
    written = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    feature = written.get("info", {}).get("features", {}).get(column)
    # For a column of lists the feature may be a list.
    return feature.get("names") if isinstance(feature, dict) else None


def _replaced(column: pa.Array, steps: Sequence[str], texts: pa.Array) -> pa.Array:
    """Return a column, or a struct of columns, with the texts in the column to which the names `steps` lead."""
    if not steps:
        kind = column.type
        return texts.cast(kind.value_type).cast(kind) if pa.types.is_dictionary(kind) else texts.cast(kind)
    fields = list(column.type)
    index = column.type.get_field_index(steps[0])
    children = [column.field(position) for position in range(len(fields))]
    children[index] = _replaced(children[index], steps[1:], texts)
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


class ParquetTable(ArrowTable):
    """A Parquet file."""

    format = "Parquet"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return head.startswith(b"PAR1") or name.endswith(".parquet")

    @classmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> Table:
        return cls(path, read_schema(path))

    def label_names(self, column: str) -> Sequence[str] | None:
        return label_names(read_schema(self.path), self.names[self.position(column)])

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with open_parquet(self.path) as file:
            yield from file.iter_batches(BLOCK_ROWS, columns=columns)

    def write(self, out: Path, kept: np.ndarray, new: NewTexts | None = None) -> None:
        done = 0
        with open_parquet(self.path) as file:
            schema = without_views(file.schema_arrow.empty_table()).schema
            with pq.ParquetWriter(out, schema, compression="zstd") as writer:
                for batch in file.iter_batches(BLOCK_ROWS):
                    if new is not None:
                        batch = self.with_new_texts(batch, done, new)
                    rows = without_views(pa.Table.from_batches([batch]))
                    writer.write_table(rows.filter(pa.array(kept[done : done + len(batch)])))
                    done += len(batch)


STATE, SPLITS = "state.json", "dataset_dict.json"


class SavedDataset(ArrowTable):
    """A folder that `Dataset.save_to_disk` wrote."""

    format = "a dataset on disk"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return False

    @classmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> Table:
        """Open a folder of one split.

        Raises:
            InputError: If it is a folder of several splits, or not one of `Dataset.save_to_disk`.
        """
        if (path / SPLITS).is_file():
            raise InputError(f"{path} has several splits; name the folder of one, such as {path / 'train'}", path=path)
        if not (path / STATE).is_file():
            raise InputError(
                f"{path} is a folder, but not one of `Dataset.save_to_disk`, which has {STATE}; name the files in it",
                path=path,
            )
        return cls(path, load_saved(path).features.arrow_schema)

    @property
    def identity(self) -> dict[str, Any]:
        # Other files in the folder do not count, because `Dataset.map` keeps its results there.
        state = read_json(self.path / STATE, "the list of files of a dataset")
        files = existing([self.path / Path(file["filename"]).name for file in state["_data_files"]])
        return {"format": self.format, "name": self.path.name, "files": [file_identity(file) for file in files]}

    def label_names(self, column: str) -> Sequence[str] | None:
        return getattr(load_saved(self.path).features.get(self.names[self.position(column)]), "names", None)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for table in load_saved(self.path).with_format("arrow").iter(BLOCK_ROWS):
            yield from table.combine_chunks().to_batches()

    def write(self, out: Path, kept: np.ndarray, new: NewTexts | None = None) -> None:
        dataset = load_saved(self.path)
        aside = out.with_name(f"{out.name}.arrow")
        if new is not None:

            def changed(table: pa.Table, rows: Sequence[int]) -> pa.Table:
                (batch,) = table.combine_chunks().to_batches()
                return pa.Table.from_batches([self.with_new_texts(batch, rows[0], new)])

            # The results of `map` would otherwise be kept in the folder that is read.
            mapped = dataset.with_format("arrow").map(
                changed,
                with_indices=True,
                batched=True,
                batch_size=BLOCK_ROWS,
                features=dataset.features,
                cache_file_name=str(aside),
                load_from_cache_file=False,
            )
            dataset = mapped.with_format(dataset.format["type"])
        dataset.select(np.flatnonzero(kept)).save_to_disk(str(out))
        aside.unlink(missing_ok=True)


def is_saved_dataset(path: Path) -> bool:
    """Whether a path is a folder that `save_to_disk` wrote, with one split or several."""
    return (path / STATE).is_file() or (path / SPLITS).is_file()


def load_saved(path: Path) -> Any:  # noqa: ANN401 - a dataset of `datasets`
    """Load the dataset in a folder that `Dataset.save_to_disk` wrote.

    Raises:
        InputError: If it cannot be read.
    """
    import datasets

    datasets.disable_progress_bars()
    try:
        return datasets.load_from_disk(str(path))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise InputError(f"{path}: this dataset cannot be read: {error}", path=path) from None
