"""Read the `.bin` models of the authors' Sent2Vec program, from a file or a stream, in one pass.

The layout, all numbers little-endian: a magic number and a version; the settings; the words with their counts; a flag
and the matrix of words and n-gram buckets; a flag and the matrix of targets, which sentence vectors do not need.

Every size is checked before anything is made of it, and memory grows only with bytes that came.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import numpy as np

from paranmt_hf.encoders.config import WIDEST
from paranmt_hf.encoders.modules.paranmt_tables import LONGEST
from paranmt_hf.encoders.vocabulary import UNKNOWN
from paranmt_hf.errors import InputError

MAGIC, VERSION = 793712314, 11
# The version of fastText's own files since 2018; the layout of the settings is the same.
FASTTEXT_VERSION = 12
MODELS = {1: "cbow", 2: "skipgram", 3: "supervised", 4: "sent2vec", 5: "cbow-c+w-ngrams"}
LOSSES = {1: "hierarchical softmax", 2: "negative sampling", 3: "softmax"}
# The program's name for the placeholder of a target; its id is 0, and it is in no text.
PLACEHOLDER = b"<PLACEHOLDER>"
# Maximum number of words in the program.
MAX_WORDS = 30_000_000
# Maximum number of bytes of a word, and of a vocabulary: a small packed file could unpack to any number.
LONGEST_WORD, MOST_TEXT = 2**16, 2**30
# Bytes per read.
BLOCK = 2**22
# Name of words that are not valid UTF-8: contains a blank, so that no token is equal.
RAW = "bytes"
# The settings that are whole numbers, in the order of the file.
OPTIONS = (
    *("dim", "ws", "epoch", "minCount", "neg", "wordNgrams", "loss", "model", "bucket"),
    *("minn", "maxn", "lrUpdateRate"),
)


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

    def wrong(self, what: str, expected: str, found: object, at: int) -> InputError:
        """Create the error for an impossible value: what it is, what was expected, what was found, and where."""
        return InputError(
            f"{self.name} is damaged, or not a model of Sent2Vec: {what} at byte {at:,} must be {expected}, was "
            f"{found}"
        )

    def _fill(self, count: int) -> bool:
        """Fill the buffer with the given number of bytes; False if the model ends before."""
        while len(self._buffer) - self._at < count:
            try:
                read = self._stream.read(BLOCK)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise InputError(
                    f"{self.name} is damaged after byte {self.position:,} of the unpacked model: {error}"
                ) from None
            except OSError as error:
                raise InputError(f"cannot read {self.name}: {error.strerror or error}") from None
            if not read:
                return False
            self._digest.update(read)
            self._buffer, self._at = self._buffer[self._at :] + read, 0
        return True

    def take(self, count: int, what: str) -> bytes:
        """Read a number of bytes, at most a block."""
        if not self._fill(count):
            raise InputError(
                f"{self.name} is cut off: expected {count:,} bytes ({what}) at byte {self.position:,}, found "
                f"{len(self._buffer) - self._at:,}; copy it again"
            )
        taken = self._buffer[self._at : self._at + count]
        self._at += count
        self.position += count
        return taken

    def number(self, form: str, what: str) -> int:
        """Read an integer; `form` is that of `struct`."""
        return int(struct.unpack(f"<{form}", self.take(struct.calcsize(form), what))[0])

    def text(self, what: str) -> bytes:
        """Read a null-terminated string."""
        end = self._buffer.find(b"\0", self._at)
        if end < 0:
            whole = self._fill(LONGEST_WORD + 1)
            end = self._buffer.find(b"\0", self._at)
            if end < 0 and not whole:
                self.take(len(self._buffer) - self._at + 1, what)
        if not 0 <= end - self._at <= LONGEST_WORD:
            raise self.wrong(
                what, f"a word of at most {LONGEST_WORD:,} bytes and a zero", "one without an end", self.position
            )
        return self.take(end + 1 - self._at, what)[:-1]

    def blocks(self, size: int, step: int, what: str) -> Iterator[bytes]:
        """Read a large number of bytes in blocks of `step`."""
        for start in range(0, size, step):
            yield self.take(min(step, size - start), what)

    def end(self) -> None:
        """Reject trailing bytes."""
        if self._fill(1):
            raise InputError(
                f"{self.name} is damaged, or not a model of Sent2Vec: it should end at byte {self.position:,}, and "
                "continues"
            )


@dataclass(frozen=True)
class Sent2VecBinSettings:
    """Training settings in a model file, with the names of the program's options.

    Attributes:
        dim: Dimensions of a vector.
        ws: Window, of no effect here.
        epoch: Passes over the text.
        minCount: Words that occur less often have no vector.
        neg: Negatives for each target.
        wordNgrams: Words of the longest n-grams.
        loss: Name of the loss.
        bucket: Number of buckets for n-grams.
        minn: Shortest character n-gram, of no effect here.
        maxn: Longest one.
        lrUpdateRate: Tokens between two changes of the learning rate.
        t: Threshold of the subsampling of targets.
        tokens: Tokens of the text.
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
    """The settings and words of a model: everything before its rows.

    Attributes:
        settings: Settings of its training.
        units: The words in the order of their ids; the first is `[UNK]`, in the place of the program's placeholder.
        labels: Number of further entries, words that begin with `__label__`, of which vectors are not made.
    """

    settings: Sent2VecBinSettings
    units: list[str]
    labels: int


