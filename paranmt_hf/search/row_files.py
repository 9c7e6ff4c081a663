"""Files of texts, whose rows are read in order, and of which some are written again in the same format."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
import lzma
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.columns import (
    MAX_LINE_BYTES,
    decode,
    file_identity,
    normalise,
    read_blocks,
    read_column,
)
from paranmt_hf.corpus.reading.readers import BLOCK_ROWS
from paranmt_hf.corpus.reading.sentences import only_text
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import existing
from paranmt_hf.util.parquet import open_parquet
from paranmt_hf.util.records import read_json

_PACKERS: dict[str, Callable[[Path], Any]] = {
    ".gz": lambda path: gzip.GzipFile(path, "wb", mtime=0),
    ".bz2": lambda path: bz2.open(path, "wb"),
    ".xz": lambda path: lzma.open(path, "wb"),
    ".zst": lambda path: pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "zstd"),
}
_DATASET = "state.json"  # A file of every folder of `Dataset.save_to_disk`


class TextRows:
    """The lines of a text file, each a text; subclasses have a `column` of texts in rows of another kind."""

    def __init__(self, path: Path, column: str | None) -> None:
        self.path, self.column = path, column

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the texts, as JSON values."""
        return {"files": [file_identity(file) for file in self._files], "column": self.column}

    @property
    def _files(self) -> list[Path]:
        return [self.path]

    def texts(self) -> Iterator[pa.Array]:
        """Read the texts of all rows, as the corpus stores them; empty where one is missing or not UTF-8."""
        for column in self._columns():
            yield normalise(decode(column).fill_null(""))

    def write(self, out: Path, kept: np.ndarray) -> None:
        """Write the rows that are `kept`, booleans [row], in order."""
        flags = iter(kept.tolist())
        with _PACKERS.get(self.path.suffix.lower(), lambda path: path.open("wb"))(out) as file:
            for raw, text in self._rows():
                if text is None or next(flags):
                    file.write(raw)

    def _columns(self) -> Iterator[pa.Array]:
        """Read the texts as they are, bytes."""
        texts = (text for _, text in self._rows() if text is not None)
        while some := list(islice(texts, BLOCK_ROWS)):
            yield pa.array(some, pa.binary())

    def _rows(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Read rows as they are, and their texts; None for what is no row, such as the line of names."""
        for line in self._lines():
            yield line, line

    def _lines(self) -> Iterator[bytes]:
        for block in read_blocks(self.path):
            for line in block.split(b"\n")[:-1]:
                yield line + b"\n"

    def _no_column(self, names: str, where: str = "") -> InputError:
        return InputError(
            f"{self.path}{where} has no column {self.column!r}, only {names}; name one with `column`", option="column"
        )


class JsonLines(TextRows):
    """JSON objects, one on each line; an empty line is a row without a text."""

    def _rows(self) -> Iterator[tuple[bytes, bytes | None]]:
        for number, line in enumerate(self._lines(), 1):
            yield line, self._text(line, f":{number}") if line.strip() else b""

    def _text(self, line: bytes, where: str) -> bytes:
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.path}{where}: this line is not JSON ({error})", path=self.path) from None
        if not isinstance(values, dict) or self.column not in values:
            raise self._no_column(", ".join(values) if isinstance(values, dict) else "a value", where)
        text = values[self.column]
        if not isinstance(text, str | None):
            raise InputError(f"{self.path}{where}: expected text in {self.column!r}, found {text!r}", path=self.path)
        return (text or "").encode("utf8", "surrogatepass")


class Fields(TextRows):
    """TSV or CSV with names in the first line; fields of CSV may be in quotes and span lines."""

    def _rows(self) -> Iterator[tuple[bytes, bytes | None]]:
        rows = self._split()
        raw, names = next(rows)
        if names.count(str(self.column)) != 1:
            raise self._no_column(", ".join(names))
        yield raw, None
        at = names.index(str(self.column))
        for raw, fields in rows:
            yield raw, fields[at].encode("utf8", "surrogateescape") if at < len(fields) else b""

    def _split(self) -> Iterator[tuple[bytes, list[str]]]:
        taken: list[bytes] = []

        def lines() -> Iterator[str]:
            for line in self._lines():
                taken.append(line)
                yield line.decode("utf8", "surrogateescape")

        tabs: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
        csv.field_size_limit(MAX_LINE_BYTES)
        try:
            for fields in csv.reader(lines(), strict=True, **(tabs if self.path.suffix.lower() == ".tsv" else {})):
                yield b"".join(taken), fields
                taken.clear()
        except csv.Error as error:
            raise InputError(f"{self.path}: a row is not CSV ({error}); correct it", path=self.path) from None


class ParquetRows(TextRows):
    """The rows of a Parquet file."""

    def _columns(self) -> Iterator[pa.Array]:
        with open_parquet(self.path) as file:
            column = self.column or only_text(file.schema_arrow, self.path)
            for batch in file.iter_batches(
                BLOCK_ROWS, columns=[column] if column in file.schema_arrow.names else None
            ):
                yield read_column(batch, column, str(self.path), number=False)

    def write(self, out: Path, kept: np.ndarray) -> None:
        done = 0
        with open_parquet(self.path) as file, pq.ParquetWriter(out, file.schema_arrow, compression="zstd") as writer:
            for batch in file.iter_batches(BLOCK_ROWS):
                writer.write_batch(batch.filter(pa.array(kept[done : done + len(batch)])))
                done += len(batch)


class DatasetRows(TextRows):
    """The rows of a dataset in a folder, as `Dataset.save_to_disk` writes it."""

    @property
    def _files(self) -> list[Path]:
        # Only those of the dataset: `Dataset.map` keeps its results in the same folder.
        state = read_json(self.path / _DATASET, "the list of files of a dataset")
        try:
            return existing([self.path / Path(file["filename"]).name for file in state["_data_files"]])
        except (KeyError, TypeError):
            raise InputError(f"{self.path / _DATASET} does not list the files of a dataset", path=self.path) from None

    def _dataset(self) -> Any:  # noqa: ANN401 - a dataset of `datasets`
        import datasets

        datasets.disable_progress_bars()
        try:
            return datasets.load_from_disk(str(self.path))
        except (OSError, ValueError, pa.ArrowException) as error:
            raise InputError(f"{self.path}: this dataset cannot be read: {error}", path=self.path) from None

    def _columns(self) -> Iterator[pa.Array]:
        dataset = self._dataset().with_format("arrow")
        column = self.column or only_text(dataset.features.arrow_schema, self.path)
        for table in dataset.iter(BLOCK_ROWS):
            for batch in table.combine_chunks().to_batches():
                yield read_column(batch, column, str(self.path), number=False)

    def write(self, out: Path, kept: np.ndarray) -> None:
        self._dataset().select(np.flatnonzero(kept)).save_to_disk(str(out))


_KINDS = {".parquet": ParquetRows, ".jsonl": JsonLines, ".csv": Fields, ".tsv": Fields}


def open_rows(path: str | Path, column: str | None = None) -> TextRows:
    """Open a file of texts, or a folder of `Dataset.save_to_disk`; a text file has no `column`."""
    path = Path(path).expanduser()
    if path.is_dir():
        if not (path / _DATASET).is_file():
            raise InputError(
                f"{path} is no dataset of `Dataset.save_to_disk`: it has no {_DATASET}; name the folder of one split, "
                "or a file",
                path=path,
            )
        return DatasetRows(path, column)
    existing([path])
    kind = _KINDS.get(path.suffix.lower(), TextRows)
    if kind is TextRows and column is not None:
        raise InputError(f"{path} is a text file, which has no columns; leave `column` out", option="column")
    if kind in (JsonLines, Fields) and column is None:
        raise InputError(f"{path} has columns; say which one holds the texts, with `column`", option="column")
    return kind(path, column)
