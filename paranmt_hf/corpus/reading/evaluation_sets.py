"""Reads all text of evaluation sets in any layout, because training data must not share it with them."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.corpus.reading.arrow_tables import ParquetTable
from paranmt_hf.corpus.reading.comma_separated import BYTES, CommaSeparated, Form, find_form, read_separated
from paranmt_hf.corpus.reading.formats import find_format
from paranmt_hf.corpus.reading.json_tables import JsonObjects
from paranmt_hf.corpus.reading.lines import read_blocks
from paranmt_hf.corpus.reading.plain_text import PlainText
from paranmt_hf.corpus.reading.tab_separated import QUOTED_TABS, TabSeparated, has_quoted_fields
from paranmt_hf.corpus.reading.tables import Table, text_rows
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular
from paranmt_hf.util.parquet import open_parquet

# The label before a question of TREC, such as `NUM:dist `.
_TREC_LABEL = re.compile(r"\A[A-Z]+:\w+ (?=\S)")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class EvaluationSentences:
    """The distinct texts of evaluation sets, and the files they are from."""

    texts: list[str]  # The distinct texts, sorted
    sets: list[str]  # For each text [text] the first file that has it, as a path that begins with the given folder
    files: dict[str, int]  # Number of texts in each file that was read, repeated ones included
    unread: dict[str, str]  # For each other file the reason why it was not read

    @property
    def checksum(self) -> str:
        """SHA-256 of all texts, in hexadecimal."""
        return hashlib.sha256("\n".join(self.texts).encode("utf8", "surrogatepass")).hexdigest()


def read_sentences(*folders: str | Path) -> EvaluationSentences:
    """Read every text in every file of some folders and the folders below them.

    Any format of docs/formats.md is read, plain or packed; a folder may also be a single file. Lines are cut at tabs.
    Every field that holds a letter is a text: sentences, but also labels and headings, which are too short to do harm.
    In Parquet, JSON and JSON lines every string is a text. Files that are not UTF-8 are read as Latin-1. So STS of
    SemEval and SentEval, the STS benchmark, MR, CR, SUBJ, MPQA, SST, TREC, MRPC and SICK need no layouts of their own.

    Raises:
        InputError: If a folder does not exist, or no file in it can be read.
    """
    texts: dict[str, str] = {}
    files: dict[str, int] = {}
    unread: dict[str, str] = {}
    for folder in folders:
        path = Path(folder).expanduser()
        check_regular(path)
        if not path.exists():
            raise InputError(f"there is no folder {folder}; expected one with evaluation sets")
        inside = [file for file in sorted(path.rglob("*")) if not file.is_dir()] if path.is_dir() else [path]
        for file in inside:
            try:
                found = list(_texts(file))
            except _UnreadError as error:
                unread[str(file)] = str(error)
                continue
            files[str(file)] = len(found)
            for text in found:
                texts.setdefault(text, str(file.relative_to(path.parent)))
        if not any(str(file) in files for file in inside):
            reasons = "; ".join(f"{Path(name).name}: {reason}" for name, reason in list(unread.items())[:3])
            raise InputError(
                f"{folder} holds no evaluation set: expected text, TSV, CSV, JSON or Parquet files, found "
                f"{reasons or 'no file'}"
            )
    return EvaluationSentences(sorted(texts), [texts[text] for text in sorted(texts)], files, unread)


class _UnreadError(Exception):
    """The reason why a file of evaluation sets is not read."""


def _texts(file: Path) -> Iterator[str]:
    """Read the texts of a file, in any order, with white space normalised.

    Raises:
        _UnreadError: If the file holds no data by its name, or cannot be read.
    """
    if re.match(r"\.|(readme|license|licence|copying|changes)\b", file.name, re.IGNORECASE):
        raise _UnreadError("no data, by its name")
    if not file.is_file():
        raise _UnreadError("no file")
    try:
        for field in _fields_of(find_format(file), file):
            # `NUM:dist How far is it ...` of TREC is read without its label.
            text = " ".join(_TREC_LABEL.sub("", field.strip(), count=1).split())
            if _LETTER.search(text):
                yield text
    except (InputError, UnicodeDecodeError) as error:
        raise _UnreadError(str(error).replace(f"{file}: ", "").replace(f"{file} ", "")) from None


def _fields_of(kind: type[Table], file: Path) -> Iterator[str]:
    """Read all fields of a file whose format is `kind`.

    Lines with too many or too few fields are read too where possible, because all their text counts.
    """
    if kind is ParquetTable:
        with open_parquet(file) as opened:
            for batch in opened.iter_batches():
                yield from _strings(batch.to_pylist())
    elif issubclass(kind, JsonObjects):
        yield from _of_json(file)
    elif kind is CommaSeparated:
        yield from _of_records(file, find_form(file))
        if any(b"\t" in block for block in read_blocks(file)):
            # The files of the STS benchmark are TSV, but are named .csv.
            yield from _of_lines(file)
    elif kind is TabSeparated and has_quoted_fields(file):
        yield from _of_records(file, QUOTED_TABS)
    elif kind in (TabSeparated, PlainText):
        yield from _of_lines(file)
    else:
        table = kind.open(file)
        for _, cells in text_rows(table, table.texts):
            yield from cells


def _content(file: Path) -> str:
    """Read a text file in UTF-8, or in Latin-1 if it is not UTF-8."""
    raw = b"".join(read_blocks(file))
    if b"\0" in raw:
        raise _UnreadError("it is not text")
    return _decoded(raw)


def _decoded(raw: bytes) -> str:
    """Decode bytes from UTF-8, or from Latin-1 if they are not UTF-8."""
    try:
        return raw.decode("utf8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _of_lines(file: Path) -> Iterator[str]:
    """Read the fields of a file whose lines are cut at tabs.

    Quotes are text, because MRPC and the STS benchmark have unpaired ones.
    """
    for line in _content(file).split("\n"):
        yield from line.split("\t")


def _of_records(file: Path, form: Form) -> Iterator[str]:
    """Read the fields of a file with quoted fields; if its quotes are text after all, cut each line by itself."""
    try:
        for record in read_separated(file, form):
            for field in record.fields:
                yield _decoded(field.encode(BYTES))
    except InputError:
        # Some quote is text, as in the STS benchmark; then no field has several lines.
        for line in _content(file).split("\n"):
            try:
                yield from next(csv.reader([line], delimiter=form.separator), [])
            except csv.Error:  # Such as a carriage return within a field.
                yield from line.split(form.separator)


def _of_json(file: Path) -> Iterator[str]:
    """Read all strings of a JSON file: one value on any number of lines, or one value on each line."""
    content = _content(file)
    try:
        try:
            yield from _strings(json.loads(content))
        except ValueError:
            for line in content.split("\n"):
                if line.strip():
                    yield from _strings(json.loads(line))
    except (ValueError, RecursionError) as error:
        raise _UnreadError(f"it is not JSON: {error}") from None


def _strings(value: Any) -> Iterator[str]:  # noqa: ANN401 - whatever JSON holds
    """Return all strings inside a JSON value, those of nested objects and arrays included; keys are no texts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)
