"""Folders of `Dataset.save_to_disk` of `datasets`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.arrow_columns import ArrowTable
from paranmt_hf.corpus.reading.tables import BLOCK_ROWS, Table, file_identity
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import existing
from paranmt_hf.util.records import read_json

STATE, SPLITS = "state.json", "dataset_dict.json"


class SavedDataset(ArrowTable):
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
        return cls(path, load(path).features.arrow_schema)

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

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for table in load(self.path).with_format("arrow").iter(BLOCK_ROWS):
            yield from table.combine_chunks().to_batches()

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
