"""By how many lines the sides of a corpus are shifted: which translation each reference fits best.

A row votes for the shift at which its reference shares most character trigrams with the translation of a line. In real
pairs this is its own line (99 % of machine translations, 67 % of captions that people wrote independently). The shifts
of all rows are the most probable sequence of states for these votes, in which each change costs `CHANGE`; it is found
by dynamic programming (Viterbi 1967). A shift that begins and ends thus needs 11 votes more than its opposite. There
is no threshold for scores, which would differ between encoders.

Only few rows vote: some at regular distances, and those where the running mean of the scores is low. If the states of
two of them differ, rows between them vote too, until the place of each change is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

LEAST_ROWS = 20  # A shorter corpus is not looked at
LARGEST_SHIFT = 10  # Largest number of lines by which one side may be shifted
SHIFTS = range(-LARGEST_SHIFT, LARGEST_SHIFT + 1)
ALIGNED = LARGEST_SHIFT  # State of rows whose sides belong together; the state of a shift is its index in `SHIFTS`
UNRELATED = len(SHIFTS)  # State of rows whose references fit no translation better than others
NO_VOTE = -1
FITTING = 0.45  # Probability that a row votes for the shift of its state
CHANGE = 15.0  # Negative log-probability (natural logarithm) of a change of state
PROBE = 40  # Number of neighbouring rows that vote together
# Log-probability of a vote in each state [vote, state]; the last row is that of `NO_VOTE`, which is no evidence. In a
# state of a shift, a row votes for each other shift equally often; in the state `UNRELATED`, for all equally often.
EVIDENCE = np.full((len(SHIFTS) + 1, len(SHIFTS) + 1), np.log((1 - FITTING) / (len(SHIFTS) - 1)))
np.fill_diagonal(EVIDENCE, np.log(FITTING))
EVIDENCE[:, UNRELATED] = -np.log(len(SHIFTS))
EVIDENCE[NO_VOTE] = 0
COLUMNS = ("id", "reference", "translation", "reference_length", "translation_length")


@dataclass(frozen=True)
class Section:
    """Consecutive rows with the same state."""

    start: int  # Its first row, from 0
    stop: int  # The row behind its last one
    shift: int | None  # The reference of line `i` fits the translation of line `i + shift`; None if it fits none

    @property
    def rows(self) -> slice:
        """The rows, to index an array [row]."""
        return slice(self.start, self.stop)


class Lines:
    """The lines of a corpus in Parquet files, by row; if sentences have several hypotheses, only the first."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files
        parts = [self._read(file, ["para_score"])["para_score"].to_numpy() for file in files]
        self._starts = np.cumsum([0, *map(len, parts)])
        self._last: tuple[Path | None, pa.Table] = None, pa.table({})
        self.scores = np.concatenate(parts)  # Paraphrase scores [row]

    @staticmethod
    def _read(file: Path, columns: Sequence[str]) -> pa.Table:
        """Read columns of one file, without rows of other hypotheses than the first."""
        if "rank" not in pq.read_schema(file).names:
            return pq.read_table(file, columns=[*columns])
        table = pq.read_table(file, columns=[*columns, "rank"])
        return table.filter(pc.equal(table["rank"], 1))

    def read(self, start: int, stop: int) -> pa.Table:
        """Read `COLUMNS` of the rows from `start` up to `stop`, as far as there are such rows."""
        start, stop = max(start, 0), min(stop, len(self.scores))
        tables = []
        for file, first, end in zip(self._files, self._starts[:-1], self._starts[1:], strict=True):
            if first < stop and end > start:
                # Rows are asked for in order, so the file is often the same as before.
                if self._last[0] != file:
                    self._last = file, self._read(file, COLUMNS)
                tables.append(self._last[1].slice(max(0, start - first), min(stop, end) - max(start, first)))
        return pa.concat_tables(tables)

    def number(self, row: int) -> int:
        """Return the number of the input line, from 1, that a row comes from."""
        return int(self.read(row, row + 1)["id"][0].as_py()) + 1


def find_sections(lines: Lines) -> list[Section]:
    """Cut a corpus into sections in which the sides are shifted by the same number of lines."""
    count = len(lines.scores)
    if count < LEAST_ROWS:
        return [Section(0, count, 0)]
    votes: dict[int, int] = {}
    wanted = rows_to_ask(lines.scores)
    while wanted:
        for start, stop in wanted:
            votes |= zip(range(start, stop), _votes(lines, start, stop), strict=True)
        rows = np.array(sorted(votes))
        evidence = EVIDENCE[[votes[row] for row in rows.tolist()]]
        states = likeliest_states(evidence)
        changes = np.flatnonzero(np.diff(states))
        gaps = np.diff(rows) > 1
        uncertain = np.zeros(len(gaps), bool)
        for change in changes:
            first, last = _uncertain(evidence, int(states[change]), int(states[change + 1]), int(change))
            uncertain[first : last + 1] = True
        wanted = [_middle(int(rows[gap]) + 1, int(rows[gap + 1])) for gap in np.flatnonzero(gaps & uncertain)]
    bounds = [0, *rows[changes + 1].tolist(), count]
    kept = [states[0], *states[changes + 1]]
    shifts = [None if state == UNRELATED else SHIFTS[state] for state in kept]
    return [Section(*section) for section in zip(bounds[:-1], bounds[1:], shifts, strict=True)]


