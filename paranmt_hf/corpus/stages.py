"""The two stages that a shard passes: translate the foreign side, score the pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.backtranslation import TranslatorConfig, translate_table
from paranmt_hf.corpus.schema import COLUMNS
from paranmt_hf.corpus.scorers import ScorerConfig
from paranmt_hf.corpus.scores import score_pairs
from paranmt_hf.corpus.shards import Report, Work
from paranmt_hf.text import WordTokenizer

# Rows of one sorted window: enough for batches of equal lengths, few enough for progress to move.
WINDOW = 2000
SCORE_ROWS = 10_000


@dataclass(frozen=True)
class TranslateStage:
    """Shards with `source` and `reference` become shards with `translation` and `translation_score`."""

    config: TranslatorConfig
    label: str = "translate"

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the translations."""
        return {"translator": self.config.identity}

    def load(self) -> Work:
        """Load the translator."""
        translator = self.config.load()

        def work(table: pa.Table, report: Report) -> tuple[pa.Table, dict[str, int]]:
            parts, dropped, done = [], {}, 0
            for window in _windows(table, WINDOW):
                part, reasons = translate_table(window, translator)
                parts.append(part)
                for reason, count in reasons.items():
                    dropped[reason] = dropped.get(reason, 0) + count
                done += window.num_rows
                report(done)
            return pa.concat_tables(parts), dropped

        return work


@dataclass(frozen=True)
class ScoreStage:
    """Shards of pairs become shards with every column of the schema.

    Attributes:
        config: The scorer, or None to keep the `para_score` that is there.
    """

    config: ScorerConfig | None
    label: str = "score"

    @property
    def settings(self) -> dict[str, Any]:
        """What determines the scores."""
        return {"scorer": self.config.identity if self.config else {"name": "as imported"}}

    def load(self) -> Work:
        """Load the scorer."""
        encoder = self.config.load() if self.config else None
        tokenizer = WordTokenizer()

        def work(table: pa.Table, report: Report) -> tuple[pa.Table, dict[str, int]]:
            parts, done = [], 0
            for window in _windows(table, SCORE_ROWS):
                pairs = [window[name].combine_chunks() for name in ("reference", "translation")]
                parts.append(with_columns(window, score_pairs(*pairs, encoder, tokenizer)))
                done += window.num_rows
                report(done)
            return pa.concat_tables(parts), {}

        return work


def _windows(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    for start in range(0, max(1, table.num_rows), rows):
        yield table.slice(start, rows)


def with_columns(table: pa.Table, columns: dict[str, pa.Array]) -> pa.Table:
    """Set columns of a table and bring all into the order and types of the schema; unknown columns go.

    A missing translation score is null: the translations were imported.
    """
    available = {name: table[name] for name in table.column_names} | columns
    available.setdefault("translation_score", pa.nulls(table.num_rows, pa.float32()))
    fields = [column for column in COLUMNS if column.name in available]
    return pa.table({column.name: pc.cast(available[column.name], column.type) for column in fields})
