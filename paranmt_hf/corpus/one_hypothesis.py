"""One hypothesis of each sentence: of the rows of one id that are left, the best, most similar or most different."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.filters import Rows, TwoPassFilter, Verdict, numbers
from paranmt_hf.corpus.schema import row_numbers
from paranmt_hf.util.files import writing

Keep = Literal["best", "most-similar", "most-different"]
# What decides: columns in order, and whether their smallest value is wanted.
ORDERS: dict[Keep, tuple[tuple[str, bool], ...]] = {
    "best": (),
    "most-similar": (("para_score", False),),
    "most-different": (("trigram_overlap", True), ("para_score", False)),
}
REASONS: dict[Keep, str] = {
    "best": "with a better hypothesis of the same sentence",
    "most-similar": "with a more similar hypothesis of the same sentence",
    "most-different": "with a more different hypothesis of the same sentence",
}


class OneHypothesis(TwoPassFilter):
    """Keeps one row of each id.

    `best` is the smallest rank, `most-similar` the largest paraphrase score, and `most-different` the smallest trigram
    overlap, where a pair too short for trigrams counts as the same on both sides. Of equal overlaps the larger score
    stays, and of equal rows the smaller rank. Filters before this one say what a hypothesis must have at least.

    Args:
        keep: Which row stays.
    """

    def __init__(self, keep: Keep) -> None:
        self.keep = keep
        self.columns = ("rank", *(name for name, _ in ORDERS[keep]))
        self.number = self.columns[1] if ORDERS[keep] else "rank"
        self.reason = REASONS[keep]

    @property
    def identity(self) -> Mapping[str, Any]:
        """Its settings."""
        return {"filter": "one hypothesis", "keep": self.keep}

    def prepare(self, rows: Rows, work: Path) -> None:
        """Find the row that stays of each id, and write down its number."""
        path = work / "stay"
        held: list[np.ndarray] = []
        with writing(work), path.open("wb") as file:
            for table in rows():
                found = self._records(table)
                whole = [np.concatenate(pair) for pair in zip(held, found, strict=True)] if held else found
                # Rows of the last id may go on in the next table.
                inside = int(np.searchsorted(whole[0], whole[0][-1]))
                file.write(_firsts([part[:inside] for part in whole]).tobytes())
                held = [part[inside:] for part in whole]
            if held:
                file.write(_firsts(held).tobytes())
        self._stay = np.memmap(path, np.int64, "r") if path.stat().st_size else np.empty(0, np.int64)

    def _records(self, table: pa.Table) -> list[np.ndarray]:
        """Ids, row numbers, and what decides [row], each so that the smallest value wins."""
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


def _firsts(records: list[np.ndarray]) -> np.ndarray:
    """Number of the row that stays of each id, ascending, int64."""
    ids, rows, *decide = records
    order = np.lexsort((rows, *reversed(decide), ids))
    first = np.flatnonzero(np.diff(ids[order], prepend=-1))
    return rows[order][first].astype(np.int64)