def read_vocabulary(reader: BinReader) -> Sent2VecWords:
    """Read everything before the rows."""
    settings = _read_settings(reader)
    at = reader.position
    size, words, labels = (reader.number("i", "a number of words") for _ in range(3))
    if not 1 < words <= MAX_WORDS or labels < 0 or size != words + labels or size > MAX_WORDS:
        expected = f"words, at most {MAX_WORDS:,}, their number and that of labels, which add up"
        raise reader.wrong("the size of the vocabulary", expected, f"{size:,} of {words:,} and {labels:,}", at)
    at = reader.position
    if (tokens := reader.number("q", "the number of tokens")) < 0:
        raise reader.wrong("the number of tokens", "0 or more", tokens, at)
    at = reader.position
    if (pruned := reader.number("q", "the number of pruned n-grams")) != -1:
        raise InputError(
            f"{reader.name} was pruned or is damaged: the number of n-grams that were kept, at byte {at:,}, must be "
            f"-1, was {pruned:,}; take the model from before `quantize`"
        )
    units = _read_units(reader, words, labels)
    return Sent2VecWords(Sent2VecBinSettings(**settings, tokens=tokens), units, labels)


def _read_settings(reader: BinReader) -> dict[str, Any]:
    """Read magic number, version and settings."""
    if reader.number("i", "the magic number") != MAGIC:
        raise InputError(
            f"expected a .bin model of the Sent2Vec program, and {reader.name} is none, for it begins otherwise; text "
            "with a word and its vector on each line is for `paranmt train --vectors`",
            option="model",
        )
    at = reader.position
    version = reader.number("i", "the version")
    if version not in (VERSION, FASTTEXT_VERSION):
        raise reader.wrong("the version of the file", f"{VERSION}", version, at)
    found: dict[str, Any] = {}
    starts: dict[str, int] = {}
    for name in OPTIONS:
        starts[name] = reader.position
        found[name] = reader.number("i", f"the setting {name}")
        if name == "model":
            _refuse_others(reader, version, found.pop(name), starts[name])
    starts["t"] = reader.position
    (found["t"],) = struct.unpack("<d", reader.take(8, "the setting t"))
    # Without n-grams their buckets may be none.
    least = {"dim": 1, "wordNgrams": 1, "loss": 1, "bucket": int(found["wordNgrams"] > 1)}
    most = {"dim": WIDEST, "wordNgrams": LONGEST, "loss": max(LOSSES), "t": sys.float_info.max}
    for name, value in found.items():
        low, high = least.get(name, 0), most.get(name, 2**31 - 1)
        if not low <= value <= high:
            expected = f"from {low:,} to {high:,}" if name != "t" else "a number of 0 or more"
            raise reader.wrong(f"the setting {name}", expected, value, starts[name])
    found["loss"] = LOSSES[found["loss"]]
    return found


