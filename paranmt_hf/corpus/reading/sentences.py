"""Sentences read from text files, files with columns, corpora and datasets on the Hub."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa

from paranmt_hf.corpus.reading.arrow_tables import is_saved_dataset
from paranmt_hf.corpus.reading.formats import find_format, open_table
from paranmt_hf.corpus.reading.hub_dataset import HubDataset, is_on_hub
from paranmt_hf.corpus.reading.normalisation import decode, normalise
from paranmt_hf.corpus.reading.plain_text import PlainText
from paranmt_hf.corpus.reading.readers import LineFiles, Reader, Report, TableFiles
from paranmt_hf.corpus.reading.splitting import SentenceSplitter
from paranmt_hf.corpus.release.release import checked_files, fetch_release
from paranmt_hf.corpus.release.schema import SIDES
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.hub.client import split_revision
from paranmt_hf.util.files import check_regular, source_name
from paranmt_hf.util.wording import counted

SENTENCE = "sentence"  # Name of the column of sentences in the readers of this module
TRANSLATION = "translation"  # Name of the column with translations, which a teacher reads in place of the sentences


def open_sentences(path: str | Path, column: str | None = None, option: str = "column") -> Reader:
    """Open the sentences of one source, which are read as the column `sentence`.

    Args:
        path: A text file, a file of any format with columns (docs/formats.md), a folder of `Dataset.save_to_disk`, or
            the folder of a corpus.
        column: Name or number of the column in a file with columns, which may be left out if only one has text; in a
            corpus `reference` (default) or `translation`.
        option: Name of the option for the column, in errors.

    Raises:
        InputError: If the source or the column does not exist, or the user must name the column.
    """
    path = Path(path).expanduser()
    (reader,) = _of_path(path, None if column is None else [column], option, sides=SIDES[:1])
    if column is not None and isinstance(reader, LineFiles):
        raise InputError(
            f"{path} is a text file, which has no columns; leave `{option}` out", path=path, option=option
        )
    return reader


def all_lines(sentences: Reader) -> Iterator[pa.Array]:
    """Read all sentences, so that each keeps its position: nulls as empty texts, texts that are not UTF-8 as null."""
    for piece in sentences.pieces():
        column = piece.columns[0]
        yield normalise(decode(column.fill_null(pa.scalar("", column.type))))


class SentenceSources:
    """Sentences of one or more sources, which can be read repeatedly.

    Attributes:
        names: Names of the sources, without folders.
        datasets: Ids of datasets on the Hub among the sources.

    Args:
        sources: Sources of `open_sentences`, or ids of datasets on the Hub, which `@` and a revision may follow.
        columns: Columns of files, corpora and datasets, which are read one after the other. By default these are both
            sides of pairs, and in other files the only column of text.
        translations: For each source a text file that translates it line by line. In files with columns, translations
            are the column `translation` next to `sentence`.
        option: Name of the option for the columns, in errors; None if there is none.
        splitter: How the texts are split, which are documents; None if they are sentences.

    Raises:
        InputError: If a source or column does not exist, or the user must name a column, or documents have
            translations.
    """

    def __init__(
        self,
        sources: Sequence[str | Path],
        columns: Sequence[str] | None = None,
        translations: Sequence[str | Path] | None = None,
        *,
        option: str | None = "columns",
        splitter: SentenceSplitter | None = None,
    ) -> None:
        columns = columns or None
        if not sources:
            raise InputError("there is nothing to train on: name text files, Parquet, corpora or a data set")
        if translations is not None and len(translations) != len(sources):
            found = f"{counted(len(translations), 'file')} for {len(sources)} of `text`"
            raise InputError(
                f"`translations` must have a file for each of `text`, found {found}", option="translations"
            )
        self.names: list[str] = []
        self.datasets: list[str] = []
        self._readers: list[Reader] = []
        for source, translated in zip_longest(map(str, sources), translations or ()):
            self.names.append(source_name(source))
            if translated is not None:
                files = {SENTENCE: Path(source).expanduser(), TRANSLATION: Path(translated).expanduser()}
                for path in files.values():
                    check_regular(path)
                    if path.is_dir() or (path.exists() and find_format(path) is not PlainText):
                        raise InputError(
                            f"{path}: `translations` and its `text` are text files; a file with columns has "
                            f"{SENTENCE} and {TRANSLATION}",
                            option="translations",
                            path=path,
                        )
                self._readers.append(LineFiles(files))
            elif is_on_hub(source):
                self.datasets.append(split_revision(source)[0])
                self._readers += _of_hub(source, columns, option)
            else:
                self._readers += _of_path(Path(source).expanduser(), columns, option)
        if columns and all(isinstance(reader, LineFiles) for reader in self._readers):
            raise InputError("`columns` is for files with columns, corpora and datasets", option="columns")
        if splitter is not None:
            refuse(
                self.translated,
                "`split` is for text without translations, whose sentences would no longer belong together; split and "
                "align both with another program, and write one sentence on a line",
                option="split",
            )
            for reader in self._readers:
                reader.splitters = {SENTENCE: splitter}

    @property
    def identity(self) -> list[dict[str, Any]]:
        """Everything that determines the sentences, as JSON values; files are hashed at each call."""
        return [dict(reader.identity) for reader in self._readers]

    @property
    def translated(self) -> bool:
        """Whether any sentences have translations."""
        return any(TRANSLATION in reader.columns for reader in self._readers)

    def batches(self, report: Report) -> Iterator[pa.Array]:
        """Read the usable sentences [sentence], source after source; the report counts the others."""
        for reader in self._readers:
            for batch in reader.batches(report):
                yield batch[SENTENCE]

    def rows(self, report: Report) -> Iterator[pa.Table]:
        """Read the usable sentences as `batches` does, next to their translations.

        The translation of a source without any is the sentence itself.
        """
        for reader in self._readers:
            column = TRANSLATION if TRANSLATION in reader.columns else SENTENCE
            for batch in reader.batches(report):
                yield pa.table({SENTENCE: batch[SENTENCE], TRANSLATION: batch[column]})


def _of_path(
    path: Path, columns: Sequence[str] | None, option: str | None, *, sides: Sequence[str] = SIDES
) -> list[Reader]:
    """Open the sentences of a file or a folder.

    Args:
        path: The file or folder.
        columns: Columns that the user names; None for the default ones.
        option: Name of the option for the columns, in errors; None if there is none.
        sides: Sides of pairs that are read by default.

    Returns:
        A reader for each column, whose sentences are the column `sentence`.
    """
    check_regular(path)
    if path.is_dir() and not is_saved_dataset(path):
        files = checked_files(path)
        if unknown := [column for column in columns or () if column not in SIDES]:
            raise InputError(
                f"{path}: a corpus has the sides {' and '.join(SIDES)}, not {unknown[0]!r}", path=path, option=option
            )
        return [TableFiles(files, {SENTENCE: column}) for column in columns or sides]
    table = open_table(path, columns or [])
    if isinstance(table, PlainText):
        return [LineFiles({SENTENCE: path})]
    if columns is None and sides == SIDES:
        if set(SIDES) <= set(table.names):
            columns = SIDES
        elif {SENTENCE, TRANSLATION} <= set(table.names):
            return [TableFiles([table], {SENTENCE: SENTENCE, TRANSLATION: TRANSLATION})]
    if columns is None:
        columns = [table.text_column(None, option)]
    return [TableFiles([table], {SENTENCE: table.text_column(column, option)}) for column in columns]


def _of_hub(source: str, columns: Sequence[str] | None, option: str | None) -> Sequence[Reader]:
    """Open the sentences of a corpus or another dataset on the Hub; see `_of_path`."""
    name, revision = split_revision(source)
    if (found := fetch_release(name, revision)) is not None:
        return [TableFiles(found.files, {SENTENCE: column}) for column in columns or SIDES]
    if columns is None:
        advice = (
            "save the column of sentences as a file" if option is None else f"say which it is, with `{option}` NAME"
        )
        raise InputError(f"{name} is not a corpus, and may have several columns: {advice}", option=option)
    return [HubDataset(name, {SENTENCE: column}, revision=revision) for column in columns]
