"""Where text comes from, as options: two aligned files, or files or a dataset with columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from paranmt_hf.corpus.bitext.hub_dataset import HubDataset
from paranmt_hf.corpus.bitext.readers import (
    MAX_CHARACTERS,
    AlignedText,
    LineFiles,
    ParquetFiles,
    Reader,
    TabFile,
    TextOptions,
)
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import split_revision
from paranmt_hf.util.settings import Advanced, Count, check


@dataclass(frozen=True)
class TextInput:
    """Text: two aligned files, or files or a dataset with columns. Text without a foreign side is paraphrased.

    Attributes:
        source: File of the foreign side, one sentence on a line (plain, .gz, .xz, .zst).
        reference: File of the other side, aligned with `source`: English, or the language of the corpus.
        data: TSV or Parquet files, or a dataset: a folder, or an id on the Hub, which `@` and a revision may follow.
        columns: Columns of `data`, such as source=2,reference=1,origin=3 (TSV, from 1) or source=cs,reference=en.
        dataset_config: Config of the dataset.
        dataset_split: Split of the dataset.
        max_characters: Maximum length of a sentence; rows with a longer one are dropped.
    """

    source: Path | None = None
    reference: Path | None = None
    data: tuple[str, ...] | None = None
    columns: Mapping[str, str] | None = None
    dataset_config: Annotated[str | None, Advanced] = None
    dataset_split: Annotated[str, Advanced] = "train"
    max_characters: Annotated[Count, Advanced] = MAX_CHARACTERS

    def __post_init__(self) -> None:
        check(self)
        if (self.reference is None) == (self.data is None) or (self.data and self.source):
            raise InputError("give the text once: `reference`, with `source` if it is a bitext, or `data`")
        if self.columns and not self.data:
            raise InputError("`columns` is for `data`; `source` and `reference` have one sentence on a line")

    def open(self) -> AlignedText:
        """Open the text: columns `source` and `reference`, or `reference` alone, and `origin` if it is named."""
        if self.data is None:
            files = {"source": self.source, "reference": self.reference}
            given = {name: path for name, path in files.items() if path is not None}
            return LineFiles(given, max_characters=self.max_characters)
        columns = dict(self.columns or {})
        if not columns and not _is_table(self.data, ".parquet") and all(Path(one).is_file() for one in self.data):
            raise InputError("TSV files need `columns`, which numbers them from 1, such as source=2,reference=1")
        columns = columns or {"source": "source", "reference": "reference"}
        if "reference" not in columns:
            raise InputError("`columns` must name reference, such as reference=text", option="columns")
        check_names(columns, ["source", "reference", "origin"])
        options: TextOptions = {"max_characters": self.max_characters, "optional": columns.keys() & {"origin"}}
        if len(self.data) == 1 and not Path(self.data[0]).expanduser().is_file():
            name, revision = self.data[0], None
            if not Path(name).expanduser().exists():
                name, revision = split_revision(name)
            config, split = self.dataset_config, self.dataset_split
            return HubDataset(name, columns, config=config, split=split, revision=revision, **options)
        return open_table([Path(one).expanduser() for one in self.data], columns, options)


def open_table(files: list[Path], columns: Mapping[str, str], options: TextOptions) -> Reader:
    """Open Parquet or TSV files; columns of the latter are numbered from 1."""
    if _is_table(files, ".parquet"):
        return ParquetFiles(files, columns, **options)
    for name, column in columns.items():
        if not column.isdigit() or column == "0":
            raise InputError(f"`columns` {name}={column}: columns of a TSV file are numbered from 1", option="columns")
    return TabFile(files, {name: int(column) for name, column in columns.items()}, **options)


def _is_table(files: Collection[str | Path], suffix: str) -> bool:
    """Tell whether files have a suffix; either all or none."""
    found = {Path(file).suffix == suffix for file in files}
    if len(found) > 1:
        raise InputError("give either Parquet files or TSV files, not both at once")
    return found == {True}


def check_names(columns: Collection[str], known: Collection[str]) -> None:
    """Refuse unknown names of columns."""
    if unknown := set(columns) - set(known):
        raise InputError(f"`columns` can name {', '.join(known)}, not {', '.join(sorted(unknown))}", option="columns")
