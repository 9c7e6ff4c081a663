"""The interface of filters, and simple filters: by columns, ranks and hypotheses, and random samples."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.release.schema import row_numbers
from paranmt_hf.corpus.statistics.draws import lottery
from paranmt_hf.errors import InputError
from paranmt_hf.text.tokens import text_bytes
from paranmt_hf.text.word_rules import letters
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)
# A function that reads all rows a filter gets, in the order of their ids; it can be called several times. The tables
# have the `columns` of the filter, `id`, and `rank` if the corpus has it.
Rows = Callable[[], Iterator[pa.Table]]


@dataclass(frozen=True)
class Verdict:
    """Which rows of a table a filter keeps, and why not the others."""

    kept: np.ndarray  # Booleans [row]
    # For each row that is not kept the number that decided, such as its score or the id of the row that it repeats
    # [row], float64; other entries mean nothing. None if no number decided
    number: np.ndarray | None = None


class Filter(ABC):
    """Decides for each row whether it is kept, from that row alone.

    Attributes:
        reason: Why rows are dropped, in words that follow a count, as in `1,204 with identical sides`.
        columns: Columns that the filter reads, besides `id` and `rank`.
        number: What the number of a verdict is, such as `para_score`; empty if there is none.
        identity: Everything that determines the verdicts, as JSON values: settings, and checksums of all files that it
            reads.
        explains: Whether the filter can name the evaluation sentence that a dropped row resembles.
        task: What progress messages call the work.
    """

    explains, task = False, "select"

    def __init__(self, kind: str, reason: str, columns: Sequence[str] = (), number: str = "", **settings: Any) -> None:  # noqa: ANN401 - JSON values
        self.reason, self.columns, self.number = reason, tuple(columns), number
        self.identity: Mapping[str, Any] = {"filter": kind, **settings}

    @abstractmethod
    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""

    def explain(self, table: pa.Table) -> list[tuple[str, str]]:
        """Explain rows that this filter dropped by evaluation sentences.

        Returns:
            For each row the evaluation sentence that it resembles, and the file that this is from.
        """
        raise NotImplementedError


class TwoPassFilter(Filter):
    """Decides for each row whether it is kept after reading all rows.

    `judge` gets the same rows as `prepare`, in the same order and each once, but they may be cut into other tables. In
    between only a few bytes are kept for each row.
    """

    _seen = 0

    def next_rows(self, table: pa.Table) -> slice:
        """Return the range of the indices that the rows of the next table have among all rows."""
        start, self._seen = self._seen, self._seen + table.num_rows
        return slice(start, self._seen)

    @abstractmethod
    def prepare(self, rows: Rows, work: Path) -> None:
        """Read all rows, before any is judged.

        Args:
            rows: Reads the rows.
            work: Empty folder, which is removed after all rows are judged.
        """


class HasValue(Filter):
    """Drops rows whose value in a column is null or NaN, because these have no rank and are in no range."""

    def __init__(self, column: str) -> None:
        super().__init__("has value", f"without {column}", [column], column=column)

    def judge(self, table: pa.Table) -> Verdict:
        return Verdict(numbers(table[self.columns[0]])[1])


class InRange(Filter):
    """Drops rows whose value in a column is outside a range; both bounds are inside.

    Bounds of a column in single precision are rounded to it, so that a bound of 0.7 includes rows that show 0.7.

    Args:
        column: Name of the column.
        low: Smallest value; None for no bound.
        high: Largest value; None for no bound.
    """

    def __init__(self, column: str, low: float | None, high: float | None) -> None:
        self.low, self.high = low, high
        if low is None:
            outside = f"above {high:g}"
        elif high is None:
            outside = f"below {low:g}"
        else:
            outside = f"outside {low:g} to {high:g}"
        super().__init__("range", f"with {column} {outside}", [column], column, column=column, low=low, high=high)

    def judge(self, table: pa.Table) -> Verdict:
        values, kept = numbers(table[self.number])
        kind = values.dtype.type if values.dtype.kind == "f" else float
        known = kept
        if self.low is not None:
            kept = kept & (values >= kind(self.low))
        if self.high is not None:
            kept = kept & (values <= kind(self.high))
        return Verdict(kept, np.where(known, values, np.nan))


class FromOrigins(Filter):
    """Drops rows that come from other origins than the given ones."""

    def __init__(self, origins: Collection[str]) -> None:
        self.origins = sorted(set(origins))
        super().__init__("origin", f"not from {' or '.join(self.origins)}", ["origin"], origins=self.origins)

    def judge(self, table: pa.Table) -> Verdict:
        # Null is in no list, so rows without an origin are dropped.
        return Verdict(pc.is_in(table["origin"].cast(pa.string()), pa.array(self.origins)).to_numpy())


class LengthLimit(Filter):
    """Drops rows with a side of too few or too many word tokens (ParaNMT-50M, section 5.4: at most 30).

    Args:
        least: Smallest number of tokens; None for no bound.
        most: Largest number of tokens; None for no bound.
    """

    def __init__(self, least: int | None, most: int | None) -> None:
        self.least, self.most = least or 0, math.inf if most is None else most
        parts = []
        if least is not None:
            parts.append(f"under {least}")
        if most is not None:
            parts.append(f"over {most}")
        reason = f"with a side {' or '.join(parts)} tokens"
        super().__init__(
            "length", reason, ["reference_length", "translation_length"], "tokens", least=least, most=most
        )

    def judge(self, table: pa.Table) -> Verdict:
        sides = [table[name].to_numpy() for name in self.columns]
        shorter, longer = np.minimum(*sides), np.maximum(*sides)
        short = shorter < self.least
        return Verdict(~short & (longer <= self.most), np.where(short, shorter, longer).astype(np.float64))


class DifferentSides(Filter):
    """Drops rows whose sides have the same letters and digits in the same order, in any case.

    The normal forms of the sides are compared (`text/normal_form.py`). Two sides without any letter or digit are the
    same.
    """

    def __init__(self) -> None:
        super().__init__("identical sides", "with identical sides", ["reference", "translation"])

    def judge(self, table: pa.Table) -> Verdict:
        sides = [table[name].combine_chunks() for name in self.columns]
        (first, strange), (second, also_strange) = map(_letter_sums, sides)
        # Comparing letter by letter takes twenty times as long, so only sides that may be the same are compared.
        doubtful = np.flatnonzero(strange | also_strange | (first == second))
        same = pc.equal(*(letters(side.take(pa.array(doubtful))) for side in sides)).to_numpy(zero_copy_only=False)
        kept = np.ones(table.num_rows, bool)
        kept[doubtful[same]] = False
        return Verdict(kept)


def numbers(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a column of numbers.

    Returns:
        The values [row] in their own precision, 0 for null; and a mask [row] of those that are neither null nor NaN.
    """
    known = column.is_valid().to_numpy()
    values = (pc.fill_null(column, 0) if column.null_count else column).to_numpy()
    return values, known & ~np.isnan(values) if values.dtype.kind == "f" else known


