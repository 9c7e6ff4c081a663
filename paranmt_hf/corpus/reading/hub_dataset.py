"""Datasets on the Hub and in folders, as the library `datasets` loads them."""

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

# Names that end so are files, not ids on the Hub: those of docs/formats.md, read or refused there.
FILE_SUFFIXES = frozenset(
    ".bin .bz2 .csv .gz .json .jsonl .jsonlines .ndjson .parquet .po .pot .sdlxliff .sgm .sgml .tab .tar .tmx .tsv "
    ".txt .xlf .xliff .xml .xz .zip .zst".split()
)


def is_on_hub(source: str) -> bool:
    """Whether a source is an id on the Hub, which may contain dots, and not the name of a file that is missing."""
    path, name = Path(source).expanduser(), split_revision(source)[0]
    check_regular(path)
    suffix = Path(name).suffix
    # What follows the dot of a version, as in `organisation/name-1.5`, is no ending, whatever folders are here.
    may_end_so = suffix != "" and not suffix[1:2].isdigit()
    is_file = suffix.lower() in FILE_SUFFIXES or (may_end_so and path.parent.is_dir())
    return is_id(name) and not path.exists() and not is_file


def split_dataset(text: str) -> tuple[str, str | None, str]:
    """Split `ID:CONFIG:SPLIT` into its parts; existing paths and Windows drive letters stay whole."""
    if Path(text).expanduser().exists():
        return text, None, "train"
    drive = text[:2] if re.match(r"[A-Za-z]:[\\/]", text) else ""
    name, _, rest = text[len(drive) :].partition(":")
    config, _, split = rest.partition(":")
    return drive + name, config or None, split or "train"


class HubDataset(Reader):
    """A dataset on the Hub, or in a local folder, read as a stream.

    A column is a name or a path such as `translation.cs` (the layout of OPUS and WMT). The revision is resolved at the
    first use, so that all uses of this object read the same rows.
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
        """Return the commit on the Hub, or the hashes of the files of a folder."""
        chosen = {"config": self.config, "split": self.split, "columns": self.paths}
        if self._local:
            return {"kind": "folder", "files": [file_identity(path) for path in self._local_files()], **chosen}
        return {"kind": "hub", "dataset": self.id, "revision": self._commit, **chosen}

    def column_names(self) -> list[str]:
        """Names of the columns; of a dataset that does not say them, those of its first row."""
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
        from datasets import load_dataset

        revision = {} if self._local else {"revision": self._commit}
        return self._load(load_dataset, split=self.split, streaming=True, **revision)

    def _load(self, load: Callable[..., Any], **options: object) -> Any:  # noqa: ANN401
        try:
            return load(self.id, self.config, **options)
        # What a wrong name, config, split or layout raises.
        except (OSError, ValueError, RuntimeError) as error:
            why = error if self._local else explain(error, self.id, "dataset", self.revision)
            raise InputError(f"{self.label}: cannot be read: {why}") from error

    def _local_files(self) -> list[Path]:
        from datasets import load_dataset_builder

        files = own_files(Path(self.id), lambda: self._load(load_dataset_builder))
        # A slice such as `train[:10%]` is not a key: then all files count.
        chosen = [files[self.split]] if self.split in files else files.values()
        return sorted(path for group in chosen for path in group)

    @cached_property
    def _commit(self) -> str:
        from huggingface_hub import HfApi

        with fetching(self.id, "dataset", self.revision):
            return HfApi().dataset_info(self.id, revision=self.revision).sha
