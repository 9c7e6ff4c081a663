"""Folders of `Dataset.save_to_disk` of `datasets`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.columns import file_identity, leaf_types, read_column
from paranmt_hf.corpus.reading.parquet_table import is_text
from paranmt_hf.corpus.reading.tables import BLOCK_ROWS, Piece, Table
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import existing
from paranmt_hf.util.records import read_json

STATE, SPLITS = "state.json", "dataset_dict.json"


class SavedDataset(Table):
    """A folder that `Dataset.save_to_disk` wrote."""

    format = "a dataset on disk"

    @classmethod
    def matches(cls, name: str, head: bytes) -> bool:
        return False

    @classmethod
    def open(cls, path: Path, named: Collection[str] = ()) -> Table:
        if (path / SPLITS).is_file():
            raise InputError(f"{path} has several splits; name the folder of one, such as {path / 'train'}", path=path)
        if not (path / STATE).is_file():
            raise InputError(
                f"{path} is a folder, but not one of `Dataset.save_to_disk`, which has {STATE}; name the files in it",
                path=path,
            )
        types = leaf_types(load(path).features.arrow_schema)
        return cls(path, [name for name, _ in types], [name for name, kind in types if is_text(kind)])

    @property
    def identity(self) -> dict[str, Any]:
        # Only the files of the dataset: `Dataset.map` keeps its results in the same folder.
        state = read_json(self.path / STATE, "the list of files of a dataset")
        try:
            files = existing([self.path / Path(file["filename"]).name for file in state["_data_files"]])
        except (KeyError, TypeError):
            raise InputError(f"{self.path / STATE} does not list the files of a dataset", path=self.path) from None
        return {"format": self.format, "name": self.path.name, "files": [file_identity(file) for file in files]}

    def label_names(self, column: str) -> Sequence[str] | None:
        return getattr(load(self.path).features.get(self.names[self.position(column)]), "names", None)

    def pieces(self, columns: Sequence[str], *, numbers: Collection[str] = ()) -> Iterator[Piece]:
        names = [self.names[self.position(column)] for column in columns]
        rows = 0
        for table in load(self.path).with_format("arrow").iter(BLOCK_ROWS):
            for batch in table.combine_chunks().to_batches():
                found = [
                    read_column(batch, name, str(self.path), number=column in numbers)
                    for name, column in zip(names, columns, strict=True)
                ]
                yield Piece(found, f"{self.path}, row (from 0) ", rows)
                rows += batch.num_rows

    def write(self, out: Path, kept: np.ndarray) -> None:
        load(self.path).select(np.flatnonzero(kept)).save_to_disk(str(out))


def is_saved_dataset(path: Path) -> bool:
    """Whether a path is a folder that `save_to_disk` wrote, of one split or several."""
    return (path / STATE).is_file() or (path / SPLITS).is_file()


def load(path: Path) -> Any:  # noqa: ANN401 - a dataset of `datasets`
    """Load the dataset of a folder."""
    import datasets

    datasets.disable_progress_bars()
    try:
        return datasets.load_from_disk(str(path))
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise InputError(f"{path}: this dataset cannot be read: {error}", path=path) from None
