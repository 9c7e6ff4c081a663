"""The stage that adds columns to scored pairs: mismatches of meaning, and who wrote the translation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from paranmt_hf.corpus.authorship import Authorship, AuthorshipConfig, HumanScorer, learn
from paranmt_hf.corpus.jobs.shards import Manifest, Report, Work
from paranmt_hf.corpus.jobs.stages import SCORE_ROWS, windows, with_columns
from paranmt_hf.corpus.meaning.columns import DEFINITION, MISMATCHES, MismatchReader
from paranmt_hf.corpus.schema import ADDED
from paranmt_hf.errors import InputError
from paranmt_hf.text.word_rules import ENGLISH

HUMAN_SCORE = "human_score"
WEIGHTS = "human-score.safetensors"


def added_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Bring names of columns that can be added into the order of the schema."""
    if unknown := [name for name in names if name not in ADDED]:
        raise InputError(f"the columns that can be added are {', '.join(ADDED)}, not {unknown[0]!r}")
    return tuple(name for name in ADDED if name in names)


def column_stages(names: Sequence[str], language: str = ENGLISH) -> list[ColumnStage]:
    """The stage that adds columns to pairs of a language (ISO 639-1), if there are any to add."""
    return [ColumnStage(added_columns(names), AuthorshipConfig(), language)] if names else []


@dataclass(frozen=True)
class ColumnStage:
    """Shards of pairs get columns.

    Attributes:
        names: Which columns of `schema.ADDED`.
        authorship: How the classifier behind `human_score` learns.
        language: ISO 639-1 code of that of the pairs, which decides what a word is to the classifier.
        weights: The classifier, once it has learned: see `ready`.
    """

    names: tuple[str, ...]
    authorship: AuthorshipConfig = AuthorshipConfig()
    language: str = ENGLISH
    weights: Path | None = None
    label: str = "columns"
    unit: str = "pairs"

    @property
    def identity(self) -> dict[str, Any]:
        """What determines the columns."""
        classifier = {"classifier": "hashed words and neighbours, logistic regression", **vars(self.authorship)}
        if self.language != ENGLISH:
            classifier["language"] = self.language
        return {
            "columns": {
                name: classifier if name == HUMAN_SCORE else {"definition": DEFINITION}
                for name in added_columns(self.names)
            }
        }

    def ready(self, manifest: Manifest, work: Path) -> ColumnStage:
        """Let the classifier learn from the pairs that are to be scored, if it is needed.

        Args:
            manifest: The shards of pairs.
            work: The work folder, which keeps the classifier; an interrupted command finds it there.
        """
        if HUMAN_SCORE not in self.names:
            return self
        # The name says what it was learned from, and how: a stopped command may continue with other settings.
        learned = json.dumps([manifest.checksum, vars(self.authorship), self.language], sort_keys=True)
        path = work / f"{hashlib.sha256(learned.encode()).hexdigest()[:16]}-{WEIGHTS}"
        if not path.exists():
            learn(manifest.paths(), manifest.rows, self.authorship, self.language).save(path)
        return replace(self, weights=path)

    def load(self) -> Work:
        """Load the classifier."""
        mismatches = [name for name in self.names if name in MISMATCHES]
        reader = MismatchReader(mismatches)
        scorer = HumanScorer(Authorship.load(self.weights)) if self.weights else None

        def work(table: pa.Table, report: Report) -> tuple[pa.Table, dict[str, int]]:
            parts, done = [], 0
            for window in windows(table, SCORE_ROWS):
                references, translations = (window[name].combine_chunks() for name in ("reference", "translation"))
                columns = reader.columns(references, translations) if mismatches else {}
                if scorer is not None:
                    columns[HUMAN_SCORE] = scorer.scores(references, translations)
                parts.append(with_columns(window, columns))
                done += window.num_rows
                report(done)
            return pa.concat_tables(parts), {}

        return work
