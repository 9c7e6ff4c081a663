"""Word tokens as positions in bytes: the rules of `definitions.py` as operations on whole arrays, with equal results.

Lower-casing and the cuts at clitics and punctuation need to know a character, its class, and at most three neighbours,
so they are comparisons of arrays of bytes. Only chunks between blanks with a character that this file does not handle
(a capital letter whose small one has another number of bytes, accents that are characters, digits of other scripts,
rare white space) are left to the definition. What class a character beyond ASCII has is asked of the definition, once
for each character.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.text.definitions import words

APOSTROPHE, COMMA, STOP = b"',."
# How a character beyond ASCII is cut: as a letter, as a token of its own, or by the definition alone.
UNKNOWN, LETTER, MARK, ODD = range(4)
TWO_BYTES = 0x800  # Two bytes of UTF-8 hold the characters below this one


@dataclass(frozen=True)
class Pieces:
    """A column of sentences split into pieces: tokens in lower case, and chunks that still must be split."""

    distinct: pa.Array  # Pieces as strings [distinct piece]; one may stand there more than once
    uncut: np.ndarray  # Which of them are chunks to be cut [distinct piece]
    chosen: np.ndarray  # The pieces of the column, sentence after sentence, as positions in `distinct` [piece], int32
    bounds: np.ndarray  # Bounds [sentence + 1], int64: sentence `i` has `chosen[bounds[i]:bounds[i + 1]]`


def cut_at_blanks(column: pa.Array) -> Pieces:
    """Split a column of sentences, without nulls, at blanks only."""
    chunks = pc.split_pattern(column, " ")
    bounds = chunks.offsets.to_numpy().astype(np.int64)
    encoded = chunks.flatten().dictionary_encode()
    uncut = np.ones(len(encoded.dictionary), bool)
    return Pieces(encoded.dictionary, uncut, encoded.indices.to_numpy(), bounds - bounds[0])


def cut_column(column: pa.Array) -> Pieces:
    """Split a column of sentences, without nulls, as `definitions.words` does."""
    # A blank behind each sentence, so that no rule looks from one into the next.
    joined = pc.ascii_lower(pc.binary_join_element_wise(column, "", " "))
    text, bounds = _bytes_of(joined)
    plain = not len(text) or text.max() < 128
    if not plain:
        text, bounds = _bytes_of(pc.replace_substring(joined, "\u2019", "'"))
    # Numbers of 8 bits wrap around, so one comparison tells whether a byte lies in a range: that of small letters, and
    # that from tab to carriage return, at which the definition cuts as at blanks.
    joins = (text - np.uint8(ord("a"))) < 26
    joins |= _is_digit(text)
    blank = text == ord(" ")
    blank |= (text - np.uint8(9)) <= 13 - 9
    starts = ~blank
    odd = np.empty(0, np.int64)
    if not plain:
        text = text.copy()
        odd = _mark_characters(text, joins, starts)
    rare = np.flatnonzero((text == APOSTROPHE) | (text == COMMA) | (text == STOP))
    # Full stops and commas between two digits are parts of a word. Behind the last sentence is a blank, so there is
    # always a next byte.
    marks = rare[text[rare] != APOSTROPHE]
    joins[marks[_is_digit(text[marks + 1]) & _is_digit(text[marks - 1]) & (marks > 0)]] = True
    starts[1:] &= ~(joins[1:] & joins[:-1])
    _cut_clitics(text, joins, starts, rare)
    chunks = _join_chunks(blank, starts, odd)
    first = np.flatnonzero(starts)
    limits = np.searchsorted(first, bounds)
    ends = np.append(first, len(text)).astype(np.int32)
    # Each piece has the white space behind it for now: dropping it here is cheaper than between the bytes.
    pieces = pa.StringArray.from_buffers(len(first), pa.py_buffer(ends), pa.py_buffer(text))
    encoded = pieces.dictionary_encode()
    chosen = encoded.indices.to_numpy()
    uncut = np.zeros(len(encoded.dictionary), bool)
    uncut[chosen[np.searchsorted(first, chunks)]] = True
    return Pieces(pc.ascii_rtrim(encoded.dictionary, " \t\n\v\f\r"), uncut, chosen, limits)


def _bytes_of(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Bytes [byte], uint8, and bounds [sentence + 1] of a column that is not a slice."""
    _, offsets, values = column.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(column) + 1)
    return np.frombuffer(values, np.uint8, bounds[-1]) if bounds[-1] else np.empty(0, np.uint8), bounds


def _is_digit(text: np.ndarray) -> np.ndarray:
    return (text - np.uint8(ord("0"))) < 10


