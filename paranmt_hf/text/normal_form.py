"""The normal form, in which texts are compared: texts that look the same to a reader should have the same one.

Texts are stored as they were written. Their normal form decides which texts are copies and near-copies, which
sentences are those of an evaluation set, and which numbers, negations, names and addresses texts hold:

- HTML entities are characters: `&#39;` and `&apos;` are `'`, `&amp;` and `&amp;amp;` are `&`;
- U+2018, U+2019, U+00B4, U+02BC, U+2032, the backtick and the like are `'`; U+2010, U+2011 and U+2212 are `-`;
- soft hyphens, zero-width blanks and joiners, byte order marks, marks of direction and variation are left out;
- fullwidth and halfwidth letters, ligatures, Arabic presentation forms, and letters of mathematics are the plain ones;
- digits of every script are `0` to `9`, and the Arabic signs for a decimal point and per cent are `.` and `%`;
- an accent and its letter are one character if possible (Unicode NFC), and a run of white space is one blank.

Case, punctuation and superscripts stay. The Unicode data is Python's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from html import unescape
from html.entities import html5
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.text.fast_split import characters_of
from paranmt_hf.text.tokens import PART_BYTES, rows_at, text_bytes

SIGNS = {
    **dict.fromkeys("\u2018\u2019\u201b\u00b4\u02b9\u02bb\u02bc\u02bd\u2032\u055a\ua78c`", "'"),
    **dict.fromkeys("\u2010\u2011\u2212", "-"),
    **{"\u066a": "%", "\u066b": ".", "\u066c": ","},
}
# No code point from this one on changes. Below it are all letters and digits but the rarer Chinese characters.
END = 0x20000
AMPERSANDS = re.compile(r"&(?:(?:amp|AMP|#38|#[xX]26);)+")
ENTITY = re.compile(r"&(?:(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6})|([a-zA-Z][a-zA-Z0-9]{1,31}));")


def normal_form(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    r"""Convert texts (string or large_string) [text] to their normal form; null stays null.

    >>> normal_form(pa.array(["It&#39;s \uff23afe\u0301 \u0663"])).to_pylist()
    ["It's Caf\xe9 3"]
    """
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([normal_form(chunk) for chunk in column.chunks], column.type)
    # Most texts do not change, and finding those that may is cheap.
    rows = rows_with(column, _characters()[0], b"&`")
    return change_rows(column, rows, lambda texts: pa.array(map(_changed, texts.to_pylist()), texts.type))


def change_rows(column: pa.Array, rows: np.ndarray, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Replace some texts of a column by what a function makes of them.

    Args:
        column: The texts [text].
        rows: Positions of the texts to replace [row], ascending.
        change: Converts these texts.
    """
    if not len(rows):
        return column
    mask = np.zeros(len(column), bool)
    mask[rows] = True
    return pc.replace_with_mask(column, pa.array(mask), change(column.take(pa.array(rows))))


def rows_with(column: pa.Array, characters: np.ndarray, plain: bytes = b"") -> np.ndarray:
    """Find the texts that hold one of some characters, and return their positions, ascending [row].

    Args:
        column: The texts [text].
        characters: Whether each code point is searched for [code point], bool; the last value counts for all code
            points after it, too.
        plain: ASCII characters to search for.
    """
    text, bounds = text_bytes(column)
    places = [np.empty(0, np.int64)]
    for start in range(0, len(text), PART_BYTES):
        part = text[start : start + PART_BYTES]
        places += [start + np.flatnonzero(part == byte) for byte in plain]
        leads, _, codes = characters_of(text, start + np.flatnonzero(part >= 0xC0))
        places.append(leads[characters[np.minimum(codes, len(characters) - 1)]])
    return rows_at(np.concatenate(places), bounds)


def _changed(text: str) -> str:
    """Convert one text to its normal form."""
    if "&" in text:
        text = ENTITY.sub(_character, AMPERSANDS.sub("&", text))
    _, known, become = _characters()
    # Few characters of a text change, so this is three times as fast as `str.translate`.
    for character in known.intersection(text):
        text = text.replace(character, become[character])
    return " ".join(unicodedata.normalize("NFC", text).split())


def _character(match: re.Match[str]) -> str:
    """Return the character of an HTML entity; the text itself if it is not an entity."""
    number, name = match.groups()
    return unescape(match.group()) if number else html5.get(f"{name};", match.group())


@cache
def _characters() -> tuple[np.ndarray, frozenset[str], dict[str, str]]:
    """Find the characters that the normal form changes.

    Returns:
        Whether a text with each code point may change [code point], bool; the characters that are replaced; and what
        each of them is replaced by. Other characters that may change a text are marks, which NFC joins to letters.
    """
    changes, become = np.zeros(END + 1, bool), dict(SIGNS)
    for code in range(0x80, END):
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Nd":
            become[character] = str(unicodedata.decimal(character))
        elif category == "Cf" or 0xFE00 <= code < 0xFE10:
            become[character] = ""
        elif category in ("Zs", "Zl", "Zp", "Cc"):
            become[character] = " "
        elif not unicodedata.is_normalized("NFC", character):
            # The character is a second encoding of a letter, such as U+212B, the sign of the angstrom.
            plain = unicodedata.normalize("NFC", character)
            become[character] = SIGNS.get(plain, plain)
        changes[code] = category in ("Mn", "Mc") or 0x1100 <= code < 0x1200
    # Blocks of characters that stand for plain ones: ligatures and presentation forms, halfwidth and fullwidth forms,
    # letters and digits of mathematics.
    forms = range(0xFB00, 0xFE00), range(0xFE70, 0xFEFD), range(0xFF01, 0xFFF0), range(0x1D400, 0x1D800)
    for character in map(chr, chain(*forms)):
        plain = unicodedata.normalize("NFKC", character)
        become.setdefault(character, SIGNS.get(plain, plain))
    changes[[ord(character) for character in become]] = True
    return changes, frozenset(become), become
