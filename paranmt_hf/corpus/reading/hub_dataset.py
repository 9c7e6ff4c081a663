"""Datasets on the Hub and in folders, read by the library `datasets`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from paranmt_hf.corpus.reading.arrow_tables import read_column, stream_batches
from paranmt_hf.corpus.reading.labels import LABEL, check_label_names
from paranmt_hf.corpus.reading.readers import Reader, TextOptions
from paranmt_hf.corpus.reading.tables import BLOCK_ROWS, Piece, file_identity
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import explain, fetching, is_id, split_revision
from paranmt_hf.hub.repository import own_files
from paranmt_hf.util.files import check_regular

# A name with one of these suffixes is a file, not an id on the Hub: all suffixes of docs/formats.md.
FILE_SUFFIXES = frozenset(
    ".bin .bz2 .csv .gz .json .jsonl .jsonlines .ndjson .parquet .po .pot .sdlxliff .sgm .sgml .tab .tar .tmx .tsv "
    ".txt .xlf .xliff .xml .xz .zip .zst".split()
)


def is_on_hub(source: str) -> bool:
    """Whether a source is the id of a dataset on the Hub, rather than a file, even one that is missing.

    Ids may contain dots: `organisation/name-1.5` is one, `organisation/name.tsv` is not.
    """
    path, name = Path(source).expanduser(), split_revision(source)[0]
    check_regular(path)
    suffix = Path(name).suffix
    # The end of a version, as in `organisation/name-1.5`, is no suffix of a file.
    is_suffix = suffix != "" and not suffix[1:2].isdigit()
    is_file = suffix.lower() in FILE_SUFFIXES or (is_suffix and path.parent.is_dir())
    return is_id(name) and not path.exists() and not is_file


def split_dataset(text: str) -> tuple[str, str | None, str]:
    """Split `ID:CONFIG:SPLIT` into id, config (None if left out) and split (default: "train").

    An existing path is an id as a whole, and the colon of a Windows drive separates nothing.
    """
    if Path(text).expanduser().exists():
        return text, None, "train"
    drive = text[:2] if re.match(r"[A-Za-z]:[\\/]", text) else ""
    name, _, rest = text[len(drive) :].partition(":")
    config, _, split = rest.partition(":")
    return drive + name, config or None, split or "train"


class HubDataset(Reader):
    """A dataset on the Hub or in a local folder, read as a stream.

    The revision is resolved at the first use, so that all uses of this object read the same rows.

    Args:
        id: Id on the Hub, or folder.
        columns: For each column of the reader the name of the column in the dataset, or a path such as
            `translation.cs` (the layout of OPUS and WMT).
        config: Config of the dataset; None for the default one.
        split: Split of the dataset.
        revision: Branch, tag or commit on the Hub; None for the main branch.
        options: See `TextOptions`.
    """

    def __init__(
        self,
        id: str,
        columns: Mapping[str, str],
        *,
        config: str | None = None,
        split: str = "train",
        revision: str | None = None,
        **options: Unpack[TextOptions],
    ) -> None:
        super().__init__(columns, **options)
        self.paths = dict(columns)
        self.id, self.config, self.split, self.revision = str(id), config, split, revision
        self.label = f"dataset {self.id!r}, split {split!r}"
        self._local = Path(self.id).is_dir()

    def source(self) -> dict[str, object]:
        """Return what identifies the rows: the commit on the Hub, or the hashes of the files in the folder."""
        chosen = {"config": self.config, "split": self.split, "columns": self.paths}
        if self._local:
            return {"kind": "folder", "files": [file_identity(path) for path in self._local_files()], **chosen}
        return {"kind": "hub", "dataset": self.id, "revision": self._commit, **chosen}

    def column_names(self) -> list[str]:
        """Return the names of the columns; if the dataset does not state them, those of its first row."""
        stream = self._stream()
        return list(stream.features or next(iter(stream), {}))

    def pieces(self) -> Iterator[Piece]:
        if self._local:
            self._local_files()
        stream = self._stream()
        if LABEL in self.paths and stream.features:
            names = getattr(stream.features.get(self.paths[LABEL]), "names", None)
            check_label_names(names, self.paths[LABEL], self.label)
        numbers = [path for name, path in self.paths.items() if name in {LABEL, *self.numbers}]
        rows = 0
        with contextlib.closing(stream_batches(stream, self.label, BLOCK_ROWS)) as batches:
            for batch in batches:
                columns = []
                for path in self.paths.values():
                    columns.append(read_column(batch, path, self.label, may_be_number=path in numbers))
                yield Piece(columns, f"{self.label}, row (from 0) ", rows)
                rows += batch.num_rows

    def _stream(self) -> Any:  # noqa: ANN401 - a streamed dataset
        """Open the split as a stream."""
        from datasets import load_dataset

        revision = {} if self._local else {"revision": self._commit}
        return self._load(load_dataset, split=self.split, streaming=True, **revision)

    def _load(self, load: Callable[..., Any], **options: object) -> Any:  # noqa: ANN401
        """Call a function of `datasets` with id, config and options, and turn its errors into `InputError`."""
        try:
            return load(self.id, self.config, **options)
        # A wrong name, config, split or layout raises one of these.
        except (OSError, ValueError, RuntimeError) as error:
            why = error if self._local else explain(error, self.id, "dataset", self.revision)
            raise InputError(f"{self.label}: cannot be read: {why}") from error

    def _local_files(self) -> list[Path]:
        """Return the files of the split in the folder, sorted."""
        from datasets import load_dataset_builder

        files = own_files(Path(self.id), lambda: self._load(load_dataset_builder))
        # A slice such as `train[:10%]` is not a split of its own; then all files count.
        chosen = [files[self.split]] if self.split in files else files.values()
        return sorted(path for group in chosen for path in group)

    @cached_property
    def _commit(self) -> str:
        """The commit on the Hub that the revision names, resolved once."""
        from huggingface_hub import HfApi

        with fetching(self.id, "dataset", self.revision):
            return HfApi().dataset_info(self.id, revision=self.revision).sha
