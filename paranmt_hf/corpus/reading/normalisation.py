"""Turns the bytes of a file into numbers, and into text in the normal form that corpora store."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.tables import refuse_row
from paranmt_hf.text.normal_form import change_rows
from paranmt_hf.text.tokens import rows_at, text_bytes

# Finds text that is not in normal form. `[^\PZ ]` is every white space except the blank. Matching takes a tenth of the
# time of replacing, so only rows with a match are replaced.
_UNTIDY = r"\A | \z|  |[^\PZ ]|\p{Cc}"


def normalise(column: pa.Array) -> pa.Array:
    """Normalise text [row], string, to the form that corpora store; null stays null.

    The result is in Unicode NFC, by the Unicode data of Python. Every run of white space and control characters
    (categories Z* and Cc, NUL included) becomes one blank, and is removed at either end. Nothing else changes: quotes,
    case, soft hyphens and zero-width joiners stay.
    """
    # Most rows that are not normal only have a carriage return or a blank at an end, and trimming is fast.
    column = pc.ascii_trim_whitespace(column)
    # The pattern is slow, so it is tried only on the few rows with a byte that it can find.
    suspects = _rows_with(column, _may_be_untidy)
    untidy = pc.match_substring_regex(column.take(pa.array(suspects)), _UNTIDY)
    return composed(
        change_rows(
            column,
            suspects[np.asarray(untidy)],
            lambda rows: pc.ascii_trim(pc.replace_substring_regex(rows, r"[\pZ\p{Cc}]+", " "), " "),
        )
    )


def decode(column: pa.Array) -> pa.Array:
    """Decode bytes [row] from UTF-8; the result is null where the bytes are null or not UTF-8."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_decoded(value) for value in column.to_pylist()], pa.string())


def read_numbers(
    column: pa.Array,
    name: str,
    where: str,
    first: int,
    path: Path | None = None,
    *,
    optional: bool = False,
    skipped: np.ndarray | None = None,
) -> pa.Array:
    """Convert numbers [row], or bytes that spell them, to float32.

    Args:
        column: The values.
        name: Name of the column, for errors.
        where: Place of the rows, for errors; the number of a row follows it.
        first: Number of the first row.
        path: The file of the rows, for errors.
        optional: Whether a number may be missing, and is null then.
        skipped: Booleans [row] that mark rows in which a number may be missing although it is not optional.

    Raises:
        InputError: If a value is not a finite number, or is missing where it may not be.
    """
    values, missing = column, np.asarray(column.is_null())
    if pa.types.is_binary(column.type):
        values = normalise(decode(column))
        missing |= np.asarray(pc.fill_null(pc.equal(pc.utf8_length(values), 0), False))
        try:
            values = values.cast(pa.float64())
        except pa.ArrowInvalid:
            values = pa.array([_number(text) for text in values], pa.float64())
    numbers = values.cast(pa.float32(), safe=False)
    bad = ~np.isfinite(numbers.to_numpy(zero_copy_only=False))
    may_be_missing = missing if optional else missing & (False if skipped is None else skipped)
    expected = f"a finite number in column {name!r}"
    refuse_row(bad & ~may_be_missing, column, where, first, expected, "correct or remove the row", path=path)
    return numbers


def _decoded(value: bytes | None) -> str | None:
    """Decode bytes from UTF-8; None if they are None or not UTF-8."""
    try:
        return None if value is None else value.decode("utf-8")
    except UnicodeDecodeError:
        return None


def composed(column: pa.Array) -> pa.Array:
    """Convert text [row] to Unicode NFC: a letter and its accent become one character if there is one."""
    # Only characters from U+0300 on, whose first byte in UTF-8 is 0xCC or more, are composed or reordered, so text
    # without them is in NFC already. Arrow's own function before version 26 decomposes without composing again.
    return change_rows(
        column,
        _rows_with(column, lambda text: text >= 0xCC),
        lambda rows: pa.array([unicodedata.normalize("NFC", text) for text in rows.to_pylist()], pa.string()),
    )


def _rows_with(column: pa.Array, find: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the indices [row] of the rows that have a byte for which `find` is true."""
    text, bounds = text_bytes(column)
    return rows_at(np.flatnonzero(find(text)), bounds)


def _may_be_untidy(text: np.ndarray) -> np.ndarray:
    """Mark the bytes [byte] that may belong to a match of `_UNTIDY` inside a row; no match is missed."""
    found = (text < ord(" ")) | (text == 0x7F)
    # First bytes in UTF-8 of the other characters that the pattern finds: U+0080 to U+00BF, and U+1000 to U+3FFF.
    for lead in (0xC2, 0xE1, 0xE2, 0xE3):
        found |= text == lead
    blank = text == ord(" ")
    found[1:] |= blank[1:] & blank[:-1]
    return found


def _number(text: pa.Scalar) -> float | None:
    """Convert text to a number; None if it does not spell one."""
    try:
        return text.cast(pa.float64()).as_py()
    except pa.ArrowInvalid:
        return None