def _uncertain(evidence: np.ndarray, before: int, after: int, change: int) -> tuple[int, int]:
    """Return the first and the last row behind which a state may as well change.

    These are the rows for which the evidence is less than `CHANGE` weaker than for the most probable one.

    Args:
        evidence: See `likeliest_states`.
        before: State before the change.
        after: State behind it.
        change: The row behind which the state most probably changes.
    """
    more = evidence[:, after] - evidence[:, before]
    earlier = np.flatnonzero(np.cumsum(-more[change::-1]) >= CHANGE)
    later = np.flatnonzero(np.cumsum(more[change + 1 :]) >= CHANGE)
    first = change - int(earlier[0]) if len(earlier) else 0
    return first, change + int(later[0]) if len(later) else len(evidence) - 2


def _middle(start: int, stop: int) -> tuple[int, int]:
    """Return the first of at most `PROBE` rows in the middle of rows, and the row behind their last one."""
    middle = (start + stop) // 2
    return max(start, middle - PROBE // 2), min(stop, middle + PROBE // 2)


def rows_to_ask(scores: np.ndarray) -> list[tuple[int, int]]:
    """Choose the rows that vote at first.

    They are at regular distances, so that a long section is found whatever its scores are, and where the mean of 20
    scores is four standard deviations below the median of such means.

    Args:
        scores: Paraphrase scores [row], at least `LEAST_ROWS`.

    Returns:
        The first row of each group, and the row behind its last one; ascending and disjoint.
    """
    count = len(scores)
    starts = {*range(0, count, min(20_000, max(250, count // 20))), count - PROBE}
    tens = scores[: count // 10 * 10].reshape(-1, 10).mean(axis=1, dtype=np.float64)
    means = (tens[:-1] + tens[1:]) / 2
    # Low scores must not widen the scale, so it is made of the upper half: 0.674 deviations to the upper quartile.
    middle, upper = np.quantile(means, [0.5, 0.75])
    low = np.flatnonzero(means < middle - 4 * (upper - middle) / 0.674)
    for run in np.split(low, np.flatnonzero(np.diff(low) > 1) + 1) if len(low) else []:
        first, end = 10 * int(run[0]), 10 * int(run[-1]) + 20
        starts |= {*range(first - 10, end, 500), end - PROBE + 10}
    groups: list[tuple[int, int]] = []
    for start in sorted(starts):
        start, stop = max(start, 0, groups[-1][1] if groups else 0), min(start + PROBE, count)
        if start < stop:
            groups.append((start, stop))
    return groups


def _votes(lines: Lines, start: int, stop: int) -> list[int]:
    """Return for which state, a shift, each row from `start` up to `stop` votes, or `NO_VOTE`."""
    first = max(0, start - LARGEST_SHIFT)
    table = lines.read(first, stop + LARGEST_SHIFT)
    numbers = table["id"].to_numpy()
    trigrams = _trigrams(table["reference"].to_pylist() + table["translation"].to_pylist())
    references, translations = trigrams[: len(numbers)], trigrams[len(numbers) :]
    rows = np.arange(start - first, stop - first)
    # Lines that were dropped have no row, so the line of a shift is found by its id.
    wanted = numbers[rows, None] + np.array(SHIFTS)
    others = np.searchsorted(numbers, wanted).clip(max=len(numbers) - 1)  # Their rows [row, shift]
    shares = np.where(numbers[others] == wanted, dice(references, translations)[rows[:, None], others], 0)
    best = shares.max(axis=1)
    # A line whose own translation fits as well as any other is in its place.
    votes = np.where(shares[:, ALIGNED] == best, ALIGNED, shares.argmax(axis=1))
    several = (shares == best[:, None]).sum(axis=1) > 1
    # If the reference of the other line is nearly the same, such as a copy of this one, the vote shows nothing.
    alike = dice(references, references)[rows, others[np.arange(len(rows)), votes]] >= 0.8
    shows_nothing = (best == 0) | ((several | alike) & (votes != ALIGNED))
    return np.where(shows_nothing, NO_VOTE, votes).tolist()


def dice(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the Dice coefficients [left, right], from 0 to 1, of sets that are given as 0 and 1 [set, element]."""
    sizes = left.sum(axis=1)[:, None] + right.sum(axis=1)
    return 2 * (left @ right.T) / np.maximum(1, sizes)


def _trigrams(texts: Sequence[str]) -> np.ndarray:
    """Return which character trigrams each text has in lower case: 0 or 1 [text, trigram], float32."""
    padded = [f" {text.lower()} " for text in texts]
    characters = np.frombuffer("".join(padded).encode("utf-32-le"), np.uint32).astype(np.uint64)
    # A character has 21 bits, so that three fit into one number.
    codes = characters[:-2] << np.uint64(42) | characters[1:-1] << np.uint64(21) | characters[2:]
    text_of = np.repeat(np.arange(len(texts)), [len(text) for text in padded])
    within = text_of[:-2] == text_of[2:]
    found, columns = np.unique(codes[within], return_inverse=True)
    has = np.zeros((len(texts), len(found)), np.float32)
    has[text_of[:-2][within], columns] = 1
    return has


def likeliest_states(evidence: np.ndarray) -> np.ndarray:
    """Find the most probable states of rows [row], if each change costs `CHANGE`, and so does a first row in a shift.

    Args:
        evidence: Log-probability of the vote of each row in each state [row, state].
    """
    values = np.full(evidence.shape[1], -CHANGE)
    values[ALIGNED] = 0.0
    came_from = np.empty(evidence.shape, np.int8)
    same = np.arange(len(values), dtype=np.int8)
    for row, more in enumerate(evidence):
        best = int(values.argmax())
        changed = values[best] - CHANGE
        came_from[row] = np.where(values < changed, best, same)
        values = np.maximum(values, changed) + more
    states = np.empty(len(evidence), np.int64)
    state = int(values.argmax())
    for row in range(len(evidence) - 1, -1, -1):
        states[row] = state
        state = int(came_from[row, state])
    return states
