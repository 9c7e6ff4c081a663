"""Read the `.bin` models of the authors' Sent2Vec program in one pass.

A file holds, in this order, with all numbers little-endian: a magic number and a version; the settings; the words with
their counts; a flag and the matrix of words and n-gram buckets; a flag and the matrix of targets, which sentence
vectors do not need.

Every size is checked before memory is reserved for it, and memory grows only with the bytes that were read.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from paranmt_hf.encoders.config import WIDEST
from paranmt_hf.encoders.modules.paranmt_tables import LONGEST
from paranmt_hf.encoders.vocabulary import UNKNOWN
from paranmt_hf.errors import InputError
from paranmt_hf.text.vector_formats import MAGIC, SENT2VEC_VERSION
from paranmt_hf.util.wording import counted

FASTTEXT_VERSION = 12  # That of fastText's own files since 2018, whose settings have the same layout
MODELS = {1: "cbow", 2: "skipgram", 3: "supervised", 4: "sent2vec", 5: "cbow-c+w-ngrams"}
LOSSES = {1: "hierarchical softmax", 2: "negative sampling", 3: "softmax"}
# The program's name for word 0, which stands in the place of a target and is in no text.
PLACEHOLDER = b"<PLACEHOLDER>"
MAX_WORDS, LONGEST_WORD = 30_000_000, 2**16  # Maximum number of words in the program, and of bytes of a word here
BLOCK = 2**22  # Bytes per read
# Names of the settings in the order of the file; all are whole numbers but the last one, `t`.
OPTIONS = "dim ws epoch minCount neg wordNgrams loss model bucket minn maxn lrUpdateRate t".split()


@contextmanager
def open_model(path: Path) -> Iterator[BinReader]:
    """Open a model file, plain or compressed by gzip, for reading inside a `with` block."""
    try:
        with path.open("rb") as file:
            if file.peek(2)[:2] == b"\x1f\x8b":
                with gzip.open(file) as unpacked:
                    yield BinReader(unpacked, path)  # type: ignore[arg-type]
            else:
                yield BinReader(file, path, path.stat().st_size)
    except OSError as error:
        if error.filename != str(path):
            raise
        raise InputError(f"cannot read {path}: {error.strerror or error}", option="model", path=path) from None


class BinReader:
    """Reads a model file from front to back, and tracks the position in bytes.

    Args:
        stream: The content, decompressed.
        path: The file, for errors.
        size: Number of bytes of the file; None if it is compressed.
        block: Number of bytes that are read at once.
    """

    def __init__(self, stream: BinaryIO, path: Path, size: int | None = None, *, block: int = BLOCK) -> None:
        self._stream, self.path, self.size, self._block = stream, path, size, block
        self._buffer = b""
        self._at = self.position = 0

    def refused(self, reason: str) -> InputError:
        """Make an error about this file, for the caller to raise."""
        return InputError(f"{self.path}: {reason}", option="model", path=self.path)

    def check(self, right: bool, what: str, expected: str, found: object) -> None:
        """Reject a value that cannot be right.

        Args:
            right: Whether the value is right.
            what: What the value is.
            expected: What it must be.
            found: What it is.
        """
        if not right:
            raise self.refused(f"damaged: {what} before byte {self.position:,} must be {expected}, was {found}")

    def _fill(self, count: int) -> bool:
        """Fill the buffer with at least `count` unread bytes; return False if the file ends before."""
        while len(self._buffer) - self._at < count:
            try:
                read = self._stream.read(self._block)
            except (EOFError, zlib.error, OSError) as error:
                raise self.refused(f"damaged after byte {self.position:,}, unpacked: {error}") from None
            if not read:
                return False
            self._buffer = self._buffer[self._at :] + read
            self._at = 0
        return True

    def take(self, count: int, what: str) -> bytes:
        """Read `count` bytes, at most a block; `what` names them in the error if the file ends before."""
        if not self._fill(count):
            left = len(self._buffer) - self._at
            expected = f"{counted(count, 'byte')} ({what}) at byte {self.position:,}"
            raise self.refused(f"cut off: expected {expected}, found {left:,}; copy it again")
        taken = self._buffer[self._at : self._at + count]
        self._at += count
        self.position += count
        return taken

    def numbers(self, form: str, what: str) -> tuple[Any, ...]:
        """Read numbers in a format of `struct`, such as `iq`; `what` names them in errors."""
        return struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}"), what))

    def text(self) -> bytes:
        """Read a word that ends with a null byte, and return its bytes."""
        end = self._buffer.find(b"\0", self._at)
        if end < 0:
            self._fill(LONGEST_WORD + 1)
            end = self._buffer.find(b"\0", self._at)
        length = end - self._at
        if end < 0:
            length = len(self._buffer) - self._at
        self.check(length <= LONGEST_WORD, "a word", f"of at most {LONGEST_WORD:,} bytes", "longer")
        return self.take(length + 1, "a word")[:-1]

    def matrix(self, what: str, counts: tuple[int, ...], width: int) -> Iterator[tuple[int, np.ndarray]]:
        """Read a matrix in blocks of rows.

        Args:
            what: Name of the matrix, for errors.
            counts: The possible numbers of rows.
            width: The number of columns.

        Yields:
            Index of the first row of a block, and the rows [row, dimension], float32, in memory that may be written.
        """
        flag, rows, columns = self.numbers("Bqq", f"the size of {what}")
        if flag == 1:
            raise self.refused(f"quantised ({what}), which is not read; take the model from before `quantize`")
        expected = f"{' or '.join(f'{count:,}' for count in counts)} rows of {width:,}"
        right = flag == 0 and rows in counts and columns == width
        self.check(right, f"the size of {what}", expected, f"{rows:,} rows of {columns:,}")
        step = max(1, self._block // (4 * width))
        for start in range(0, rows, step):
            content = self.take(4 * width * min(step, rows - start), what)
            yield start, np.frombuffer(content, "<f4").astype(np.float32).reshape(-1, width)

    def end(self) -> None:
        """Reject bytes after the last matrix."""
        self.check(not self._fill(1), "the vectors of targets", "the end", "followed by more")


@dataclass(frozen=True)
class Sent2VecWords:
    """The settings and words of a model: everything in its file before the rows.

    Attributes:
        settings: Settings of its training, by the names of the program's options; `loss` is the name of the loss,
            `tokens` the number of tokens of the text. `ws`, `minn` and `maxn` have no effect on Sent2Vec.
        units: The words in the order of their ids; the first is `[UNK]`, in the place of the program's placeholder.
        labels: Number of entries after the words that begin with `__label__`; they get no vectors.
    """

    settings: dict[str, Any]
    units: list[str]
    labels: int


def read_vocabulary(reader: BinReader) -> Sent2VecWords:
    """Read the settings and words of a model, which are before its rows.

    Raises:
        InputError: The file is damaged, quantised, or of another program or command.
    """
    settings = _read_settings(reader)
    size, words, labels, settings["tokens"], pruned = reader.numbers("iiiqq", "the size of the vocabulary")
    if pruned != -1:
        raise reader.refused("pruned, or damaged; take the model from before `quantize`")
    right = 1 < words <= size <= MAX_WORDS and size == words + labels and settings["tokens"] >= 0
    expected = f"words, at most {MAX_WORDS:,}, their number and that of labels, which add up"
    reader.check(right, "the size of the vocabulary", expected, f"{size:,} of {words:,} and {labels:,}")
    units: list[str] = []
    for index in range(size):
        raw = reader.text()
        _, label = reader.numbers("qb", "the count of a word")
        if index == 0:
            reader.check(raw == PLACEHOLDER, "the first word", PLACEHOLDER.decode(), _unit(raw))
        if label != (index >= words):
            reader.check(False, f"word {index:,} of {size:,}", f"of kind {int(index >= words)}", f"of kind {label}")
        if index < words:
            units.append(_unit(raw) if index else UNKNOWN)
    if len(set(units)) < len(units):
        raise reader.refused(f"damaged: it has the word {Counter(units).most_common(1)[0][0]!r} twice")
    rows = words + settings["bucket"]
    if reader.size is not None and reader.size - reader.position < 4 * settings["dim"] * rows:
        # Check this here, before memory is reserved for a row of each bucket.
        raise reader.refused(
            f"cut off: expected {rows:,} rows of {settings['dim']:,} numbers after byte {reader.position:,}, and the "
            f"file has {reader.size:,} bytes; copy it again"
        )
    return Sent2VecWords(settings, units, labels)


def _read_settings(reader: BinReader) -> dict[str, Any]:
    """Read magic number, version and settings; return the settings by the names of the program's options."""
    magic, version = reader.numbers("ii", "the version of the file")
    if magic != MAGIC:
        raise reader.refused(
            "not a .bin model of the Sent2Vec program; `paranmt train --vectors` reads vectors as text"
        )
    reader.check(
        version in (SENT2VEC_VERSION, FASTTEXT_VERSION), "the version of the file", f"{SENT2VEC_VERSION}", version
    )
    found = dict(zip(OPTIONS, reader.numbers("12id", "the settings"), strict=True))
    kind = MODELS.get(found.pop("model"))
    if kind is not None and (kind != "sent2vec" or version == FASTTEXT_VERSION):
        program = "fastText" if version == FASTTEXT_VERSION else "the command"
        raise reader.refused(
            f"a model of {program} {kind}, not of sent2vec; have its program write word vectors as text "
            "(print-word-vectors), which `paranmt train --vectors` reads"
        )
    right = (
        kind is not None
        and 1 <= found["dim"] <= WIDEST
        and 1 <= found["wordNgrams"] <= LONGEST
        # A model without n-grams may have no buckets.
        and found["bucket"] >= int(found["wordNgrams"] > 1)
        and found["loss"] in LOSSES
        and math.isfinite(found["t"])
    )
    expected = f"those of sent2vec, with `dim` up to {WIDEST:,} and `wordNgrams` up to {LONGEST}"
    reader.check(right, "the settings", expected, found)
    return {**found, "loss": LOSSES[found["loss"]]}


