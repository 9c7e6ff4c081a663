"""Pretrained word vectors: text files in, vocabulary and matrix out."""

from __future__ import annotations

import gzip
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular, replacing


@dataclass(frozen=True)
class WordVectors:
    """A vocabulary and its vectors.

    Attributes:
        words: The words, most frequent first in the usual files.
        matrix: Vectors [word, dimension], float32.
    """

    words: list[str]
    matrix: np.ndarray


def read_vectors(path: Path | str, *, limit: int | None = None, wanted: Collection[str] = ()) -> WordVectors:
    """Read a file in the text format of GloVe, word2vec or PARAGRAM: a word and its numbers on each line.

    A first line with two whole numbers (word2vec's header) is skipped. Of a word that stands twice the first counts.

    Args:
        path: The file, plain or `.gz`, UTF-8.
        limit: Read this many words from the beginning, and no others.
        wanted: Words without blanks that are read behind the limit too, wherever they stand.

    Raises:
        InputError: The file is missing, empty, cut off, or a line is malformed; with file and line.
    """
    path = Path(path)
    check_regular(path)
    words: dict[str, int] = {}
    rows: list[np.ndarray] = []
    missing = {word.encode() for word in wanted}
    try:
        opened = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
        with opened as lines:
            for number, line in enumerate(lines, 1):
                if number == 1 and _is_header(line):
                    continue
                if limit is not None and len(rows) >= limit and line.partition(b" ")[0] not in missing:
                    continue
                word, vector = _parse(line, path, number, len(rows[0]) if rows else None)
                if word not in words:
                    words[word] = len(rows)
                    rows.append(vector)
                    missing.discard(word.encode())
                if limit is not None and len(rows) >= limit and not missing:
                    break
    except (OSError, EOFError) as error:
        raise InputError(
            f"cannot read word vectors from {path}: {getattr(error, 'strerror', None) or error}"
        ) from None
    if not rows:
        raise InputError(f"{path} holds no word vectors: expected a word and its numbers on each line")
    return WordVectors(list(words), np.stack(rows))


def _is_header(line: bytes) -> bool:
    fields = line.split()
    return len(fields) == 2 and all(field.isdigit() for field in fields)


def _parse(line: bytes, path: Path, number: int, width: int | None) -> tuple[str, np.ndarray]:
    # Some files hold words with blanks inside, so the numbers are counted from the right.
    fields = line.rstrip().split(b" ")
    count = width if width is not None else len(fields) - 1
    try:
        if count < 1 or len(fields) < count + 1:
            raise ValueError
        word = b" ".join(fields[:-count]).decode("utf8")
        vector = np.array(fields[-count:], dtype=np.float32)
    except UnicodeDecodeError:
        start = line[:40].decode("utf8", "replace").rstrip()
        raise InputError(
            f"{path}, line {number}: expected text in UTF-8, found {start!r}; save the file in that encoding"
        ) from None
    except ValueError:
        expected = f"a word and {width} numbers" if width else "a word and its numbers"
        start = line[:40].decode("utf8", "replace").rstrip()
        raise InputError(f"{path}, line {number}: expected {expected}, found {start!r}") from None
    if not np.isfinite(vector).all():
        raise InputError(f"{path}, line {number}: the vector of {word!r} has a number that is not finite")
    return word, vector


def write_vectors(path: Path | str, vectors: WordVectors) -> None:
    """Write a file in the text format of GloVe: a word and its numbers on each line.

    Args:
        path: The file; `.gz` compresses it. It appears whole or not at all.
        vectors: Words without blanks, and their vectors.

    Raises:
        InputError: It cannot be written.
    """
    path = Path(path)
    advice = "make room, or choose another place"
    with (
        replacing(path, doing="write word vectors to", advice=advice) as aside,
        gzip.GzipFile(aside, "wb", mtime=0) if path.suffix == ".gz" else aside.open("wb") as file,
    ):
        for word, row in zip(vectors.words, vectors.matrix, strict=True):
            file.write(f"{word} {' '.join(f'{value:.5g}' for value in row)}\n".encode())
