"""Filters that drop rows which repeat an earlier one, exactly or nearly; the first row by id is kept."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.selection.column_files import TextFile
from paranmt_hf.corpus.selection.filters import Rows, TwoPassFilter, Verdict
from paranmt_hf.corpus.selection.near_duplicates import SIMILARITY, NearDuplicateSearch
from paranmt_hf.meaning.differences import MEANING_DEFINITION, DifferentDocuments
from paranmt_hf.meaning.mismatch_columns import DEFINITION
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.normal_form import normal_form
from paranmt_hf.util.files import writing
from paranmt_hf.util.parquet import database
from paranmt_hf.util.progress import QUIET_SECONDS, Progress

Compared = Literal["pair", "reference", "translation"]


def compared_columns(compared: Compared) -> list[str]:
    """Return the columns that are compared."""
    return ["reference", "translation"] if compared == "pair" else [compared]


class FirstIsKept(TwoPassFilter):
    """Drops rows that repeat an earlier row; a subclass finds them."""

    task = "drop repeated rows"

    @abstractmethod
    def find_repeats(self, rows: Rows, work: Path) -> tuple[np.ndarray, np.ndarray]:
        """Find the rows that repeat another.

        Args:
            rows: Reads all rows.
            work: Empty folder for files.

        Returns:
            Indices of these rows among all, ascending [repeat], and the ids of the rows that they repeat [repeat].
        """

    def prepare(self, rows: Rows, work: Path) -> None:
        with writing(work):
            self._places, self._firsts = self.find_repeats(rows, work)
        # From here on rows are recognised by their index, so no columns need to be read.
        self.columns = ()

    def judge(self, table: pa.Table) -> Verdict:
        here = self.next_rows(table)
        start, stop = np.searchsorted(self._places, [here.start, here.stop])
        firsts = np.full(table.num_rows, -1, np.int64)
        firsts[self._places[start:stop] - here.start] = self._firsts[start:stop]
        return Verdict(firsts < 0, firsts.astype(np.float64))


class FirstCopies(FirstIsKept):
    """Drops a row whose pair, reference or translation is that of an earlier row, in the same normal form.

    DuckDB finds equal rows out of core, by two independent hashes of 64 bits in place of the sentences.
    """

    def __init__(self, compared: Compared) -> None:
        reason = f"with the {compared} of an earlier row"
        super().__init__("copies", reason, compared_columns(compared), "id of the first", of=compared)

    def find_repeats(self, rows: Rows, work: Path) -> tuple[np.ndarray, np.ndarray]:
        names = ", ".join(self.columns)
        shifted = ", ".join(f"'|' || {name}" for name in self.columns)
        seen = 0
        with database(spill=work) as connection:
            connection.execute("CREATE TABLE hashed (one UBIGINT, other UBIGINT, place BIGINT, id BIGINT)")
            for table in rows():
                block = {name: normal_form(table[name]) for name in self.columns}
                block["id"] = table["id"]
                block["place"] = pa.array(np.arange(seen, seen + table.num_rows))
                connection.register("block", pa.table(block))
                connection.execute(f"INSERT INTO hashed SELECT hash({names}), hash({shifted}), place, id FROM block")
                seen += table.num_rows
            found = connection.execute(
                "SELECT place, first FROM hashed JOIN "
                "(SELECT one, other, min(place) AS first_place, min_by(id, place) AS first FROM hashed "
                "GROUP BY one, other HAVING count(*) > 1) USING (one, other) WHERE place > first_place ORDER BY place"
            ).fetchnumpy()
        return found["place"], found["first"]


class FirstOfLike(FirstIsKept):
    """Drops a row whose pair, reference or translation is a near-duplicate of that of an earlier row that is kept.

    Args:
        compared: What is compared.
        similarity: Smallest Jaccard similarity of near-duplicates.
        language: Language of the rows (ISO 639-1).
        same_meaning: Whether only rows are dropped that mean the same.
    """

    def __init__(
        self,
        compared: Compared,
        similarity: float = SIMILARITY,
        language: str = ENGLISH,
        *,
        same_meaning: bool = False,
    ) -> None:
        self._similarity, self._language, self._same_meaning = similarity, language, same_meaning
        reason = f"with the {compared} nearly that of an earlier row"
        settings: dict[str, Any] = {"of": compared, "similarity": similarity, "language": language}
        if same_meaning:
            settings["mismatches"] = [DEFINITION, MEANING_DEFINITION]
        super().__init__("near-duplicates", reason, compared_columns(compared), "id of the kept row", **settings)

    def find_repeats(self, rows: Rows, work: Path) -> tuple[np.ndarray, np.ndarray]:
        ids = [np.empty(0, np.int64)]
        with ExitStack() as stack:
            texts: list[TextFile] = []
            differences = None
            if self._same_meaning:
                texts = [stack.enter_context(closing(TextFile(work / name))) for name in self.columns]
                differences = DifferentDocuments(*(text.take for text in texts), language=self._language)
            search = NearDuplicateSearch(work, self._similarity, self._language, differences=differences)
            stack.enter_context(closing(search))
            for table in rows():
                columns = [table[name].combine_chunks() for name in self.columns]
                search.add(columns)
                for text, column in zip(texts, columns, strict=False):
                    text.append(column)
                ids.append(table["id"].to_numpy())
            with Progress(f"compare: {self.reason}", unit="steps", least=QUIET_SECONDS) as progress:
                repeats = search.repeats(progress)
        places = np.flatnonzero(repeats >= 0)
        return places, np.concatenate(ids)[repeats[places]]
