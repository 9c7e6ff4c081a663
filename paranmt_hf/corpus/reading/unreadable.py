"""Formats that no command reads, recognised by first bytes or suffix, each with advice on what to do instead."""

from __future__ import annotations

import codecs
import io
import re
import tarfile
import zipfile
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from paranmt_hf.corpus.reading.lines import OTHER_MARKS, unpacked
from paranmt_hf.corpus.reading.xml_stream import root_of
from paranmt_hf.errors import InputError


class Unreadable(NamedTuple):
    """A format that is refused: name, advice to the user, first bytes of such files, and suffixes in lower case."""

    name: str
    advice: str
    signatures: tuple[bytes, ...] = ()
    suffixes: tuple[str, ...] = ()


_SPREADSHEET = "save it as CSV (UTF-8) in the program that made it"
_DOCUMENT = "save its text as a plain text file (UTF-8)"
_UNPACK = "unpack it, and name the files in it"
_PANDAS = "write Parquet in the program that made it, such as with `frame.to_parquet(...)` of pandas"

# Formats that are zip archives inside come before zip archives. No suffix here may be the code of a language, because
# files of texts are named like `corpus.pt`.
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
    # Without this the numbers and times of subtitles would be read as sentences.
    Unreadable(
        "a file of subtitles",
        "write their texts into a plain text file, a sentence on a line",
        (b"WEBVTT", b"0\n00:", b"0\r\n00:", b"1\n00:", b"1\r\n00:"),
    ),
    Unreadable("XML of no known format", "write its texts as TSV, CSV or JSON lines", (b"<?xml",), (".xml",)),
    Unreadable("a file of YAML", "write its texts as JSON lines", suffixes=(".yaml", ".yml")),
)


def refuse_unreadable(path: Path, name: str, head: bytes) -> None:
    """Raise an error if a file is in a format that no command reads.

    Args:
        path: The file.
        name: Its name in lower case, without a suffix such as `.gz`.
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
            if kind.name in ("a zip archive", "a tar archive"):
                raise archive_error(path)
            raise InputError(f"{path} is {kind.name}, which is not read; {kind.advice}", path=path)
    if head[257:262] == b"ustar":
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
    # The last bytes are left out, because they may be part of a character.
    if b"\xff" in head or "\ufffd" in head[:-4].decode("utf8", "replace"):
        raise InputError(
            f"{path} is binary and of no format that is read (docs/formats.md); write its texts as TSV, CSV, JSON "
            "lines or Parquet",
            path=path,
        )


def archive_error(path: Path) -> InputError:
    """Make the error that refuses an archive; it lists the members and says how to unpack and use them."""
    is_zip = zipfile.is_zipfile(path) or path.suffix.lower() == ".zip"
    members: list[str] = []
    with suppress(zipfile.BadZipFile, tarfile.TarError):
        if is_zip:
            with zipfile.ZipFile(path) as archive:
                members = archive.namelist()
        else:
            # A tar archive has no list of its members, so only its first 16 blocks are searched.
            start = b"".join(islice(unpacked(path), 16))
            with tarfile.open(fileobj=io.BytesIO(start), mode="r:") as opened:
                for member in opened:
                    members.append(member.name + "/" * member.isdir())
    # Archives of OPUS also hold notes and the numbers of sentences, which are no data.
    no_data = re.compile(r"(^|/)(readme|licen[cs]e|copying|\.|__macosx)|\.ids$|/$", re.IGNORECASE)
    useful = [name for name in members if not no_data.search(name)]
    shown = ", ".join(useful[:8]) + (", ..." if len(useful) > 8 else "")
    unpack = f"unzip {path.name}" if is_zip else f"tar -xf {path.name}"
    use = "the unpacked files"
    # The files of a bitext, such as corpus.cs-en.cs and corpus.cs-en.en, have names that differ in the last part.
    sides = [match for name in useful if (match := re.fullmatch(r"(.+)\.([a-z]{2,3}(?:[_-][A-Za-z]+)?)", name))]
    if len(sides) == 2 and sides[0][1] == sides[1][1]:
        source, reference = (match[0] for match in sorted(sides, key=lambda match: match[2] == "en"))
        use = f"for `paranmt build`: --source {source} --reference {reference}; for other commands: {reference}"
    return InputError(
        f"{path} is an archive of {shown or 'no data'}; unpack it with `{unpack}`, and give {use}", path=path
    )