# A number for each byte: for letters and digits of ASCII one that ignores case, for all other bytes 0. The sum of
# these numbers over a text is its letter sum.
_COUNTS = bytes(
    (ord(chr(byte).lower()) * 37) % 241 + 1 if byte < 128 and chr(byte).isalnum() else 0 for byte in range(256)
)


def _letter_sums(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the letter sums of texts, which are equal if their letters and digits are.

    Returns:
        The sums [text], and a mask [text] of texts with bytes for which the sum is not enough, because the normal form
        may differ or they are not ASCII.
    """
    content, offsets = text_bytes(texts)
    if not len(content):
        return np.zeros(len(texts), np.uint32), np.zeros(len(texts), bool)
    # The additional byte is where empty texts at the end begin.
    counts = np.frombuffer(content.tobytes().translate(_COUNTS) + b"\0", np.uint8)
    sums = np.add.reduceat(counts, offsets[:-1], dtype=np.uint32)
    # For an empty text `reduceat` returns the first byte of the next text, so its sum is set to 0.
    sums[offsets[1:] == offsets[:-1]] = 0
    strange = np.zeros(len(texts), bool)
    others = np.flatnonzero((content > 127) | (content == ord("&")))
    strange[np.searchsorted(offsets, others, side="right") - 1] = True
    return sums, strange


Keep = Literal["best", "most-similar", "most-different"]
# For each choice the columns that decide, in order, and whether the smallest value is the best; then the rank decides.
ORDERS: dict[Keep, tuple[tuple[str, bool], ...]] = {
    "best": (),
    "most-similar": (("para_score", False),),
    "most-different": (("trigram_overlap", True), ("para_score", False)),
}


class OneHypothesis(TwoPassFilter):
    """Keeps one row for each id.

    `best` is the row with the smallest rank, `most-similar` the one with the largest paraphrase score, and
    `most-different` the one with the smallest trigram overlap. A pair too short for trigrams counts as having the
    largest overlap. Among equal overlaps the larger score is kept, and among equal rows the smaller rank. Filters
    before this one decide which hypotheses are good enough.
    """

    def __init__(self, keep: Keep) -> None:
        self.keep: Keep = keep
        columns = ["rank", *(name for name, _ in ORDERS[keep])]
        better = "better" if keep == "best" else keep.replace("most-", "more ")
        reason = f"with a {better} hypothesis of the same sentence"
        super().__init__("one hypothesis", reason, columns, columns[min(1, len(columns) - 1)], keep=keep)

    def prepare(self, rows: Rows, work: Path) -> None:
        held, kept = None, []
        for table in rows():
            whole = table if held is None else pa.concat_tables([held, table])
            # The rows of the last id may continue in the next table, so they are held back.
            inside = int(np.searchsorted(whole["id"].to_numpy(), whole["id"][-1].as_py()))
            kept.append(self._best(whole.slice(0, inside)))
            held = whole.slice(inside)
        self._kept = np.concatenate([*kept, *([] if held is None else [self._best(held)])] or [np.empty(0, bool)])

    def _best(self, table: pa.Table) -> np.ndarray:
        """Return a mask [row] of the best row of each id."""
        keys = []
        for name, smallest in ORDERS[self.keep]:
            values, known = numbers(table[name])
            keys.append(np.where(known, values if smallest else -values, np.float32(1)))
        ids = table["id"].to_numpy()
        order = np.lexsort((row_numbers(table), *reversed(keys), ids))
        kept = np.zeros(len(ids), bool)
        kept[order[np.flatnonzero(np.diff(ids[order], prepend=-1))]] = True
        return kept

    def judge(self, table: pa.Table) -> Verdict:
        values, known = numbers(table[self.number])
        return Verdict(self._kept[self.next_rows(table)], np.where(known, values, np.nan).astype(np.float64))


def parse_tenths(text: str) -> list[int]:
    """Read a choice of tenths such as `9-10` or `1,3,5-6` as ascending numbers from 1 to 10.

    Raises:
        InputError: If the text is not such a choice.
    """
    chosen: set[int] = set()
    for word in text.split(","):
        first, dash, end = (part.strip() for part in word.partition("-"))
        if not first.isdecimal() or (dash and not end.isdecimal()) or not 1 <= int(first) <= int(end or first) <= 10:
            raise InputError(
                f"tenths must be numbers from 1, the lowest, to 10, such as 9-10 or 1,3,5-6, was {text!r}",
                option="tenths",
            )
        chosen |= set(range(int(first), int(end or first) + 1))
    return sorted(chosen)


def parts_by_rank(values: np.ndarray, parts: int) -> np.ndarray:
    """Cut rows by the rank of their values into parts of equal size.

    The row of rank `r`, from 0, among `n` rows is in part `parts * r // n + 1`. Among equal values the first row ranks
    lower.

    Args:
        values: The values [row], without NaN.
        parts: Number of parts.

    Returns:
        The part of each row [row], from 1, uint8.
    """
    order = np.argsort(values, kind="stable")
    part_of = np.empty(len(values), np.uint8)
    for part in range(parts):
        start, stop = (-(-len(values) * bound // parts) for bound in (part, part + 1))
        part_of[order[start:stop]] = part + 1
    return part_of


class Tenths(TwoPassFilter):
    """Keeps some tenths of the rows, ranked by a column (ParaNMT-50M, section 5.4, table 5).

    Tenth 1 has the lowest values. Rows with equal values are ranked by their ids. Rows without a value have no rank,
    so `HasValue` must drop them before.

    Args:
        column: Name of the column.
        tenths: The tenths that are kept, from 1 to 10.
    """

    def __init__(self, column: str, tenths: Sequence[int]) -> None:
        self.tenths = sorted(set(tenths))
        reason = f"outside tenth{'s' * (len(self.tenths) > 1)} {', '.join(map(str, self.tenths))} of {column}"
        super().__init__("tenths", reason, [column], column, column=column, tenths=self.tenths)

    def prepare(self, rows: Rows, work: Path) -> None:
        values = np.concatenate([numbers(table[self.number])[0] for table in rows()] or [np.empty(0)])
        self._tenth = parts_by_rank(values, 10)

    def judge(self, table: pa.Table) -> Verdict:
        kept = np.isin(self._tenth[self.next_rows(table)], self.tenths)
        return Verdict(kept, numbers(table[self.number])[0].astype(np.float64))


class RandomSample(TwoPassFilter):
    """Keeps a random sample of `count` rows, or all rows if there are fewer: those with the smallest lottery numbers.

    The sample depends only on the ids of the rows and on the seed, not on their files or their order.
    """

    def __init__(self, count: int, seed: int) -> None:
        super().__init__("sample", f"not among {count:,} sampled at random", count=count, seed=seed)
        self.count, self.seed = count, seed

    def _draws(self, table: pa.Table) -> np.ndarray:
        """Return the lottery number of each row [row]."""
        return lottery(row_numbers(table), self.seed)

    def prepare(self, rows: Rows, work: Path) -> None:
        draws = np.concatenate([*map(self._draws, rows()), np.empty(0, np.uint64)])
        if 0 < len(draws) < self.count:
            logger.warning(f"the other filters leave {counted(len(draws), 'row')}, fewer than `sample`; all are kept")
        few = len(draws) <= self.count
        self._largest = np.uint64(2**64 - 1) if few else np.partition(draws, self.count - 1)[self.count - 1]

    def judge(self, table: pa.Table) -> Verdict:
        return Verdict(self._draws(table) <= self._largest)
