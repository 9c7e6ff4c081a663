"""Bytes of a file as text and numbers: decoded, and normalised to the form that the corpus stores."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.tables import refuse_row
from paranmt_hf.text.normal_form import change_rows
from paranmt_hf.text.tokens import rows_at, text_bytes

# `[^\PZ ]` is every white space but the blank. Rows without a match keep their bytes, and matching costs a tenth of
# replacing.
_UNTIDY = r"\A | \z|  |[^\PZ ]|\p{Cc}"


def normalise(column: pa.Array) -> pa.Array:
    """Normalise text (string) to the form that the corpus stores; null stays null.

    Unicode NFC; every run of white space and control characters (categories Z* and Cc, NUL included) becomes one
    blank; none remains at either end. Nothing else changes: quotes, case, soft hyphens and zero-width joiners stay.
    The Unicode data of the composition is Python's.
    """
    # Most untidy rows only have a carriage return or a blank at an end, and this costs next to nothing.
    column = pc.ascii_trim_whitespace(column)
    # The pattern is slow, and few rows hold a byte that it can find.
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
    """Read bytes as UTF-8 text; null if the bytes are null or not UTF-8."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_decoded(value) for value in column.to_pylist()], pa.string())


def read_numbers(
    column: pa.Array, name: str, where: str, first: int, *, optional: bool = False, skipped: np.ndarray | None = None
) -> pa.Array:
    """Convert numbers, or bytes that spell them, to float32.

    Missing numbers are null where they are `optional`, and in the rows `skipped`, booleans [row].
    An error names the column `name` and its place: `where`, followed by the number of the row, counted from `first`.
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
    may_lack = missing if optional else missing & (False if skipped is None else skipped)
    expected = f"a finite number in column {name!r}"
    refuse_row(bad & ~may_lack, column, where, first, expected, "correct or remove the row")
    return numbers


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode("utf-8")
    except UnicodeDecodeError:
        return None


def composed(column: pa.Array) -> pa.Array:
    """Normalise text [sentence] to NFC: a letter and its accent become one character if possible."""
    # Text below U+0300 is its own NFC: composition and reordering need a character from there on, whose first byte in
    # UTF-8 is 0xCC or more. Not Arrow's own function: before version 26 it decomposes and does not compose again.
    return change_rows(
        column,
        _rows_with(column, lambda text: text >= 0xCC),
        lambda rows: pa.array([unicodedata.normalize("NFC", text) for text in rows.to_pylist()], pa.string()),
    )


def _rows_with(column: pa.Array, find: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Find the rows [row] with a byte that `find` marks."""
    text, bounds = text_bytes(column)
    return rows_at(np.flatnonzero(find(text)), bounds)


def _may_be_untidy(text: np.ndarray) -> np.ndarray:
    """Mark the bytes [byte] that may belong to a match of `_UNTIDY` within a row; no match is missed."""
    found = (text < ord(" ")) | (text == 0x7F)
    # First bytes of the characters outside ASCII that it may find: U+0080 to U+00BF, and U+1000 to U+3FFF.
    for lead in (0xC2, 0xE1, 0xE2, 0xE3):
        found |= text == lead
    blank = text == ord(" ")
    found[1:] |= blank[1:] & blank[:-1]
    return found


def _number(text: pa.Scalar) -> float | None:
    try:
        return text.cast(pa.float64()).as_py()
    except pa.ArrowInvalid:
        return None
