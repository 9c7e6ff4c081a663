"""The interface of filters of rows, filters of single rows, and the choice of one hypothesis."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.schema import row_numbers
from paranmt_hf.text.tokens import text_bytes
from paranmt_hf.text.word_rules import letters
from paranmt_hf.util.files import writing

# Reads the rows that a filter sees in order of their ids, each time it is called: the filter's `columns`, `id`, and
# `rank` if the release has one.
Rows = Callable[[], Iterator[pa.Table]]


@dataclass(frozen=True)
class Verdict:
    """Which rows of a table a filter keeps.

    Attributes:
        kept: Booleans [row].
        number: The number that decided [row], float64, such as the score or the id of the row that this one repeats,
            read where `kept` is false; None if there is none.
    """

    kept: np.ndarray
    number: np.ndarray | None = None


class Filter(ABC):
    """Decides for each row whether it is kept, from that row alone.

    Attributes:
        reason: Why it drops rows, in words that follow a count: `1,204 with identical sides`.
        columns: Columns of the release that it reads; `id` and a `rank` are always there.
        number: What the number of a verdict is, such as `para_score`; empty if there is none.
        identity: What determines its verdicts, as JSON values: settings, and checksums of every file that it reads.
    """

    def __init__(self, kind: str, reason: str, columns: Sequence[str] = (), number: str = "", **settings: Any) -> None:  # noqa: ANN401 - JSON values
        self.reason, self.columns, self.number = reason, tuple(columns), number
        self.identity: Mapping[str, Any] = {"filter": kind, **settings}

    @abstractmethod
    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""


class TwoPassFilter(Filter):
    """Decides for each row whether it is kept after reading all of them, in memory independent of their number.

    `judge` gets the same rows in the same order as `prepare`, each once, but tables may be cut at other places; so a
    filter may count rows to recognise them.
    """

    @abstractmethod
    def prepare(self, rows: Rows, work: Path) -> None:
        """Read all rows before any is judged.

        Args:
            rows: Reads them, as often as it is called.
            work: An empty folder for what does not fit into memory, removed when all rows are judged.
        """


class HasValue(Filter):
    """Drops rows whose value in a column is null or not a number: they have no rank and lie in no range."""

    def __init__(self, column: str) -> None:
        super().__init__("has value", f"without {column}", [column], column=column)

    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""
        return Verdict(numbers(table[self.columns[0]])[1])


class InRange(Filter):
    """Drops rows whose value in a column is outside a range; both ends are inside.

    A bound of a column of 32-bit numbers is rounded to these, so that a bound of 0.7 includes rows that show 0.7.
    """

    def __init__(self, column: str, low: float | None, high: float | None) -> None:
        self.low, self.high = low, high
        if low is not None and high is not None:
            outside = f"outside {low:g} to {high:g}"
        else:
            outside = f"above {high:g}" if low is None else f"below {low:g}"
        super().__init__("range", f"with {column} {outside}", [column], column, column=column, low=low, high=high)

    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""
        values, kept = numbers(table[self.number])
        kind = values.dtype.type if values.dtype.kind == "f" else float
        known = kept
        if self.low is not None:
            kept = kept & (values >= kind(self.low))
        if self.high is not None:
            kept = kept & (values <= kind(self.high))
        return Verdict(kept, np.where(known, values, np.nan))


class FromOrigins(Filter):
    """Drops rows that are not from the named origins."""

    def __init__(self, origins: Collection[str]) -> None:
        self.origins = sorted(set(origins))
        super().__init__("origin", f"not from {' or '.join(self.origins)}", ["origin"], origins=self.origins)

    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""
        # A row without an origin is not among them: a null is in no list.
        return Verdict(pc.is_in(table["origin"].cast(pa.string()), pa.array(self.origins)).to_numpy())


class LengthLimit(Filter):
    """Drops rows with a side of too few or too many word tokens (ParaNMT-50M, section 5.4: at most 30)."""

    def __init__(self, least: int | None, most: int | None) -> None:
        self.least, self.most = least, most
        parts = [f"under {least}"] if least is not None else []
        parts += [f"over {most}"] if most is not None else []
        reason = f"with a side {' or '.join(parts)} tokens"
        super().__init__(
            "length", reason, ["reference_length", "translation_length"], "tokens", least=least, most=most
        )

    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""
        sides = [table[name].to_numpy() for name in self.columns]
        shorter, longer = np.minimum(*sides), np.maximum(*sides)
        short = shorter < self.least if self.least is not None else np.zeros(len(shorter), bool)
        long = longer > self.most if self.most is not None else np.zeros(len(shorter), bool)
        return Verdict(~(short | long), np.where(short, shorter, longer).astype(np.float64))


class DifferentSides(Filter):
    """Drops rows whose sides have the same letters and digits in the same order, ignoring case and all else.

    Two sides without any letter or digit are the same.
    """

    def __init__(self) -> None:
        super().__init__("identical sides", "with identical sides", ["reference", "translation"])

    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""
        sides = [table[name].combine_chunks() for name in self.columns]
        (first, strange), (second, also_strange) = map(_letter_sums, sides)
        # Only sides that may be the same are compared letter by letter, which takes twenty times as long.
        doubtful = np.flatnonzero(strange | also_strange | (first == second))
        same = pc.equal(*(letters(side.take(pa.array(doubtful))) for side in sides)).to_numpy(zero_copy_only=False)
        kept = np.ones(table.num_rows, bool)
        kept[doubtful[same]] = False
        return Verdict(kept)


def numbers(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """The values of a column of numbers [row] in their own precision, and which are neither null nor NaN [row]."""
    known = column.is_valid().to_numpy()
    values = (pc.fill_null(column, 0) if column.null_count else column).to_numpy()
    return values, known & ~np.isnan(values) if values.dtype.kind == "f" else known


# What letters and digits of ASCII count, upper case like lower case; the sum of what all bytes of a text count.
_COUNTS = bytes(
    (ord(chr(byte).lower()) * 37) % 241 + 1 if byte < 128 and chr(byte).isalnum() else 0 for byte in range(256)
)


def _letter_sums(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Sums [text] that are equal if letters and digits are, and a mask of texts [text] with non-ASCII characters."""
    content, offsets = text_bytes(texts)
    if not len(content):
        return np.zeros(len(texts), np.uint32), np.zeros(len(texts), bool)
    # One more byte, at which empty texts at the end begin.
    counts = np.frombuffer(content.tobytes().translate(_COUNTS) + b"\0", np.uint8)
    sums = np.add.reduceat(counts, offsets[:-1], dtype=np.uint32)
    # Of an empty text `reduceat` gives a byte of the next one.
    sums[offsets[1:] == offsets[:-1]] = 0
    strange = np.zeros(len(texts), bool)
    others = np.flatnonzero(content > 127)
    strange[np.searchsorted(offsets, others, side="right") - 1] = True
    return sums, strange


