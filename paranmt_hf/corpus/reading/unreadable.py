"""Formats that no command reads, recognised by their first bytes or the end of the name, and what to do instead."""

from __future__ import annotations

import codecs
import io
import re
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from paranmt_hf.corpus.reading.lines import OTHER_MARKS, unpacked
from paranmt_hf.corpus.reading.xml_stream import root_of
from paranmt_hf.errors import InputError


class Unreadable(NamedTuple):
    """A format that is refused."""

    name: str
    advice: str
    signatures: tuple[bytes, ...] = ()
    suffixes: tuple[str, ...] = ()


_SPREADSHEET = "save it as CSV (UTF-8) in the program that made it"
_DOCUMENT = "save its text as a plain text file (UTF-8)"
_UNPACK = "unpack it, and name the files in it"
_PANDAS = "write Parquet in the program that made it, such as with `frame.to_parquet(...)` of pandas"

# Formats inside zip archives come before the archive itself. No suffix is a language's code, as in `corpus.pt`.
UNREADABLE = (
    Unreadable("a spreadsheet of Excel", _SPREADSHEET, suffixes=(".xlsx", ".xlsm", ".xlsb", ".xls")),
    Unreadable("an OpenDocument spreadsheet", _SPREADSHEET, suffixes=(".ods",)),
    Unreadable("a Word document", _DOCUMENT, suffixes=(".docx", ".doc")),
    Unreadable("an OpenDocument text", _DOCUMENT, suffixes=(".odt",)),
    Unreadable("a PDF document", _DOCUMENT, (b"%PDF-",), (".pdf",)),
    Unreadable("a rich text document", _DOCUMENT, (b"{\\rtf",), (".rtf",)),
    Unreadable("a NumPy archive", _PANDAS, suffixes=(".npz",)),
    Unreadable("a zip archive", _UNPACK, (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"), (".zip",)),
    Unreadable("a 7z archive", _UNPACK, (b"7z\xbc\xaf\x27\x1c",), (".7z",)),
    Unreadable("a RAR archive", _UNPACK, (b"Rar!\x1a\x07",), (".rar",)),
    Unreadable("a tar archive", _UNPACK, suffixes=(".tar", ".tgz", ".tbz", ".tbz2", ".txz", ".tzst")),
    Unreadable("compressed by lz4", "unpack it with `lz4 -d`", (b"\x04\x22\x4d\x18",), (".lz4",)),
    Unreadable("compressed by compress", "unpack it with `uncompress`", (b"\x1f\x9d",), (".z",)),
    Unreadable("compressed by lzma", "unpack it with `unlzma`", (b"\x5d\x00\x00",), (".lzma",)),
    Unreadable("compressed by lzip", "unpack it with `lzip -d`", (b"LZIP\x01",), (".lz",)),
    Unreadable("an old Office document", _SPREADSHEET, (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",)),
    Unreadable(
        "a SQLite database",
        "write the table as CSV with names, such as with `sqlite3 -header -csv FILE 'select * from TABLE'`",
        (b"SQLite format 3\0",),
        (".sqlite", ".sqlite3", ".db"),
    ),
    Unreadable("a DuckDB database", "write the table with `COPY ... TO 'FILE.parquet'`", suffixes=(".duckdb", ".ddb")),
    Unreadable(
        "an Arrow or Feather file", _PANDAS, (b"ARROW1\0\0", b"FEA1", b"\xff\xff\xff\xff"), (".arrow", ".feather")
    ),
    Unreadable("an ORC file", _PANDAS, suffixes=(".orc",)),
    Unreadable("an Avro file", _PANDAS, (b"Obj\x01",), (".avro",)),
    Unreadable("a NumPy array", _PANDAS, (b"\x93NUMPY",), (".npy",)),
    Unreadable("an HDF5 file", _PANDAS, (b"\x89HDF\r\n\x1a\n",), (".h5", ".hdf5", ".hdf")),
    Unreadable(
        "a pickle, which can run programs when it is read",
        _PANDAS,
        (b"\x80\x02", b"\x80\x03", b"\x80\x04\x95", b"\x80\x05\x95"),
        (".pkl", ".pickle"),
    ),
    Unreadable("a file of safetensors", "name a file of texts", suffixes=(".safetensors",)),
    Unreadable("an image", "name a file of texts", (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")),
    Unreadable(
        "a pointer of Git LFS, not the file itself",
        "get the file with `git lfs pull`",
        (b"version https://git-lfs.github.com/spec/",),
    ),
    Unreadable(
        "a page in HTML",
        "if the file was fetched from an address, that address shows a page; fetch the file itself",
        (b"<!doctype html", b"<!DOCTYPE html", b"<!DOCTYPE HTML", b"<html", b"<HTML"),
        (".html", ".htm"),
    ),
    # Numbers and times of subtitles would be sentences.
    Unreadable(
        "a file of subtitles",
        "write their texts into a plain text file, a sentence on a line",
        (b"WEBVTT", b"0\n00:", b"0\r\n00:", b"1\n00:", b"1\r\n00:"),
    ),
    Unreadable("XML of no known format", "write its texts as TSV, CSV or JSON lines", (b"<?xml",), (".xml",)),
    Unreadable("a file of YAML", "write its texts as JSON lines", suffixes=(".yaml", ".yml")),
)
ARCHIVES = ("a zip archive", "a tar archive")  # Their members are named
_TAR_SIGNATURE = slice(257, 262)


def refuse_unreadable(path: Path, name: str, head: bytes) -> None:
    """Reject a file in a format that no command reads.

    Args:
        path: The file.
        name: Its name in lower case without the suffix of a packing.
        head: Its first bytes, unpacked.
    """
    if root_of(head) == "cesAlign":
        raise InputError(
            f"{path} links the sentences of other files (XCES), and holds none; download the Moses form of the corpus "
            "from OPUS, which has a text file for each language",
            path=path,
        )
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    for kind in UNREADABLE:
        if head.startswith(kind.signatures) or text.startswith(kind.signatures) or name.endswith(kind.suffixes):
            if kind.name in ARCHIVES:
                raise archive_error(path)
            raise InputError(f"{path} is {kind.name}, which is not read; {kind.advice}", path=path)
    if head[_TAR_SIGNATURE] == b"ustar":
        raise archive_error(path)
    if head.startswith(tuple(OTHER_MARKS)) or b"\0" not in head:
        return
    # UTF-16 of European languages has a zero byte in every second place.
    if max(head[0::2].count(0), head[1::2].count(0)) > len(head) // 4:
        raise InputError(
            f"{path}: expected text in UTF-8, but every second byte is zero, as in UTF-16; convert it, such as with "
            "`iconv -f UTF-16LE -t UTF-8`",
            path=path,
        )
    # A character may be cut at the end.
    if b"\xff" in head or "\ufffd" in head[:-4].decode("utf8", "replace"):
        raise InputError(
            f"{path} is binary and of no format that is read (docs/formats.md); write its texts as TSV, CSV, JSON "
            "lines or Parquet",
            path=path,
        )


# Archives, such as those of OPUS and GloVe, are refused with their members and the command that unpacks them.
SHOWN = 8  # Members that the error names
LOOKED_AT = 1 << 24  # Bytes of a tar file that are searched for members, which have no list
# What archives hold next to the data: notes, and the numbers of the sentences of OPUS.
ASIDE = re.compile(r"(^|/)(readme|licen[cs]e|copying|\.|__macosx)|\.ids$|/$", re.IGNORECASE)
MOSES = re.compile(r"(.+)\.([a-z]{2,3}(?:[_-][A-Za-z]+)?)")  # corpus.cs-en.cs


def archive_error(path: Path) -> InputError:
    """The error that refuses an archive."""
    is_zip = zipfile.is_zipfile(path) or path.suffix.lower() == ".zip"
    members = _zip_members(path) if is_zip else _tar_members(path)
    useful = [name for name in members if not ASIDE.search(name)]
    shown = ", ".join(useful[:SHOWN]) + (", ..." if len(useful) > SHOWN else "")
    unpack = f"unzip {path.name}" if is_zip else f"tar -xf {path.name}"
    pair = _moses_pair(useful)
    use = "the unpacked files"
    if pair:
        use = f"for `paranmt build`: --source {pair[0]} --reference {pair[1]}; for the other commands: {pair[1]}"
    return InputError(
        f"{path} is an archive of {shown or 'no data'}; unpack it with `{unpack}`, and give {use}", path=path
    )


def _zip_members(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except zipfile.BadZipFile:
        return []


def _tar_members(path: Path) -> list[str]:
    """The first members of a tar archive."""
    names = []
    start = b""
    for block in unpacked(path):
        start += block
        if len(start) >= LOOKED_AT:
            break
    try:
        with tarfile.open(fileobj=io.BytesIO(start), mode="r:") as archive:
            for member in archive:
                names.append(member.name + "/" * member.isdir())
    except tarfile.TarError:
        # A member reaches beyond what was read.
        pass
    return names


def _moses_pair(names: Sequence[str]) -> tuple[str, str] | None:
    """The two sides of a bitext among names of files: equal but for the language at the end, English last."""
    found = [match for name in names if (match := MOSES.fullmatch(name))]
    if len(found) != 2 or found[0][1] != found[1][1]:
        return None
    first, second = sorted(found, key=lambda match: match[2] == "en")
    return first[0], second[0]
