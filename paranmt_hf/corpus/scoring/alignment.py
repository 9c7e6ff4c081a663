"""Whether the two sides of a corpus belong together: finds sections of a bitext in which one side is shifted.

The scores are cut into sections of equal means by cumulative sums (Page 1954), one cut after the other. In each
section the references are compared with the translations of the lines around; if they share more with those of other
lines, one side is shifted. This needs no threshold for scores, which would differ between encoders, and there is no
alarm if a translator merely does badly in a section. Sections shorter than 20 rows, or 1 % of all, are not found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.util.wording import counted

WARNING = "the two sides do not belong together in lines"  # The beginning of each warning
LEAST_ROWS = 20  # Length of the shortest section that is found
LARGEST_SHIFT = 10  # Largest number of lines by which one side may be shifted
ALIGNED = 0  # The shift of a section whose sides belong together
BLOCK = 2**20  # Number of scores that are worked on at once


@dataclass(frozen=True)
class Misaligned:
    """A section of a corpus whose sides do not belong together."""

    first: int  # Its first line, from 1
    last: int  # Its last line
    shift: int | None  # Line `i` of the reference belongs to line `i + shift` of the other side; None if unknown
    score: float  # Mean paraphrase score of the section
    others: float | None  # Mean score of the sections whose sides belong together; None if there are none

    def describe(self) -> str:
        """Describe the section in one sentence, with its probable cause."""
        elsewhere = "" if self.others is None else f", and {self.others:.2f} elsewhere"
        if self.shift is None:
            found = (
                "sentences share no more with their translation than with others: another text, or one that the "
                "translator does not know"
            )
        else:
            lines = counted(abs(self.shift), "line")
            lacking, other = ("reference", "source") if self.shift > 0 else ("source", "reference")
            found = f"before line {self.first:,} the {lacking} lacks {lines}, or the {other} has {lines} too many"
        place = f"{WARNING} {self.first:,} to {self.last:,}"
        return f"{place}, where the mean para_score is {self.score:.2f}{elsewhere}: {found}"


def alignment_warnings(files: Sequence[Path]) -> list[str]:
    """Return warnings about the sections of a corpus whose sides do not belong together, for at most three of them.

    Args:
        files: Parquet files of the corpus, in order.
    """
    found = misaligned_sections(files)
    warnings = [section.describe() for section in found[:3]]
    if len(found) > 3:
        warnings[-1] += f"; and in {counted(len(found) - 3, 'other section')}"
    return warnings


def misaligned_sections(files: Sequence[Path]) -> list[Misaligned]:
    """Find the sections of a corpus whose sides do not belong together.

    If sentences have several hypotheses, only the first is looked at.

    Args:
        files: Parquet files of the corpus, in order.
    """
    lines = _Lines(files)
    scores = lines.scores
    if len(scores) < LEAST_ROWS:
        return []
    bounds = cut_into_sections(scores)
    shifts = [_shift_of(lines, bounds, index) for index in range(len(bounds) - 1)]
    aligned = np.repeat([shift == ALIGNED for shift in shifts], np.diff(bounds))
    others = float(scores[aligned].mean()) if aligned.any() else None
    found: list[Misaligned] = []
    for shift, sections in groupby(range(len(shifts)), key=shifts.__getitem__):
        if shift == ALIGNED:
            continue
        # Neighbouring sections with the same shift are one section.
        joined = list(sections)
        start, stop = bounds[joined[0]], bounds[joined[-1] + 1]
        first, last = lines.number(start), lines.number(stop - 1)
        found.append(Misaligned(first, last, shift, float(scores[start:stop].mean()), others))
    return found


class _Lines:
    """The lines of a corpus in Parquet files; if sentences have several hypotheses, only the first."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files
        parts = [self._read(file, ["para_score"])["para_score"].to_numpy() for file in files]
        self._starts = np.cumsum([0, *map(len, parts)])
        self.scores = np.concatenate(parts)  # Paraphrase scores [line]

    @staticmethod
    def _read(file: Path, columns: Sequence[str]) -> pa.Table:
        """Read columns of one file, without rows of other hypotheses than the first."""
        if "rank" not in pq.read_schema(file).names:
            return pq.read_table(file, columns=columns)
        table = pq.read_table(file, columns=[*columns, "rank"])
        return table.filter(pc.equal(table["rank"], 1))

    def read(self, start: int, stop: int, columns: Sequence[str]) -> pa.Table:
        """Read columns of the lines from `start` up to `stop`."""
        tables = []
        for file, first, end in zip(self._files, self._starts[:-1], self._starts[1:], strict=True):
            if first < stop and end > start:
                table = self._read(file, columns)
                tables.append(table.slice(max(0, start - first), min(stop, end) - max(start, first)))
        return pa.concat_tables(tables)

    def number(self, row: int) -> int:
        """Return the number of the input line, from 1, that a row comes from."""
        return int(self.read(row, row + 1, ["id"])["id"][0].as_py()) + 1


