"""Read and write pretrained word vectors, in text formats or word2vec's binary."""

from __future__ import annotations

import gzip
import logging
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paranmt_hf.errors import InputError, refuse
from paranmt_hf.text.vector_formats import binary_entries, header, is_binary
from paranmt_hf.util.files import open_lines, replacing
from paranmt_hf.util.packed import find_packing
from paranmt_hf.util.wording import brief, counted

# Names of the vector for words without one of their own: in files of PARAGRAM, and in those of GloVe's program.
UNKNOWN_WORDS = ("UUUNKKK", "<unk>")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors."""

    words: list[str]  # The words, most frequent first in the usual files
    matrix: np.ndarray  # Vectors [word, dimension], float32
    unknown: np.ndarray | None = None  # The vector [dimension] that all other words share; None if the file has none


class _Reading:
    """The words that were read from a file so far.

    Words whose bytes are not UTF-8 are skipped and counted: word2vec's program cuts long ones inside a character.

    Args:
        path: The file, for errors.
        limit: Number of words to read from the beginning; None for all.
        wanted: Words to read wherever they are.
    """

    def __init__(self, path: Path, limit: int | None, wanted: Collection[str]) -> None:
        self.path, self.limit = path, limit
        self.missing = {word.encode() for word in wanted}
        self.words: dict[str, int] = {}
        self.rows: list[np.ndarray] = []
        self.unknown: dict[str, np.ndarray] = {}
        self.skipped = self.invalid = 0

    @property
    def is_done(self) -> bool:
        """Whether everything that is asked for was read."""
        return self.limit is not None and len(self.rows) >= self.limit and not self.missing

    def needs(self, word: bytes) -> bool:
        """Whether the vector of a word is asked for."""
        return self.limit is None or len(self.rows) < self.limit or word in self.missing

    def add(self, name: bytes, vector: np.ndarray, place: str) -> None:
        """Add a word that `needs` asked for; of a repeated word the first vector counts.

        Args:
            name: The bytes of the word.
            vector: Its vector [dimension].
            place: Where it is in the file, for errors.
        """
        try:
            word = name.decode()
        except UnicodeDecodeError as error:
            self.skipped += 1
            self.invalid += error.reason != "unexpected end of data"
            return
        if not np.isfinite(vector).all():
            raise InputError(f"{place}: the vector of {word!r} has a number that is not finite", path=self.path)
        if word in UNKNOWN_WORDS:
            self.unknown.setdefault(word, vector)
        elif word not in self.words:
            self.words[word] = len(self.rows)
            self.rows.append(vector)
        self.missing.discard(name)

    def vectors(self) -> WordVectors:
        """Return the words and vectors that were read.

        Raises:
            InputError: There are none, or too many words are not UTF-8.
        """
        # A few invalid words may be damaged. A file in another encoding has more of them.
        refuse(
            self.invalid * 100 > len(self.rows),
            f"{self.path}: expected words in UTF-8, found other bytes in {self.invalid:,} of "
            f"{len(self.rows) + self.skipped:,}; convert the file to UTF-8, or write it again",
            path=self.path,
        )
        nothing = f"{self.path} holds no word vectors: expected a word and its numbers on each line"
        refuse(not self.rows, nothing, path=self.path)
        if self.skipped:
            skipped = counted(self.skipped, "word")
            logger.warning(f"warning: {self.path}: {skipped} skipped, whose bytes are not UTF-8")
        shared = next((self.unknown[word] for word in UNKNOWN_WORDS if word in self.unknown), None)
        return WordVectors(list(self.words), np.stack(self.rows), shared)


def read_vectors(path: Path | str, *, limit: int | None = None, wanted: Collection[str] = ()) -> WordVectors:
    """Read word vectors: the text of GloVe, word2vec, fastText (.vec) or PARAGRAM, or the binary of word2vec.

    Text has a word and its numbers on each line. A first line with two whole numbers (word2vec's header) is skipped;
    it must name the dimensions of the rows, and not more words than there are. If a word occurs twice, the first
    vector counts. Words that are not UTF-8 are skipped, and a warning counts them.

    Args:
        path: The file, plain or compressed (.gz, .bz2, .xz, .zst).
        limit: Read only this many words from the beginning; all if left out.
        wanted: Words without blanks that are also read behind the limit, wherever they are; `UNKNOWN_WORDS` among them
            find the vector of unknown words.
    """
    path = Path(path)
    reading = _Reading(path, limit, wanted)
    if not is_binary(path):
        _read_text(reading)
        return reading.vectors()
    with open_lines(path, "word vectors from") as file:
        for number, (word, numbers) in enumerate(binary_entries(file, path), 1):
            if reading.needs(word):
                reading.add(word, np.frombuffer(numbers, "<f4").astype(np.float32), f"{path}, word {number}")
            if reading.is_done:
                break
    return reading.vectors()


def _read_text(reading: _Reading) -> None:
    """Read the vectors of a text file."""
    path, width = reading.path, None
    promised = longest = 0
    shortest = sys.maxsize
    # A number beyond the range of float32 becomes infinite, and is refused as such, so numpy need not warn.
    with _lines(path) as lines, np.errstate(over="ignore"):
        for number, line in enumerate(lines, 1):
            if number == 1 and (found := header(line)) is not None:
                promised, width = found
                continue
            unread = not reading.needs(line.partition(b" ")[0])
            if unread and shortest <= len(line) <= longest:
                continue
            # Checking every line that is not needed would cost a third more time. Only the last one is checked, and
            # lines that are shorter or longer than all before, as most damaged ones are.
            word, vector = _parse(line, path, number, width)
            shortest, longest = min(shortest, len(line)), max(longest, len(line))
            if unread:
                continue
            width = len(vector)
            reading.add(word, vector, f"{path}, line {number}")
            if reading.is_done:
                break
        else:
            if reading.rows and unread:
                _parse(line, path, number, width)
            if promised and number <= promised:
                raise InputError(
                    f"{path} is cut off: its first line promises {counted(promised, 'word')}, {number - 1:,} follow; "
                    "copy it again",
                    path=path,
                )


def check_vectors(path: Path) -> None:
    """Check the first line of a file of word vectors and, for plain text, the last one.

    A file that was cut off usually ends inside a line.

    Raises:
        InputError: One of them is not a word and its numbers.
    """
    width = read_vectors(path, limit=1).matrix.shape[1]
    if is_binary(path) or find_packing(path) is not None:
        return
    with path.open("rb") as file:
        # The last MiB holds the last line.
        file.seek(max(0, path.stat().st_size - (1 << 20)))
        _, newline, last = file.read().rstrip().rpartition(b"\n")
    if not newline:
        return
    try:
        _parse(last.replace(b"\t", b" "), path, 0, width)
    except InputError:
        raise InputError(
            f"{path} is cut off or damaged: its last line is not a word and {counted(width, 'number')}; copy it again",
            path=path,
        ) from None


def read_words(path: Path | str) -> list[str]:
    """Read the words of a file of vectors, in order: usually the most frequent ones come first.

    The name of the vector for unknown words is left out, and so are repeated words and words that are not UTF-8.
    """
    path = Path(path)
    # Raises an error if the file holds no vectors. Below, numbers are not parsed.
    width = read_vectors(path, limit=1).matrix.shape[1]
    words: dict[str, None] = {}
    for name in _names(path, width):
        with suppress(UnicodeDecodeError):
            words[name.decode()] = None
    return [word for word in words if word not in UNKNOWN_WORDS]


def _names(path: Path, width: int) -> Iterator[bytes]:
    """Read the bytes of each word of a file of vectors with `width` dimensions."""
    if is_binary(path):
        with open_lines(path, "word vectors from") as file:
            yield from (word for word, _ in binary_entries(file, path))
        return
    with _lines(path) as lines:
        for number, line in enumerate(lines, 1):
            if number == 1 and header(line) is not None:
                continue
            parts = line.rstrip().rsplit(b" ", width)
            if len(parts) <= width or b" " in parts[0]:
                # There are too few or too many numbers, which is an error, or the word holds a blank.
                _parse(line, path, number, width)
            yield parts[0]


def read_known(path: Path | str, words: Collection[str]) -> WordVectors:
    """Read the vectors of some words without blanks; words that the file lacks are left out.

    Raises:
        InputError: The file has none of them.
    """
    vectors = read_vectors(path, limit=1, wanted=words)
    if vectors.words[0] not in words:
        # The first word is always read.
        vectors = WordVectors(vectors.words[1:], vectors.matrix[1:], vectors.unknown)
    refuse(not vectors.words, f"{path} has none of the {len(words):,} words that are asked for; is it of English?")
    return vectors


def knows_any(path: Path | str, words: Collection[str]) -> bool:
    """Whether a file has a vector of any of some words without blanks; reading ends at the first one."""
    path, wanted = Path(path), {word.encode() for word in words}
    width = read_vectors(path, limit=1).matrix.shape[1]
    return any(word in wanted for word in _names(path, width))


@contextmanager
def _lines(path: Path) -> Iterator[Iterator[bytes]]:
    """Open a text file, plain or compressed, with tabs replaced by blanks."""
    with open_lines(path, "word vectors from") as lines:
        yield (line.replace(b"\t", b" ") for line in lines)


def _parse(line: bytes, path: Path, number: int, width: int | None) -> tuple[bytes, np.ndarray]:
    """Parse a line of a text file: a word and its numbers.

    Args:
        line: The line.
        path: The file, for errors.
        number: Number of the line, for errors.
        width: Number of dimensions; None if no line before determined it.
    """
    # In some files there are words with blanks inside, so the numbers are counted from the right.
    fields = line.rstrip().split(b" ")
    count = width if width is not None else len(fields) - 1
    try:
        if count < 1 or len(fields) < count + 1:
            raise ValueError
        word = b" ".join(fields[:-count])
        vector = np.array(fields[-count:], dtype=np.float32)
        # numpy would read 1_0 as 10.
        underlined = b"_" in line and any(b"_" in field for field in fields[-count:])
        if underlined or any(map(_is_number, fields[1:-count])):
            raise ValueError
    except ValueError:
        numbers = sum(map(_is_number, fields[1:]))
        expected = f"a word and {counted(width, 'number')}" if width is not None else "a word and its numbers"
        found = brief(line.decode("utf8", "replace").rstrip())
        raise InputError(
            f"{path}, line {number}: expected {expected}, found {found} ({counted(numbers, 'number')})", path=path
        ) from None
    return word, vector


def _is_number(field: bytes) -> bool:
    """Whether a field is a number, other than `nan` and `inf`."""
    # `nan` and `inf` may be parts of a word with blanks. As numbers they are refused elsewhere.
    return re.fullmatch(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", field) is not None


def write_vectors(path: Path | str, vectors: WordVectors) -> None:
    """Write a file in the text format of GloVe, atomically; one that ends in `.gz` is compressed."""
    path = Path(path)
    advice = "make room, or choose another path"
    with (
        replacing(path, doing="write word vectors to", advice=advice) as aside,
        aside.open("wb") as plain,
        # Without the time and the name of the temporary file, equal vectors give equal bytes.
        gzip.GzipFile("", "wb", fileobj=plain, mtime=0) if path.suffix == ".gz" else nullcontext(plain) as file,
    ):
        for word, row in zip(vectors.words, vectors.matrix, strict=True):
            file.write(f"{word} {' '.join(f'{value:.5g}' for value in row)}\n".encode())
