"""Pretrained word vectors: from text files to a vocabulary and a matrix."""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import decode_line, open_lines, replacing
from paranmt_hf.util.wording import brief, counted

# What the row for words without one of their own is called: in PARAGRAM's files, and in those of GloVe's program.
UNKNOWN_WORDS = ("UUUNKKK", "<unk>")


@dataclass(frozen=True)
class WordVectors:
    """A vocabulary and its vectors."""

    words: list[str]  # The words, most frequent first in the usual files
    matrix: np.ndarray  # Vectors [word, dimension], float32
    unknown: np.ndarray | None = None  # The vector [dimension] that all other words share; None if the file has none


def read_vectors(path: Path | str, *, limit: int | None = None, wanted: Collection[str] = ()) -> WordVectors:
    """Read a file in the text format of GloVe, word2vec or PARAGRAM: a word and its numbers on each line.

    A first line with two whole numbers (word2vec's header) is skipped; it must name the dimensions of the rows, and
    not more words than there are. Of a word that stands twice the first counts.

    Args:
        path: The file, plain or `.gz`, UTF-8.
        limit: Read this many words from the beginning, and no others.
        wanted: Words without blanks that are read behind the limit too, wherever they stand; `UNKNOWN_WORDS` among
            them find the row of unknown words.
    """
    path = Path(path)
    words: dict[str, int] = {}
    rows: list[np.ndarray] = []
    unknown: dict[str, np.ndarray] = {}
    missing = {word.encode() for word in wanted}
    width = None
    promised = longest = 0
    shortest = sys.maxsize
    # A number beyond 32 bits becomes infinite, and is refused like one that is.
    with _lines(path) as lines, np.errstate(over="ignore"):
        for number, line in enumerate(lines, 1):
            if number == 1 and (header := _header(line)) is not None:
                promised, width = header
                continue
            unread = limit is not None and len(rows) >= limit and line.partition(b" ")[0] not in missing
            if unread and shortest <= len(line) <= longest:
                continue
            # Looking at every line would cost a third more time: of those not needed only the last one, and one
            # shorter or longer than all so far, as most damaged ones are.
            word, vector = _parse(line, path, number, width)
            shortest, longest = min(shortest, len(line)), max(longest, len(line))
            if unread:
                continue
            width = len(vector)
            if word in UNKNOWN_WORDS:
                unknown.setdefault(word, vector)
            elif word not in words:
                words[word] = len(rows)
                rows.append(vector)
            missing.discard(word.encode())
            if limit is not None and len(rows) >= limit and not missing:
                break
        else:
            if rows and unread:
                _parse(line, path, number, width)
            if promised and number <= promised:
                raise InputError(
                    f"{path} is cut off: its first line promises {counted(promised, 'word')}, {number - 1:,} follow; "
                    "copy it again"
                )
    if not rows:
        raise InputError(f"{path} holds no word vectors: expected a word and its numbers on each line")
    shared = next((unknown[word] for word in UNKNOWN_WORDS if word in unknown), None)
    return WordVectors(list(words), np.stack(rows), shared)


def read_words(path: Path | str) -> list[str]:
    """Read the words of a file of vectors, in order: usually the most frequent ones first.

    The row of unknown words is left out, and of a word that stands twice the first counts.
    """
    path = Path(path)
    # Reports a file that holds no vectors; the numbers below are not looked at.
    width = read_vectors(path, limit=1).matrix.shape[1]
    words: dict[str, None] = {}
    with _lines(path) as lines:
        for number, line in enumerate(lines, 1):
            if number == 1 and _header(line) is not None:
                continue
            parts = line.rstrip().rsplit(b" ", width)
            words[decode_line(parts[0], path, number)] = None
            if len(parts) <= width or b" " in parts[0]:
                # Numbers are missing, or there are more; or the word holds a blank.
                _parse(line, path, number, width)
    return [word for word in words if word not in UNKNOWN_WORDS]


def read_known(path: Path | str, words: Collection[str]) -> WordVectors:
    """Read the vectors of some words without blanks; missing ones are left out."""
    vectors = read_vectors(path, limit=1, wanted=words)
    if vectors.words[0] not in words:
        # The first word is always read.
        vectors = WordVectors(vectors.words[1:], vectors.matrix[1:], vectors.unknown)
    if not vectors.words:
        raise InputError(f"{path} has none of the {len(words):,} words that are asked for; is it of English?")
    return vectors


def knows_any(path: Path | str, words: Collection[str]) -> bool:
    """Whether a file has a vector of any of some words without blanks; reading ends at the first."""
    wanted = {word.encode() for word in words}
    with _lines(Path(path)) as lines:
        return any(line.partition(b" ")[0] in wanted for line in lines)


@contextmanager
def _lines(path: Path) -> Iterator[Iterator[bytes]]:
    """Open a file, plain or `.gz`; its fields are separated by single blanks."""
    with open_lines(path, "word vectors from") as lines:
        yield (line.replace(b"\t", b" ") for line in lines)


def _header(line: bytes) -> tuple[int, int] | None:
    """Parse the numbers of words and dimensions in a word2vec header; None if the line is not a header."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        return int(fields[0]), int(fields[1])
    return None


def _parse(line: bytes, path: Path, number: int, width: int | None) -> tuple[str, np.ndarray]:
    """Parse a word and its numbers; there must be `width` of them, if earlier lines determined it."""
    # Some files hold words with blanks inside, so the numbers are counted from the right.
    fields = line.rstrip().split(b" ")
    count = width if width is not None else len(fields) - 1
    try:
        if count < 1 or len(fields) < count + 1:
            raise ValueError
        word = decode_line(b" ".join(fields[:-count]), path, number)
        vector = np.array(fields[-count:], dtype=np.float32)
        # numpy reads 1_0 as 10.
        if any(map(_is_number, fields[1:-count])) or (
            b"_" in line and any(b"_" in field for field in fields[-count:])
        ):
            raise ValueError
    except InputError:
        raise
    except ValueError:
        numbers = sum(map(_is_number, fields[1:]))
        expected = f"a word and {counted(width, 'number')}" if width is not None else "a word and its numbers"
        found = brief(line.decode("utf8", "replace").rstrip())
        raise InputError(
            f"{path}, line {number}: expected {expected}, found {found} ({counted(numbers, 'number')})"
        ) from None
    if not np.isfinite(vector).all():
        raise InputError(f"{path}, line {number}: the vector of {word!r} has a number that is not finite")
    return word, vector


def _is_number(field: bytes) -> bool:
    # `nan` and `inf` inside a word of several parts are words, and as numbers they are refused.
    return re.fullmatch(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", field) is not None


def write_vectors(path: Path | str, vectors: WordVectors) -> None:
    """Write a file in the text format of GloVe atomically; one that ends in `.gz` is compressed."""
    path = Path(path)
    advice = "make room, or choose another path"
    with (
        replacing(path, doing="write word vectors to", advice=advice) as aside,
        aside.open("wb") as plain,
        # Equal bytes for equal vectors: without the time and the name of the temporary file.
        gzip.GzipFile("", "wb", fileobj=plain, mtime=0) if path.suffix == ".gz" else nullcontext(plain) as file,
    ):
        for word, row in zip(vectors.words, vectors.matrix, strict=True):
            file.write(f"{word} {' '.join(f'{value:.5g}' for value in row)}\n".encode())
