"""Whether the two sides of a corpus belong together: warnings about shifted sections, and the column `alignment`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.scoring.line_shifts import LARGEST_SHIFT, Lines, Section, find_sections
from paranmt_hf.corpus.scoring.sentence_ends import sentence_mismatch
from paranmt_hf.util.wording import counted

ALIGNMENT = "alignment"
DEFINITION = 1  # Raise it when the definition changes, so that columns of earlier corpora are computed again
WARNING = "the two sides do not belong together"  # The beginning of each warning
MOST_WARNINGS = 10
ADVICE = (
    "correct the input, or mark the lines with `paranmt score CORPUS --add alignment` and drop them with `paranmt "
    "select CORPUS --min alignment=0 --max alignment=0`"
)


@dataclass(frozen=True)
class Misaligned:
    """A section of a corpus whose sides do not belong together."""

    first: int  # Its first line, from 1
    last: int  # Its last line
    rows: int  # Number of its rows
    shift: int | None  # Reference `n` belongs to translation `n + shift`; None if unknown
    score: float  # Mean paraphrase score of the section
    others: float | None = None  # Mean score of the sections whose sides belong together; None if there are none
    change: int | None = None  # By how much the shift is larger than in the section before; None if unknown
    joined: str = ""  # Where a reference or translation probably holds two lines; "" if unknown
    ends: bool = False  # Whether the sides belong together again behind it

    def describe(self) -> str:
        """Describe the section in one sentence, with its probable cause."""
        elsewhere = "" if self.others is None else f", elsewhere {self.others:.2f}"
        place = f"from line {self.first:,} to {self.last:,}"
        found = f"{WARNING} {place} ({counted(self.rows, 'pair')}, mean para_score {self.score:.2f}{elsewhere}): "
        if self.shift is None:
            found += "references share no more with their translation than with others, as in another text"
        else:
            found += f"they look shifted by {abs(self.shift)}, reference n fits translation n{self.shift:+d}"
        if self.change:
            lines = counted(abs(self.change), "line")
            lacking, other = ("reference", "other side") if self.change > 0 else ("other side", "reference")
            found += f"; before line {self.first:,} the {lacking} lacks {lines}, or the {other} has {lines} too many"
        if self.joined:
            found += f"; {self.joined}"
        return found + (f"; from line {self.last + 1:,} on they belong together again" if self.ends else "")


def alignment_warnings(found: Sequence[Misaligned]) -> list[str]:
    """Return warnings about sections whose sides do not belong together, for at most `MOST_WARNINGS` of them."""
    warnings = [section.describe() for section in found[:MOST_WARNINGS]]
    if len(found) > MOST_WARNINGS:
        warnings[-1] += f"; and so do {counted(len(found) - MOST_WARNINGS, 'other section')}"
    if warnings:
        warnings[-1] += f"; {ADVICE}"
    return warnings


def misaligned_sections(files: Sequence[Path]) -> list[Misaligned]:
    """Find the sections of a corpus whose sides do not belong together.

    Args:
        files: Parquet files of the corpus, in order.
    """
    lines = Lines(files)
    sections = find_sections(lines)
    if all(section.shift == 0 for section in sections):
        return []
    aligned = np.concatenate(
        [np.zeros(0, np.float32), *(lines.scores[one.rows] for one in sections if one.shift == 0)]
    )
    others = float(aligned.mean(dtype=np.float64)) if len(aligned) else None
    # Bad translations fit no reference either. A section counts if its scores are also much lower than elsewhere.
    least = -np.inf
    if others is not None:
        least = others - 2 * float(np.sqrt(np.square(aligned - others).mean(dtype=np.float64)))
    found: list[Misaligned] = []
    before: int | None = 0
    for section in sections:
        score = float(lines.scores[section.rows].mean(dtype=np.float64))
        shift = section.shift if section.shift is not None or score < least else 0
        if shift == 0:
            if found and before != 0:
                found[-1] = replace(found[-1], ends=True)
        else:
            first, last = lines.number(section.start), lines.number(section.stop - 1)
            rows = section.stop - section.start
            change, joined = None, ""
            if shift is not None and before is not None:
                change = shift - before
                joined = _joined(lines, section, before, change)
            found.append(Misaligned(first, last, rows, shift, score, others, change, joined))
        before = shift
    return found


def _joined(lines: Lines, section: Section, before: int, change: int) -> str:
    """Find the line that probably holds two of the other side, so that those behind it are shifted; "" if none does.

    Such a line is longer than the one that it belongs to, and has more sentences.

    Args:
        lines: The corpus.
        section: The section that begins behind the line.
        before: Shift of the section before.
        change: By how much the shift is larger than before.
    """
    table = lines.read(section.start - LARGEST_SHIFT - 2, section.start + LARGEST_SHIFT + 1)
    numbers = table["id"].to_numpy()
    start = int(np.searchsorted(numbers, lines.number(section.start) - 1))
    near = numbers[max(0, start - 2) : start + 1]
    near = near[np.isin(near + before, numbers)]
    left = table.take(np.searchsorted(numbers, near))
    right = table.take(np.searchsorted(numbers, near + before))
    sides = left["reference"].combine_chunks(), right["translation"].combine_chunks()
    lengths = left["reference_length"].to_numpy(), right["translation_length"].to_numpy()
    longer = lengths[0] > lengths[1] if change > 0 else lengths[0] < lengths[1]
    mismatches = sentence_mismatch(*sides, *lengths).to_numpy()
    for line in near[longer & (mismatches > 0)]:
        one, other = ("has more", "fewer") if change > 0 else ("has fewer", "more")
        return (
            f"reference {line + 1:,} {one} sentences than translation {line + before + 1:,}: lines may be joined there"
        )
    return ""


def with_alignment(tables: Iterable[pa.Table], found: Sequence[Misaligned]) -> Iterator[pa.Table]:
    """Give tables of a corpus the column `alignment`, int32: the shift of each row; null if it is not known.

    Args:
        tables: Rows of the corpus.
        found: Sections whose sides do not belong together, in order.
    """
    # The first entry stands for the rows before the first section.
    firsts = np.array([0, *(section.first for section in found)])
    lasts = np.array([0, *(section.last for section in found)])
    shifts = np.array([0, *(section.shift or 0 for section in found)])
    unknown = np.array([False, *(section.shift is None for section in found)])
    for table in tables:
        numbers = table["id"].to_numpy() + 1
        sections = np.searchsorted(firsts, numbers, side="right") - 1
        sections[numbers > lasts[sections]] = 0
        column = pa.array(shifts[sections], pa.int32(), mask=unknown[sections])
        if ALIGNMENT in table.column_names:
            table = table.drop_columns([ALIGNMENT])
        yield table.append_column(ALIGNMENT, column)