def _shift_of(lines: _Lines, bounds: Sequence[int], index: int) -> int | None:
    """Find by how many lines a section is shifted.

    Returns:
        The shift, `ALIGNED` if the sides belong together, or None if they do not, but no shift explains it.
    """
    start, stop = bounds[index], bounds[index + 1]
    # In a long section, the 200 rows in its middle are compared with their neighbours.
    middle = max(start, (start + stop - 200) // 2)
    overlaps = _overlaps(lines, middle, min(stop, middle + 200))
    unshifted, best = overlaps[LARGEST_SHIFT], int(np.argmax(overlaps))
    # Real pairs share at least 0.2 with the right translation, and 1.5 times as much as with that of another line.
    usual = 1.5 * float(np.median(overlaps))
    if overlaps[best] >= max(0.2, 1.5 * unshifted, usual):
        return best - LARGEST_SHIFT
    return None if unshifted < usual and _has_fallen(lines.scores, bounds, index) else ALIGNED


def _overlaps(lines: _Lines, start: int, stop: int) -> np.ndarray:
    """Return what references share with the translations of other lines, for each shift from -`LARGEST_SHIFT` [shift].

    It is the mean Dice coefficient of their character trigrams, over the lines from `start` up to `stop`.
    """
    first, last = max(0, start - LARGEST_SHIFT), min(len(lines.scores), stop + LARGEST_SHIFT)
    table = lines.read(first, last, ["reference", "translation"])
    references = [_trigrams(text) for text in table["reference"].to_pylist()]
    translations = [_trigrams(text) for text in table["translation"].to_pylist()]
    shares = []
    for shift in range(-LARGEST_SHIFT, LARGEST_SHIFT + 1):
        rows = range(max(start, first - shift), min(stop, last - shift))
        dice = []
        for row in rows:
            left, right = references[row - first], translations[row - first + shift]
            dice.append(2 * len(left & right) / max(1, len(left) + len(right)))
        shares.append(np.mean(dice) if dice else 0.0)
    return np.array(shares)


def _trigrams(text: str) -> set[str]:
    """Return the character trigrams of a text in lower case."""
    padded = f" {text.lower()} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)}


def cut_into_sections(scores: np.ndarray) -> list[int]:
    """Cut scores [row] into sections of about equal means, and return the bounds of the sections."""
    least = max(LEAST_ROWS, int(0.01 * len(scores)))
    bounds = [0, len(scores)]
    waiting = [(0, len(scores))]
    while waiting:
        start, stop = waiting.pop()
        cut = _best_cut(scores[start:stop], least)
        if cut is not None:
            bounds.append(start + cut)
            waiting += [(start, start + cut), (start + cut, stop)]
    return sorted(bounds)


def _best_cut(scores: np.ndarray, least: int) -> int | None:
    """Find the row where the means before and after it differ most.

    Args:
        scores: Scores [row].
        least: Number of rows that there must be on either side.

    Returns:
        The row, or None if the means differ by less than four standard errors, or there are too few rows.
    """
    rows = len(scores)
    if rows < 2 * least:
        return None
    mean, total, most, cut = scores.mean(dtype=np.float64), 0.0, -1.0, least
    for start in range(0, rows - least, BLOCK):
        sums = total + np.cumsum(scores[start : start + BLOCK].astype(np.float64) - mean)
        total = sums[-1]
        left = np.arange(max(least, start + 1), min(rows - least, start + BLOCK) + 1)
        if len(left):
            weighted = np.abs(sums[left - 1 - start]) / np.sqrt(left * (rows - left) / rows)
            if weighted.max() > most:
                most, cut = float(weighted.max()), int(left[np.argmax(weighted)])
    inside = (cut * _variance(scores[:cut]) + (rows - cut) * _variance(scores[cut:])) / rows
    return cut if most > 4 * np.sqrt(inside) else None


def _variance(scores: np.ndarray) -> float:
    """Return the variance of scores [row], computed in blocks, because a copy in float64 would be large."""
    mean = float(scores.mean(dtype=np.float64))
    squares = 0.0
    for start in range(0, len(scores), BLOCK):
        squares += float(np.square(scores[start : start + BLOCK].astype(np.float64) - mean).sum())
    return squares / len(scores)


def _has_fallen(scores: np.ndarray, bounds: Sequence[int], index: int) -> bool:
    """Whether the mean score of a section is more than two standard deviations below that of a neighbour."""
    sections = np.split(scores, bounds[1:-1])
    section = sections[index]
    for neighbour in (*sections[max(0, index - 1) : index], *sections[index + 1 : index + 2]):
        deviation = np.sqrt((_variance(section) + _variance(neighbour)) / 2)
        if neighbour.mean() - section.mean() > 2 * deviation:
            return True
    return False