def _refuse_others(reader: BinReader, version: int, model: int, at: int) -> None:
    """Reject models of other kinds than Sent2Vec."""
    kind = MODELS.get(model)
    if kind is None:
        raise reader.wrong("the kind of model", f"one of {', '.join(map(str, MODELS))}", model, at)
    if kind == "cbow-c+w-ngrams":
        raise InputError(
            f"{reader.name} is a model of the command {kind}, which embeds words through their characters, and not of "
            "sent2vec; its program writes word vectors as text (print-word-vectors), which `paranmt train --vectors` "
            "takes"
        )
    if kind != "sent2vec" or version == FASTTEXT_VERSION:
        raise InputError(
            f"{reader.name} is a model of plain fastText ({kind}), and not of sent2vec; have fastText write its word "
            "vectors as text (print-word-vectors), which `paranmt train --vectors` takes"
        )


def _read_units(reader: BinReader, words: int, labels: int) -> list[str]:
    """Read the words of the vocabulary; the labels after them are skipped."""
    units: list[str] = []
    begin = reader.position
    for index in range(words + labels):
        at, what = reader.position, f"word {index:,} of {words + labels:,}"
        raw = reader.text(what)
        if at - begin > MOST_TEXT:
            raise reader.wrong("the vocabulary", f"of at most {MOST_TEXT:,} bytes", f"longer at {what}", begin)
        count, label = struct.unpack("<qb", reader.take(9, f"the count of {what}"))
        if count < 0 or label != (index >= words):
            expected = f"0 or more and of kind {int(index >= words)}"
            raise reader.wrong(f"the count of {what}", expected, f"{count:,} and of kind {label}", at + len(raw) + 1)
        if index == 0 and raw != PLACEHOLDER:
            raise reader.wrong("the first word", PLACEHOLDER.decode(), _unit(raw), at)
        if index < words:
            units.append(_unit(raw) if index else UNKNOWN)
    if len(set(units)) < len(units):
        seen: set[str] = set()
        twice = next(unit for unit in units if unit in seen or seen.add(unit))  # type: ignore[func-returns-value]
        raise InputError(f"{reader.name} is damaged: its vocabulary has the word {twice!r} twice")
    return units


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
        settings, words = found.settings, len(found.units)
        self.dim, self._width = settings.dim, 4 * settings.dim
        self._step = max(1, BLOCK // self._width) * self._width
        least = words + settings.bucket
        # The program of today adds a row for a kind of n-grams that Sent2Vec has not; the first releases did not.
        self.count = _read_matrix(reader, "the vectors of words and n-grams", (least, least + 1), self.dim)

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
        words = len(self._words.units)
        # The program has a target for each word; labels have none.
        count = _read_matrix(self._reader, "the vectors of targets", (words,), self.dim)
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


def _read_matrix(reader: BinReader, what: str, counts: tuple[int, ...], width: int) -> int:
    """Read the header of a matrix; returns its number of rows."""
    at = reader.position
    if (flag := reader.number("B", "the flag of quantised vectors")) == 1:
        raise InputError(
            f"{reader.name} is quantised ({what}, byte {at:,}), which is not read; take the model from before "
            "`quantize`"
        )
    if flag:
        raise reader.wrong("the flag of quantised vectors", "0 or 1", flag, at)
    at = reader.position
    rows, columns = reader.number("q", f"the size of {what}"), reader.number("q", f"the size of {what}")
    if rows not in counts or columns != width:
        expected = f"{' or '.join(f'{count:,}' for count in counts)} rows of {width:,}"
        raise reader.wrong(f"the size of {what}", expected, f"{rows:,} rows of {columns:,}", at)
    return rows