Keep = Literal["best", "most-similar", "most-different"]
# What decides: columns in order, and whether their smallest value is wanted.
ORDERS: dict[Keep, tuple[tuple[str, bool], ...]] = {
    "best": (),
    "most-similar": (("para_score", False),),
    "most-different": (("trigram_overlap", True), ("para_score", False)),
}


class OneHypothesis(TwoPassFilter):
    """Keeps one row of each id.

    `best` is the smallest rank, `most-similar` the largest paraphrase score, and `most-different` the smallest trigram
    overlap, where a pair too short for trigrams counts as the same on both sides. Of equal overlaps the larger score
    is kept, and of equal rows the smaller rank. Filters before this one say what a hypothesis must have at least.
    """

    def __init__(self, keep: Keep) -> None:
        self.keep: Keep = keep
        columns = ["rank", *(name for name, _ in ORDERS[keep])]
        better = "better" if keep == "best" else keep.replace("most-", "more ")
        reason = f"with a {better} hypothesis of the same sentence"
        super().__init__("one hypothesis", reason, columns, columns[min(1, len(columns) - 1)], keep=keep)

    def prepare(self, rows: Rows, work: Path) -> None:
        """Write the row number of each kept id."""
        path = work / "stay"
        held: list[np.ndarray] = []
        with writing(work), path.open("wb") as file:
            for table in rows():
                found = self._records(table)
                whole = [np.concatenate(pair) for pair in zip(held, found, strict=True)] if held else found
                # Rows of the last id may continue in the next table.
                inside = int(np.searchsorted(whole[0], whole[0][-1]))
                file.write(_firsts([part[:inside] for part in whole]).tobytes())
                held = [part[inside:] for part in whole]
            if held:
                file.write(_firsts(held).tobytes())
        self._stay = mapped(path)

    def _records(self, table: pa.Table) -> list[np.ndarray]:
        """Ids, row numbers, and sort keys [row], in which the smallest value wins."""
        columns = [table["id"].to_numpy(), row_numbers(table)]
        for name, smallest in ORDERS[self.keep]:
            values, known = numbers(table[name])
            columns.append(np.where(known, values if smallest else -values, np.float32(1)))
        return columns

    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""
        own = row_numbers(table)
        places = np.minimum(np.searchsorted(self._stay, own), max(len(self._stay) - 1, 0))
        values, known = numbers(table[self.number])
        return Verdict(self._stay[places] == own, np.where(known, values, np.nan).astype(np.float64))


def mapped(path: Path) -> np.ndarray:
    """Map a file of numbers [number], int64, into memory."""
    return np.memmap(path, np.int64, "r") if path.stat().st_size else np.empty(0, np.int64)


def _firsts(records: list[np.ndarray]) -> np.ndarray:
    """Row number of each kept id, ascending, int64."""
    ids, rows, *decide = records
    order = np.lexsort((rows, *reversed(decide), ids))
    first = np.flatnonzero(np.diff(ids[order], prepend=-1))
    return rows[order][first].astype(np.int64)
