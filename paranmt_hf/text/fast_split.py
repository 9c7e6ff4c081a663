"""Split columns of sentences by array operations on their bytes: the rules of `definitions.py`, with equal results.

Lower-casing and the cuts at clitics and punctuation depend on a character, its class, and at most three neighbours, so
they are comparisons of arrays of bytes. A few characters are not handled here: capital letters whose small ones have
another number of bytes, accents that are characters, digits of other scripts, rare white space. Chunks with such a
character are left to the definition. The class of a character beyond ASCII is found out by giving it to the
definition, once for each character.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.text.definitions import words

APOSTROPHE, COMMA, STOP = b"',."
# Classes of characters beyond ASCII: not found out yet, cut as a letter, a token of its own, or left to the
# definition.
UNKNOWN, LETTER, MARK, ODD = range(4)
TWO_BYTES = 0x800  # Code points below this one take at most two bytes of UTF-8


@dataclass(frozen=True)
class Pieces:
    """A column of sentences split into pieces: tokens in lower case, and chunks that still must be split."""

    distinct: pa.Array  # Pieces as strings [distinct piece]; a few may occur more than once
    uncut: np.ndarray  # Whether each of them is a chunk that must be split [distinct piece], bool
    chosen: np.ndarray  # The pieces of the column, sentence after sentence, as positions in `distinct` [piece], int32
    bounds: np.ndarray  # Bounds [sentence + 1], int64: sentence `i` has `chosen[bounds[i]:bounds[i + 1]]`


def uncut_pieces(chunks: pa.Array) -> Pieces:
    """Return chunks [chunk] as pieces that must be split."""
    count = len(chunks)
    return Pieces(chunks, np.ones(count, bool), np.arange(count, dtype=np.int32), np.arange(count + 1))


def cut_column(column: pa.Array) -> Pieces:
    """Split a column of sentences, without nulls, as `definitions.words` does."""
    # Put a blank behind each sentence, so that no rule looks into the next one.
    joined = pc.ascii_lower(pc.binary_join_element_wise(column, "", " "))
    text, bounds = _bytes_of(joined)
    plain = not len(text) or text.max() < 128
    if not plain:
        text, bounds = _bytes_of(pc.replace_substring(joined, "\u2019", "'"))
    # Numbers of 8 bits wrap around, so one comparison tells whether a byte lies in a range: first that of small
    # letters, then that from tab to carriage return, which the definition treats as blanks.
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
    # Full stops and commas between two digits belong to a word. There is always a next byte, because a blank follows
    # the last sentence.
    marks = rare[text[rare] != APOSTROPHE]
    joins[marks[_is_digit(text[marks + 1]) & _is_digit(text[marks - 1]) & (marks > 0)]] = True
    starts[1:] &= ~(joins[1:] & joins[:-1])
    _cut_clitics(text, joins, starts, rare)
    chunks = _join_chunks(blank, starts, odd)
    first = np.flatnonzero(starts)
    limits = np.searchsorted(first, bounds)
    ends = np.append(first, len(text)).astype(np.int32)
    # Here each piece still ends with the white space behind it. It is trimmed from the distinct pieces below, which is
    # cheaper.
    pieces = pa.StringArray.from_buffers(len(first), pa.py_buffer(ends), pa.py_buffer(text))
    encoded = pieces.dictionary_encode()
    chosen = encoded.indices.to_numpy()
    uncut = np.zeros(len(encoded.dictionary), bool)
    uncut[chosen[np.searchsorted(first, chunks)]] = True
    return Pieces(pc.ascii_rtrim(encoded.dictionary, " \t\n\v\f\r"), uncut, chosen, limits)


def _bytes_of(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes [byte], uint8, and bounds [sentence + 1] of a column that is not a slice."""
    _, offsets, values = column.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(column) + 1)
    return np.frombuffer(values, np.uint8, bounds[-1]) if bounds[-1] else np.empty(0, np.uint8), bounds


def _is_digit(text: np.ndarray) -> np.ndarray:
    """Whether each byte is an ASCII digit."""
    return (text - np.uint8(ord("0"))) < 10


def _cut_clitics(text: np.ndarray, joins: np.ndarray, starts: np.ndarray, rare: np.ndarray) -> None:
    """Split clitics off as tokens, by changing `starts`; clitics do not overlap, so each is found by itself.

    Args:
        text: The bytes [byte].
        joins: Whether each byte belongs to a word [byte].
        starts: Whether a token begins at each byte [byte], changed in place.
        rare: Positions of apostrophes, commas and full stops.
    """
    at = rare[text[rare] == APOSTROPHE]
    if not len(at):
        return
    # The last byte is a blank, so reading it in place of bytes beyond the end changes nothing.
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
    r"""Whether a word character, as `\w` of regular expressions, is at each of some positions."""
    # Full stops and commas in numbers belong to words, but are not word characters.
    return (joins[at] & (text[at] != COMMA) & (text[at] != STOP)) | (text[at] == ord("_"))


