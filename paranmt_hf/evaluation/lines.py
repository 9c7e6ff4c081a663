"""Small text files that people edit and download: lines and numbers, checked where they enter."""

from __future__ import annotations

import math
from pathlib import Path

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular, decode_line


def read_lines(path: Path, *, or_latin1: bool = False) -> list[str]:
    r"""Read the lines of a UTF-8 file; only `\n` and `\r\n` end one, because text may hold any other separator.

    Args:
        path: The file.
        or_latin1: Read a file as Latin-1 that is not UTF-8, which text in Latin-1 with accents hardly ever is.

    Raises:
        InputError: The file is missing, empty, unreadable or not UTF-8; with file and line.
    """
    check_regular(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    if not raw.strip():
        raise InputError(f"{path} is empty: expected a line for each item; get the file anew")
    if or_latin1 and not _is_utf8(raw):
        raw = raw.decode("latin-1").encode()
    lines = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [decode_line(line, path, line_number).removesuffix("\r") for line_number, line in enumerate(lines, 1)]


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf8")
    except UnicodeDecodeError:
        return False
    return True


def parse_number(text: str, where: str, what: str) -> float:
    """Read a finite number.

    Args:
        text: As it stands in the file.
        where: File and line, for the error.
        what: What the number means, for the error.

    Raises:
        InputError: It is no finite number.
    """
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: expected {what}, which is a number, found {_short(text)}; check the columns")
    return value


def parse_sentence(text: str, where: str, column: str) -> str:
    """Strip the white space around a sentence.

    Raises:
        InputError: Nothing is left.
    """
    sentence = text.strip()
    if not sentence:
        raise InputError(f"{where}: expected a sentence in {column}, found none; check the columns")
    return sentence


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")
