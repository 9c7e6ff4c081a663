"""Sources of text: two aligned files, files with columns, or a dataset on the Hub or in a folder."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from paranmt_hf.corpus.reading.columns import file_identity, stream_batches
from paranmt_hf.corpus.reading.readers import (
    BLOCK_ROWS,
    LineFiles,
    ParquetFiles,
    Reader,
    TabFile,
    TableReader,
    TextOptions,
)
from paranmt_hf.corpus.reading.tables import Piece
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import explain, fetching, split_revision
from paranmt_hf.hub.repository import own_files
from paranmt_hf.util.settings import Settings


@dataclass(frozen=True)
class TextInput(Settings):
    """Text: two aligned files, or files or a dataset with columns. Text without a foreign side is paraphrased.

    Attributes:
        source: File of the foreign side, one sentence on a line (plain, .gz, .xz, .zst).
        reference: File of the other side, aligned with `source`: English, or the language of the corpus.
        data: TSV or Parquet files; or a dataset, `ID:CONFIG:SPLIT`, such as wmt/wmt14:de-en:train. ID is a folder or
            an id on the Hub, which `@` and a revision may follow; CONFIG and SPLIT (default: train) may be left out.
        columns: Columns of `data`, such as source=2,reference=1,origin=3 (TSV, from 1) or source=cs,reference=en.
    """

    source: Path | None = None
    reference: Path | None = None
    data: tuple[str, ...] | None = None
    columns: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source is not None and self.reference is None:
            raise InputError("`source` needs `reference`, the other side of the bitext", option="reference")
        if (self.reference is None) == (self.data is None) or (self.data and self.source):
            raise InputError("give the text once: `reference`, with `source` if it is a bitext, or `data`")
        if self.columns and not self.data:
            raise InputError("`columns` is for `data`; `source` and `reference` have one sentence on a line")

    def open(self) -> Reader:
        """Open the text: columns `source` and `reference`, or `reference` alone, and `origin` if it is named."""
        if self.data is None:
            sides = {"source": self.source, "reference": self.reference}
            return LineFiles({name: path for name, path in sides.items() if path is not None})
        files = [Path(one).expanduser() for one in self.data]
        columns = dict(self.columns or {})
        if not columns and not _are_parquet(files) and all(file.is_file() for file in files):
            raise InputError("TSV files need `columns`, which numbers them from 1, such as source=2,reference=1")
        columns = columns or {"source": "source", "reference": "reference"}
        if "reference" not in columns:
            raise InputError("`columns` must name reference, such as reference=text", option="columns")
        check_names(columns, ["source", "reference", "origin"])
        options: TextOptions = {"optional": columns.keys() & {"origin"}}
        if len(files) == 1 and not files[0].is_file():
            name, config, split = split_dataset(self.data[0])
            revision = None
            if not Path(name).expanduser().exists():
                name, revision = split_revision(name)
            return HubDataset(name, columns, config=config, split=split, revision=revision, **options)
        return open_table(files, columns, options)


def split_dataset(text: str) -> tuple[str, str | None, str]:
    """Split `ID:CONFIG:SPLIT` into its parts; existing paths and Windows drive letters stay whole."""
    if Path(text).expanduser().exists():
        return text, None, "train"
    drive = text[:2] if re.match(r"[A-Za-z]:[\\/]", text) else ""
    name, _, rest = text[len(drive) :].partition(":")
    config, _, split = rest.partition(":")
    return drive + name, config or None, split or "train"


def open_table(files: list[Path], columns: Mapping[str, str], options: TextOptions) -> Reader:
    """Open Parquet or TSV files; columns of the latter are numbered from 1."""
    if _are_parquet(files):
        return ParquetFiles(files, columns, **options)
    for name, column in columns.items():
        if not column.isdigit() or column == "0":
            numbered = ",".join(f"{name}={number}" for number, name in enumerate(columns, 1))
            raise InputError(
                f"`columns` {name}={column}: columns of a TSV file are numbered from 1, such as {numbered}; a line of "
                "names at its beginning has to be removed",
                option="columns",
            )
    return TabFile(files, {name: int(column) for name, column in columns.items()}, **options)


def _are_parquet(files: Collection[Path]) -> bool:
    """Whether files are Parquet; either all or none must be."""
    found = {file.suffix == ".parquet" for file in files}
    if len(found) > 1:
        raise InputError("give either Parquet files or TSV files, not both at once")
    return found == {True}


def check_names(columns: Collection[str], known: Collection[str]) -> None:
    """Reject unknown names of columns."""
    if unknown := set(columns) - set(known):
        raise InputError(f"`columns` can name {', '.join(known)}, not {', '.join(sorted(unknown))}", option="columns")


class HubDataset(TableReader):
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
        self.id, self.config, self.split, self.revision = str(id), config, split, revision
        self.label = f"dataset {self.id!r}, split {split!r}"
        self._local = Path(self.id).is_dir()

    def source(self) -> dict[str, object]:
        """Return the commit on the Hub, or the hashes of the files of a folder."""
        chosen = {"config": self.config, "split": self.split, "columns": self.paths}
        if self._local:
            return {"kind": "folder", "files": [file_identity(path) for path in self._local_files()], **chosen}
        return {"kind": "hub", "dataset": self.id, "revision": self._commit, **chosen}

    def pieces(self) -> Iterator[Piece]:
        from datasets import load_dataset

        options = {} if self._local else {"revision": self._commit}
        if self._local:
            self._local_files()
        stream = self._load(load_dataset, split=self.split, streaming=True, **options)
        rows = 0
        with contextlib.closing(stream_batches(stream, self.label, BLOCK_ROWS)) as batches:
            for batch in batches:
                yield self.piece(batch, self.label, rows)
                rows += batch.num_rows

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
