"""Near-duplicates of the rows of a release as a filter: the first by id stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.copies import SIDES, Copied
from paranmt_hf.corpus.duplicates.search import Likeness, NearDuplicateSearch
from paranmt_hf.corpus.duplicates.store import ColumnFile
from paranmt_hf.corpus.filters import Rows, TwoPassFilter, Verdict, joined
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import writing
from paranmt_hf.util.progress import Progress

_BLOCK = 2**20
# Work that takes less is not worth a line.
QUIET_SECONDS = 5.0


class FirstOfLike(TwoPassFilter):
    """Drops a row whose pair, reference or translation is like that of an earlier row that stays.

    Args:
        compared: What is compared.
        likeness: When two are alike.
        load_encoder: Loads what gives the vectors, if cosines are to decide.
        encoder_identity: What tells the encoder from others, as JSON values.
    """

    number = "id of the row that stays"

    def __init__(
        self,
        compared: Copied,
        likeness: Likeness,
        load_encoder: Callable[[], Encoder] | None = None,
        encoder_identity: Mapping[str, Any] | None = None,
    ) -> None:
        self.compared, self.likeness = compared, likeness
        self._load_encoder, self._encoder_identity = load_encoder, encoder_identity
        self.columns = SIDES[compared]
        self.reason = f"with the {compared} nearly that of an earlier row"

    @property
    def identity(self) -> Mapping[str, Any]:
        """Its settings. English is not named: what was selected before there were other languages is known again."""
        settings = {"filter": "near-duplicates", "of": self.compared, **asdict(self.likeness)}
        if self.likeness.language == ENGLISH:
            del settings["language"]
        return settings | ({"encoder": dict(self._encoder_identity)} if self._encoder_identity else {})

    def prepare(self, rows: Rows, work: Path) -> None:
        """Find what is like an earlier row, and write down the id of that one."""
        encoder = self._load_encoder() if self._load_encoder else None
        with writing(work):
            search = NearDuplicateSearch(work, self.likeness, encoder)
            ids = ColumnFile(work / "ids", np.int64)
            for table in rows():
                search.add([joined(table[name]) for name in self.columns])
                ids.append(table["id"].to_numpy())
            with Progress(f"compare: {self.reason}", unit="steps", least=QUIET_SECONDS) as progress:
                repeats = search.repeats(partial(_show, progress))
            self._first = ColumnFile(work / "first", np.int64)
            for start in range(0, len(repeats), _BLOCK):
                block = repeats[start : start + _BLOCK]
                firsts = np.full(len(block), -1, np.int64)
                firsts[block >= 0] = ids.take(block[block >= 0])
                self._first.append(firsts)
            ids.close()
        # The rows are known by their place from here on.
        self.columns, self._seen = (), 0

    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""
        first = self._first.read(self._seen, self._seen + table.num_rows)
        self._seen += table.num_rows
        return Verdict(first < 0, first.astype(np.float64))


def _show(progress: Progress, done: int, total: int) -> None:
    progress.total = total
    progress.advance_to(done)
