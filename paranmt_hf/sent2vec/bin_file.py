"""Read the `.bin` models of the authors' Sent2Vec program, from a file or a stream, in one pass.

The layout, all numbers little-endian: a magic number and a version; the settings; the words with their counts; a flag
and the matrix of words and n-gram buckets; a flag and the matrix of targets, which sentence vectors do not need.

Every size is checked before anything is made of it, and memory grows only with bytes that came.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import numpy as np

from paranmt_hf.encoders.config import WIDEST
from paranmt_hf.encoders.modules.paranmt_tables import LONGEST
from paranmt_hf.encoders.vocabulary import UNKNOWN
from paranmt_hf.errors import InputError
from paranmt_hf.util.wording import counted

# The second version is that of fastText's own files since 2018; the layout of the settings is the same.
MAGIC, VERSION, FASTTEXT_VERSION = 793712314, 11, 12
MODELS = {1: "cbow", 2: "skipgram", 3: "supervised", 4: "sent2vec", 5: "cbow-c+w-ngrams"}
LOSSES = {1: "hierarchical softmax", 2: "negative sampling", 3: "softmax"}
PLACEHOLDER = b"<PLACEHOLDER>"  # The program's name for the placeholder of a target; its id is 0, and it is in no text
MAX_WORDS, LONGEST_WORD = 30_000_000, 2**16  # Maximum number of words in the program, and of bytes of a word here
BLOCK = 2**22  # Bytes per read
RAW = "bytes"  # Name of words that are not valid UTF-8: contains a blank, so that no token is equal
# The settings in the order of the file: whole numbers, and `t`.
OPTIONS = "dim ws epoch minCount neg wordNgrams loss model bucket minn maxn lrUpdateRate t".split()


class BinReader:
    """Reads a model from front to back, plain or compressed by gzip, and tracks the byte position."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, stream))
        packed = buffered.peek(2)[:2] == b"\x1f\x8b"
        self._stream = cast(BinaryIO, gzip.GzipFile(fileobj=buffered) if packed else buffered)
        self._digest, self._buffer, self._at = hashlib.sha256(), b"", 0
        self.name, self.position = name, 0

    @property
    def checksum(self) -> str:
        """SHA-256 of the bytes read so far, unpacked; at the end that of the whole model."""
        return self._digest.hexdigest()

    def check(self, right: bool, what: str, expected: str, found: object) -> None:
        """Reject an impossible value."""
        if not right:
            raise InputError(
                f"{self.name} is damaged, or not a model of Sent2Vec: {what} before byte {self.position:,} must be "
                f"{expected}, was {found}"
            )

    def _fill(self, count: int) -> bool:
        """Fill the buffer with the given number of bytes; False if the model ends before."""
        while len(self._buffer) - self._at < count:
            try:
                read = self._stream.read(BLOCK)
            except (EOFError, zlib.error, OSError) as error:
                raise InputError(f"{self.name} is damaged after byte {self.position:,}, unpacked: {error}") from None
            if not read:
                return False
            self._digest.update(read)
            self._buffer, self._at = self._buffer[self._at :] + read, 0
        return True

    def take(self, count: int, what: str) -> bytes:
        """Read a number of bytes, at most a block."""
        if not self._fill(count):
            raise InputError(
                f"{self.name} is cut off: expected {counted(count, 'byte')} ({what}) at byte {self.position:,}, found "
                f"{len(self._buffer) - self._at:,}; copy it again"
            )
        taken = self._buffer[self._at : self._at + count]
        self._at += count
        self.position += count
        return taken

    def numbers(self, form: str, what: str) -> tuple[Any, ...]:
        """Read numbers; `form` is that of `struct`."""
        return struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}"), what))

    def text(self) -> bytes:
        """Read a null-terminated word."""
        end = self._buffer.find(b"\0", self._at)
        if end < 0:
            self._fill(LONGEST_WORD + 1)
            end = self._buffer.find(b"\0", self._at)
            # Cut off, unless there are so many bytes that it is no word.
            end = end if end >= 0 else self._at + min(len(self._buffer) - self._at, LONGEST_WORD + 1)
        if end - self._at > LONGEST_WORD:
            self.check(False, "a word", f"of at most {LONGEST_WORD:,} bytes", "longer")
        return self.take(end + 1 - self._at, "a word")[:-1]

    def matrix(self, what: str, counts: tuple[int, ...], width: int) -> int:
        """Read the header of a matrix; returns its number of rows."""
        flag, rows, columns = self.numbers("Bqq", f"the size of {what}")
        if flag == 1:
            raise InputError(
                f"{self.name} is quantised ({what}), which is not read; take the model from before `quantize`"
            )
        expected = f"{' or '.join(f'{count:,}' for count in counts)} rows of {width:,}"
        right = flag == 0 and rows in counts and columns == width
        self.check(right, f"the size of {what}", expected, f"{rows:,} rows of {columns:,}")
        return int(rows)

    def blocks(self, size: int, step: int, what: str) -> Iterator[bytes]:
        """Read a large number of bytes in blocks of `step`."""
        for start in range(0, size, step):
            yield self.take(min(step, size - start), what)

    def end(self) -> None:
        """Reject trailing bytes."""
        self.check(not self._fill(1), "the vectors of targets", "the end", "followed by more")


