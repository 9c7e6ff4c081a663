"""Sets of sentence pairs with gold similarities, and readers of their text files that check each line."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular, decode_line
from paranmt_hf.util.packed import DAMAGED, open_packed
from paranmt_hf.util.wording import brief, counted, decimal_point


@dataclass(frozen=True)
class StsSet:
    """A set of sentence pairs with gold similarities.

    Attributes:
        name: Name of the set, such as `MSRpar`.
        left: First sentences [pair].
        right: Second sentences [pair].
        gold: Gold similarities [pair], float64; in SemEval's data from 0 (nothing in common) to 5 (same meaning).
        year: SemEval task in whose yearly mean the set counts, such as `STS12`; None for a set that counts in none.
        skipped: Number of pairs that were left out because they have no gold score.
        subsets: For each part of the set that gets scores of its own, a mask of its pairs [pair], bool, by its name.
    """

    name: str
    left: list[str]
    right: list[str]
    gold: np.ndarray
    year: str | None = None
    skipped: int = 0
    subsets: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.gold)

    @property
    def title(self) -> str:
        """Year, if there is one, and name of the set, such as `STS12 MSRpar`."""
        return f"{self.year} {self.name}" if self.year else self.name

    @property
    def sentences(self) -> list[str]:
        """All first sentences, then all second sentences."""
        return self.left + self.right

    @property
    def checksum(self) -> str:
        """SHA-256 of sentences and gold scores, in hexadecimal."""
        digest = hashlib.sha256(np.ascontiguousarray(self.gold, np.float64).tobytes())
        for sentence in self.sentences:
            digest.update(f"{sentence}\n".encode())
        return digest.hexdigest()


def tab_separated(path: Path, width: int, what: str) -> Iterator[tuple[str, list[str]]]:
    """Read a file of tab-separated lines.

    Args:
        path: The file.
        width: Smallest number of fields that each line must have.
        what: Names of the fields, for errors.

    Yields:
        The place of each line, such as `FILE, line 3`, for errors; and its fields.

    Raises:
        InputError: A line has too few fields.
    """
    for number, line in enumerate(read_lines(path), 1):
        place, fields = f"{path}, line {number}", line.split("\t")
        if len(fields) < width:
            raise InputError(
                f"{place}: expected {what} in at least {width} columns with tabs between, found "
                f"{counted(len(fields), 'column')}"
            )
        yield place, fields


class ScoredPair(NamedTuple):
    """A sentence pair with its gold similarity, as text that is not checked yet.

    Attributes:
        score: Gold similarity; blank if there is none.
        left: First sentence.
        right: Second sentence.
        place: File and line of the score, for errors.
        text_place: File and line of the sentences, if they are in another file than the score.
        part: Name of the part of the set that the pair is in.
    """

    score: str
    left: str
    right: str
    place: str
    text_place: str = ""
    part: str = ""


def collect(
    name: str,
    pairs: Sequence[ScoredPair],
    path: Path,
    *,
    year: str | None = None,
    subsets: Mapping[str, np.ndarray] | None = None,
    scale: tuple[float, float] | None = None,
) -> StsSet:
    """Check sentence pairs, and make a set of those that have a gold score.

    Args:
        name: Name of the set.
        pairs: The pairs as text.
        path: File of the scores, for errors.
        year: SemEval task in whose yearly mean the set counts.
        subsets: Masks of parts of the set, over the pairs that have a score.
        scale: Lowest and highest gold score that is allowed; None for any.

    Raises:
        InputError: A score is not a number or off the scale, a sentence is missing, or no pair has a score.
    """
    left, right, gold = [], [], []
    for pair in pairs:
        if not pair.score.strip():
            continue
        gold.append(parse_number(pair.score, pair.place, "a gold similarity", path))
        if scale and not scale[0] <= gold[-1] <= scale[1]:
            raise InputError(
                f"{pair.place}: expected a gold similarity from {scale[0]:g} to {scale[1]:g}, found {pair.score}; get "
                "the file again",
                path=path,
            )
        place = pair.text_place or pair.place
        left.append(parse_sentence(pair.left, place, "the first sentence's column"))
        right.append(parse_sentence(pair.right, place, "the second sentence's column"))
    if not gold:
        raise InputError(f"{path} has no gold score at all; get the file with gold scores", path=path)
    return StsSet(name, left, right, np.array(gold, np.float64), year, len(pairs) - len(gold), subsets or {})


def read_content(path: Path) -> bytes:
    """Return the bytes of a file, which is unpacked if it is a packed one, such as `.gz`."""
    check_regular(path)
    try:
        with open_packed(path) as file:
            return file.read()
    except DAMAGED as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}", path=path) from None


def read_lines(path: Path, *, or_latin1: bool = False) -> list[str]:
    r"""Return the lines of a UTF-8 file, plain or packed.

    Only `\n` and `\r\n` end a line, because sentences may hold other line separators of Unicode.

    Args:
        path: The file.
        or_latin1: Whether a file that is not UTF-8 is read as Latin-1; otherwise it is refused.
    """
    raw = read_content(path)
    if not raw.strip():
        raise InputError(f"{path} is empty: expected a line for each item; get the file again", path=path)
    if b"\0" in raw:
        raise InputError(
            f"{path}: expected text in UTF-8, found zero bytes, as in UTF-16; convert it, such as with `iconv -f "
            "UTF-16 -t UTF-8`",
            path=path,
        )
    if or_latin1:
        try:
            raw.decode("utf8")
        except UnicodeDecodeError:
            raw = raw.decode("latin-1").encode()
    lines = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [decode_line(line, path, line_number).removesuffix("\r") for line_number, line in enumerate(lines, 1)]


def parse_number(text: str, where: str, what: str, path: Path | None = None) -> float:
    """Convert text to a finite number, or raise `InputError`.

    Args:
        text: The text, such as `3.5`.
        where: File and line, for errors.
        what: What the number is, such as "a gold similarity", for errors.
        path: The file, for errors.
    """
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f"{where}: expected {what}, which is a number, found {brief(text)}; "
            f"{decimal_point(text, 'check the columns')}",
            path=path,
        )
    return value


def parse_sentence(text: str, where: str, column: str) -> str:
    """Return a sentence without the white space around it; raises `InputError` if nothing is left.

    `where` and `column` say where the sentence is, for the error.
    """
    sentence = text.strip()
    if not sentence:
        raise InputError(f"{where}: expected a sentence in {column}, found none; check the columns")
    return sentence