class _Characters:
    """The class and the lower case of each non-ASCII character, found out when the character first occurs."""

    def __init__(self) -> None:
        self._class = np.zeros(0x110000, np.uint8)
        self._lower = np.arange(TWO_BYTES)

    def look_up(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the class of each character, and its code point in lower case if it is a letter [character].

        Args:
            codes: Code points of the characters [character].
        """
        classes = self._class[codes]
        if (classes == UNKNOWN).any():
            for code in np.unique(codes[classes == UNKNOWN]).tolist():
                self._ask(code)
            classes = self._class[codes]
        return classes, self._lower[np.minimum(codes, TWO_BYTES - 1)]

    def _ask(self, code: int) -> None:
        """Find out the class of a character, by splitting short texts with it by the definition."""
        character = chr(code)
        small = "".join(words(character))
        self._class[code] = ODD
        if _changes_before(code):
            return
        if small != character:
            if code >= TWO_BYTES or len(small) != 1 or not 128 <= ord(small) < TWO_BYTES:
                return
            self._lower[code] = ord(small)
        # Try it inside a word, behind what may be a clitic, and behind a comma, which is part of a number before
        # digits.
        tokens = words(f"a{character}a"), words(f"'s{character}"), words(f"1,{character}")
        if tokens == ([f"a{small}a"], ["'", f"s{small}"], ["1", ",", small]):
            self._class[code] = LETTER
        elif small == character and tokens == (["a", small, "a"], ["'s", small], ["1", ",", small]):
            self._class[code] = MARK


def _changes_before(code: int) -> bool:
    """Whether NFC may join a character to the one before it, or move it before other marks."""
    character = chr(code)
    # NFC reorders marks by their class, which is 0 for most characters. Of the others only viramas, class 9, are safe.
    # Jamo (U+1100 to U+11FF) join to syllables.
    if unicodedata.combining(character) not in (0, 9) or 0x1100 <= code < 0x1200:
        return True
    if unicodedata.category(character) not in ("Mn", "Mc"):
        return False
    # A mark joins only letters of its own script, which are in its block of 128 code points.
    block = code - code % 128
    pairs = [chr(letter) + character for letter in range(block, block + 128)]
    return any(len(unicodedata.normalize("NFC", pair)) < 2 for pair in pairs)


_characters = _Characters()


def characters_of(text: np.ndarray, leads: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decode non-ASCII characters of UTF-8 text.

    Args:
        text: The bytes [byte].
        leads: Position of the first byte of each character [character].

    Returns:
        `leads`, the number of bytes of each character after its first one, and the code points [character], int64.
    """
    first = text[leads]
    more = 1 + (first >= 0xE0) + (first >= 0xF0)
    codes = (first & (0x3F >> more)).astype(np.int64)
    for step in range(1, 4):
        reached = np.flatnonzero(more >= step)
        codes[reached] = codes[reached] << 6 | text[leads[reached] + step] & 0x3F
    return leads, more, codes


def _mark_characters(text: np.ndarray, joins: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Lower-case non-ASCII characters in place, and mark them in `joins` and `starts`.

    Args:
        text: The bytes [byte].
        joins: Whether each byte belongs to a word [byte].
        starts: Whether a token begins at each byte [byte].

    Returns:
        Positions of the characters that are left to the definition.
    """
    starts &= (text & 0xC0) != 0x80
    leads, more, codes = characters_of(text, np.flatnonzero(text >= 0xC0))
    classes, lower = _characters.look_up(codes)
    letters = classes == LETTER
    joins[leads[letters]] = True
    # The next character looks at the last byte of a letter, so that is marked too.
    joins[(leads + more)[letters]] = True
    capitals = letters & (more == 1) & (lower != codes)
    text[leads[capitals]] = 0xC0 | lower[capitals] >> 6
    text[leads[capitals] + 1] = 0x80 | lower[capitals] & 0x3F
    return leads[classes == ODD]


def _join_chunks(blank: np.ndarray, starts: np.ndarray, odd: np.ndarray) -> np.ndarray:
    """Make one piece of each chunk with a character that is left to the definition, by changing `starts`.

    Args:
        blank: Whether each byte is white space [byte].
        starts: Whether a piece begins at each byte [byte].
        odd: Positions of the characters that are left to the definition, ascending.

    Returns:
        Positions at which these chunks begin.
    """
    if not len(odd):
        return odd
    blanks = np.flatnonzero(blank)
    next_blank = np.unique(np.searchsorted(blanks, odd))
    begin = np.where(next_blank > 0, blanks[next_blank - 1] + 1, 0)
    lengths = blanks[next_blank] - begin - 1
    inside = np.arange(lengths.sum()) + np.repeat(begin + 1 - np.cumsum(lengths) + lengths, lengths)
    starts[inside] = False
    return begin