@dataclass(frozen=True)
class Sent2VecBinSettings:
    """Training settings in a model file, with the names of the program's options; `loss` is the name of the loss.

    `ws`, `minn` and `maxn` have no effect on Sent2Vec; `tokens` is the number of tokens of the text.
    """

    dim: int
    ws: int
    epoch: int
    minCount: int  # noqa: N815 - the program's own names
    neg: int
    wordNgrams: int  # noqa: N815
    loss: str
    bucket: int
    minn: int
    maxn: int
    lrUpdateRate: int  # noqa: N815
    t: float
    tokens: int


@dataclass(frozen=True)
class Sent2VecWords:
    """The settings and words of a model: everything before its rows."""

    settings: Sent2VecBinSettings  # Settings of its training
    # The words in the order of their ids; the first is `[UNK]`, in the place of the program's placeholder
    units: list[str]
    labels: int  # Number of further entries, words that begin with `__label__`, of which vectors are not made


def read_vocabulary(reader: BinReader) -> Sent2VecWords:
    """Read everything before the rows."""
    settings = _read_settings(reader)
    size, words, labels, tokens, pruned = reader.numbers("iiiqq", "the size of the vocabulary")
    if pruned != -1:
        raise InputError(f"{reader.name} was pruned, or is damaged; take the model from before `quantize`")
    right = 1 < words <= size <= MAX_WORDS and size == words + labels and tokens >= 0
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
        twice = Counter(units).most_common(1)[0][0]
        raise InputError(f"{reader.name} is damaged: its vocabulary has the word {twice!r} twice")
    return Sent2VecWords(Sent2VecBinSettings(**settings, tokens=tokens), units, labels)


def _read_settings(reader: BinReader) -> dict[str, Any]:
    """Read magic number, version and settings."""
    magic, version = reader.numbers("ii", "the version of the file")
    if magic != MAGIC:
        raise InputError(
            f"expected a .bin model of the Sent2Vec program, and {reader.name} is none, for it begins otherwise; text "
            "with a word and its vector on each line is for `paranmt train --vectors`",
            option="model",
        )
    reader.check(version in (VERSION, FASTTEXT_VERSION), "the version of the file", f"{VERSION}", version)
    found = dict(zip(OPTIONS, reader.numbers("12id", "the settings"), strict=True))
    kind = MODELS.get(found.pop("model"))
    if kind is not None and (kind != "sent2vec" or version == FASTTEXT_VERSION):
        raise InputError(
            f"{reader.name} is a model of {'fastText' if version == FASTTEXT_VERSION else 'the command'} {kind}, and "
            "not of sent2vec; have its program write word vectors as text (print-word-vectors), which `paranmt train "
            "--vectors` takes"
        )
    # Without n-grams their buckets may be none.
    right = kind is not None and 1 <= found["dim"] <= WIDEST and 1 <= found["wordNgrams"] <= LONGEST
    right = right and found["bucket"] >= int(found["wordNgrams"] > 1) and found["loss"] in LOSSES
    expected = f"those of sent2vec, with `dim` up to {WIDEST:,} and `wordNgrams` up to {LONGEST}"
    shown = ", ".join(f"{name} {value}" for name, value in found.items())
    reader.check(right and math.isfinite(found["t"]), "the settings", expected, shown)
    found["loss"] = LOSSES[found["loss"]]
    return found


def _unit(raw: bytes) -> str:
    """Decode a word; one that cannot occur in text gets a name that no token has."""
    try:
        word = raw.decode()
    except UnicodeDecodeError:
        word = ""
    return word if word and word != UNKNOWN else f"{RAW} {raw.hex(' ')}"


class Sent2VecRows:
    """The rows of a model, read block by block, by a reader that has read the words."""

    def __init__(self, reader: BinReader, found: Sent2VecWords) -> None:
        self._reader, self._words = reader, found
        self.dim, self._width = found.settings.dim, 4 * found.settings.dim
        self._step = max(1, BLOCK // self._width) * self._width
        least = len(found.units) + found.settings.bucket
        # The program of today adds a row for a kind of n-grams that Sent2Vec has not; the first releases did not.
        self.count = reader.matrix("the vectors of words and n-grams", (least, least + 1), self.dim)

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Read all rows.

        Yields:
            Index of the first row of a block, and the rows [row, dimension], float32, in memory that may be written.
        """
        start = 0
        for block in self._reader.blocks(self.count * self._width, self._step, "the vectors of words and n-grams"):
            rows = np.frombuffer(block, "<f4").astype(np.float32).reshape(-1, self.dim)
            yield start, rows
            start += len(rows)

    def rest(self) -> Iterator[None]:
        """Read the data after the rows in blocks, only to check that the model is complete."""
        # The program has a target for each word; labels have none.
        count = self._reader.matrix("the vectors of targets", (len(self._words.units),), self.dim)
        for _ in self._reader.blocks(count * self._width, self._step, "the vectors of targets"):
            yield
        self._reader.end()

    def refuse_not_finite(self, start: int, rows: np.ndarray) -> None:
        """Reject rows with a number that is not finite."""
        if np.isfinite(rows).all():
            return
        row = start + int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        units = self._words.units
        name = f"the word {units[row]!r}" if row < len(units) else f"bucket {row - len(units):,}"
        raise InputError(
            f"{self._reader.name}: the vector of {name} (row {row:,}) holds a number that is not finite; the training "
            "of this model diverged, or the file is damaged"
        )