def _cut_clitics(text: np.ndarray, joins: np.ndarray, starts: np.ndarray, rare: np.ndarray) -> None:
    """Split clitics off as tokens; none overlaps another, so each is found by itself."""
    at = rare[text[rare] == APOSTROPHE]
    if not len(at):
        return
    # What begins behind the last byte is white space.
    padded = np.minimum(at[:, None] + np.arange(1, 4), len(text) - 1)
    one, two, three = text[padded].T
    word_two, word_three = _is_word(text, joins, padded[:, 1]), _is_word(text, joins, padded[:, 2])
    negation = (one == ord("t")) & ~word_two & (text[at - 1] == ord("n")) & (at > 0)
    short = np.isin(one, np.frombuffer(b"smd", np.uint8)) & ~word_two
    long = ((one == ord("r")) | (one == ord("v"))) & (two == ord("e")) | (one == ord("l")) & (two == ord("l"))
    long &= ~word_three
    starts[at[negation] - 1] = True
    starts[at[negation]] = False
    starts[at[negation | short | long] + 1] = False


def _is_word(text: np.ndarray, joins: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Whether each position holds a word character of the regular expressions."""
    # Full stops and commas in numbers join, but are not word characters.
    return (joins[at] & (text[at] != COMMA) & (text[at] != STOP)) | (text[at] == ord("_"))


class _Characters:
    """Properties of each non-ASCII character in the definition, computed at its first occurrence."""

    def __init__(self) -> None:
        self._class = np.zeros(0x110000, np.uint8)
        self._lower = np.arange(TWO_BYTES)

    def look_up(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Class [character] of code points; and the code points in lower case, where they are letters."""
        classes = self._class[codes]
        if (classes == UNKNOWN).any():
            for code in np.unique(codes[classes == UNKNOWN]).tolist():
                self._ask(code)
            classes = self._class[codes]
        return classes, self._lower[np.minimum(codes, TWO_BYTES - 1)]

    def _ask(self, code: int) -> None:
        character = chr(code)
        small = "".join(words(character))
        self._class[code] = ODD
        if _changes_before(code):
            return
        if small != character:
            if code >= TWO_BYTES or len(small) != 1 or not 128 <= ord(small) < TWO_BYTES:
                return
            self._lower[code] = ord(small)
        # In a word, behind what may be a clitic, and behind a comma that two digits would make part of a number.
        found = words(f"a{character}a"), words(f"'s{character}"), words(f"1,{character}")
        if found == ([f"a{small}a"], ["'", f"s{small}"], ["1", ",", small]):
            self._class[code] = LETTER
        elif small == character and found == (["a", small, "a"], ["'s", small], ["1", ",", small]):
            self._class[code] = MARK


def _changes_before(code: int) -> bool:
    """Whether NFC may join a character with the one before, or put it before other marks."""
    character = chr(code)
    # Marks of one class keep their order, and viramas, whose class is 9, are the only marks with a class that stay.
    if unicodedata.combining(character) not in (0, 9) or 0x1100 <= code < 0x1200:  # Jamo join to syllables.
        return True
    if unicodedata.category(character) not in ("Mn", "Mc"):
        return False
    # A mark that joins letters joins those of its own script.
    block = code - code % 128
    pairs = [chr(letter) + character for letter in range(block, block + 128)]
    return any(len(unicodedata.normalize("NFC", pair)) < 2 for pair in pairs)


_characters = _Characters()


def characters_of(text: np.ndarray, leads: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decode the characters of UTF-8 text that begin at the bytes `leads` [character], none of which is ASCII.

    Returns these, the number of bytes of each character behind its first one, and code points [character], int64.
    """
    first = text[leads]
    more = 1 + (first >= 0xE0) + (first >= 0xF0)
    codes = (first & (0x3F >> more)).astype(np.int64)
    for step in range(1, 4):
        reached = np.flatnonzero(more >= step)
        codes[reached] = codes[reached] << 6 | text[leads[reached] + step] & 0x3F
    return leads, more, codes


def _mark_characters(text: np.ndarray, joins: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Lower non-ASCII characters, mark them in `joins` and `starts`; returns positions of the odd ones."""
    starts &= (text & 0xC0) != 0x80
    leads, more, codes = characters_of(text, np.flatnonzero(text >= 0xC0))
    classes, lower = _characters.look_up(codes)
    letters = classes == LETTER
    joins[leads[letters]] = True
    # A character behind a letter looks at its last byte.
    joins[(leads + more)[letters]] = True
    capitals = letters & (more == 1) & (lower != codes)
    text[leads[capitals]] = 0xC0 | lower[capitals] >> 6
    text[leads[capitals] + 1] = 0x80 | lower[capitals] & 0x3F
    return leads[classes == ODD]


def _join_chunks(blank: np.ndarray, starts: np.ndarray, odd: np.ndarray) -> np.ndarray:
    """Join each chunk with an odd character to one piece; returns the starts of these."""
    if not len(odd):
        return odd
    blanks = np.flatnonzero(blank)
    next_blank = np.unique(np.searchsorted(blanks, odd))
    begin = np.where(next_blank > 0, blanks[next_blank - 1] + 1, 0)
    lengths = blanks[next_blank] - begin - 1
    inside = np.arange(lengths.sum()) + np.repeat(begin + 1 - np.cumsum(lengths) + lengths, lengths)
    starts[inside] = False
    return begin