def _unit(raw: bytes) -> str:
    """Decode a word. One that cannot occur in text gets a name with a blank, which no token has."""
    try:
        word = raw.decode()
    except UnicodeDecodeError:
        word = ""
    return word if word and word != UNKNOWN else f"bytes {raw.hex(' ')}"


def read_vector_blocks(reader: BinReader, found: Sent2VecWords) -> Iterator[tuple[int, np.ndarray]]:
    """Read the rows of words and buckets, and check that the model is complete.

    Args:
        reader: The reader, after `read_vocabulary`.
        found: What `read_vocabulary` returned.

    Yields:
        Blocks of rows, as `BinReader.matrix` does.
    """
    words, width = len(found.units), found.settings["dim"]
    used = words + found.settings["bucket"]
    # Today's program adds one row, for a kind of n-grams that Sent2Vec does not have; its first releases did not.
    for start, rows in reader.matrix("the vectors of words and n-grams", (used, used + 1), width):
        finite = np.isfinite(rows[: max(0, used - start)]).all(axis=1)
        if not finite.all():
            row = start + int(np.flatnonzero(~finite)[0])
            name = f"the word {found.units[row]!r}" if row < words else f"bucket {row - words:,}"
            raise reader.refused(f"the vector of {name} (row {row:,}) holds a number that is not finite")
        yield start, rows
    # The program has a target vector for each word, and none for labels.
    for _ in reader.matrix("the vectors of targets", (words,), width):
        pass
    reader.end()
