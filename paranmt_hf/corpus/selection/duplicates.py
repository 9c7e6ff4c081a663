"""Filters of rows that repeat an earlier one, exactly or nearly; the first row by id is kept."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.selection.filters import Rows, TwoPassFilter, Verdict
from paranmt_hf.corpus.selection.near_duplicates import Likeness, NearDuplicateSearch
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import writing
from paranmt_hf.util.parquet import database
from paranmt_hf.util.progress import QUIET_SECONDS, Progress

Compared = Literal["pair", "reference", "translation"]
SIDES: dict[Compared, tuple[str, ...]] = {
    "pair": ("reference", "translation"),
    "reference": ("reference",),
    "translation": ("translation",),
}


class FirstIsKept(TwoPassFilter):
    """Drops rows that repeat an earlier row; a subclass finds them."""

    @abstractmethod
    def find_repeats(self, rows: Rows, work: Path) -> tuple[np.ndarray, np.ndarray]:
        """Places of the rows that repeat another, ascending [repeat], and ids of the repeated rows [repeat]."""

    def prepare(self, rows: Rows, work: Path) -> None:
        """Find the rows that repeat another."""
        with writing(work):
            self._places, self._firsts = self.find_repeats(rows, work)
        # From here on, rows are recognised by their place.
        self.columns = ()

    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""
        here = self.next_rows(table)
        start, stop = np.searchsorted(self._places, [here.start, here.stop])
        firsts = np.full(table.num_rows, -1, np.int64)
        firsts[self._places[start:stop] - here.start] = self._firsts[start:stop]
        return Verdict(firsts < 0, firsts.astype(np.float64))


class FirstCopies(FirstIsKept):
    """Drops a row with the pair, reference or translation of an earlier one, exactly as written.

    Two independent hashes of 64 bits represent the sentences; DuckDB finds those that repeat, out of core.
    """

    def __init__(self, compared: Compared) -> None:
        self.compared = compared
        reason = f"with the {compared} of an earlier row"
        super().__init__("copies", reason, SIDES[compared], "id of the first", of=compared)

    def find_repeats(self, rows: Rows, work: Path) -> tuple[np.ndarray, np.ndarray]:
        """Hash all rows and find the repeated hashes."""
        names, shifted = ", ".join(self.columns), ", ".join(f"'|' || {name}" for name in self.columns)
        seen = 0
        with database(spill=work) as connection:
            connection.execute("CREATE TABLE hashed (one UBIGINT, other UBIGINT, place BIGINT, id BIGINT)")
            for table in rows():
                places = pa.array(np.arange(seen, seen + table.num_rows))
                connection.register("block", table.append_column("place", places))
                connection.execute(f"INSERT INTO hashed SELECT hash({names}), hash({shifted}), place, id FROM block")
                seen += table.num_rows
            found = connection.execute(
                "SELECT place, first FROM hashed JOIN "
                "(SELECT one, other, min(place) AS first_place, min_by(id, place) AS first FROM hashed "
                "GROUP BY one, other HAVING count(*) > 1) USING (one, other) WHERE place > first_place ORDER BY place"
            ).fetchnumpy()
        return found["place"], found["first"]


class FirstOfLike(FirstIsKept):
    """Drops a row whose pair, reference or translation is similar to that of an earlier row that is kept."""

    def __init__(
        self,
        compared: Compared,
        likeness: Likeness,
        language: str = ENGLISH,
        encoder: NamedEncoder | None = None,
    ) -> None:
        self._likeness, self._language, self._encoder = likeness, language, encoder
        reason = f"with the {compared} nearly that of an earlier row"
        settings = {"of": compared, **vars(likeness), "language": language}
        if encoder is not None:
            settings["encoder"] = encoder.identity
        super().__init__("near-duplicates", reason, SIDES[compared], "id of the kept row", **settings)

    def find_repeats(self, rows: Rows, work: Path) -> tuple[np.ndarray, np.ndarray]:
        """Find the rows that are similar to an earlier one."""
        encoder = self._encoder.load() if self._encoder else None
        search, ids = NearDuplicateSearch(work, self._likeness, self._language, encoder), [np.empty(0, np.int64)]
        for table in rows():
            search.add([table[name].combine_chunks() for name in self.columns])
            ids.append(table["id"].to_numpy())
        with Progress(f"compare: {self.reason}", unit="steps", least=QUIET_SECONDS) as progress:
            repeats = search.repeats(progress)
        places = np.flatnonzero(repeats >= 0)
        return places, np.concatenate(ids)[repeats[places]]
