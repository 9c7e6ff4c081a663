"""The job before a translation stage: it translates sentences that occur several times, each once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest, Work, cut_into_shards
from paranmt_hf.corpus.jobs.stages import WINDOW, PivotStage, RepeatedSentences, TranslateStage, by_windows
from paranmt_hf.corpus.translation.repeats import MOST, repeated_texts
from paranmt_hf.corpus.translation.unusual_lines import in_sentence_case


@dataclass(frozen=True)
class RepeatStage:
    """Translates shards of sentences, `source`, into one row for each hypothesis."""

    translate: TranslateStage
    label: str = "repeats"
    unit: str = "sentences"

    @property
    def identity(self) -> dict[str, Any]:
        return self.translate.identity

    def load(self) -> Work:
        translator = self.translate.load_translator()

        def translated(window: pa.Table) -> tuple[pa.Table, dict[str, int]]:
            result = translator.translate(window["source"].to_pylist())
            sources = window["source"] if result.owners is None else window["source"].take(pa.array(result.owners))
            columns = {
                "source": sources,
                "translation": pa.array(result.texts, pa.string()),
                "translation_score": pa.array(result.scores, pa.float32()),
            }
            return pa.table(columns), {}

        return by_windows(WINDOW, translated)


def with_repeats(
    stage: TranslateStage | PivotStage, manifest: Manifest, work: Path, index: int, engine: EngineConfig
) -> TranslateStage | PivotStage:
    """Translate the sentences that occur several times, and return the stage with their translations.

    The shards of a stage are processed in any order, and each alone. So repeated sentences have shards of their own,
    and the result depends neither on the order nor on interruptions.

    Args:
        stage: The stage that translates.
        manifest: Its input.
        work: The work folder.
        index: Number of the stage in the run.
        engine: Where the sentences are translated.
    """
    column, translate = ("source", stage) if isinstance(stage, TranslateStage) else ("reference", stage.translate)

    def columns() -> Iterable[pa.ChunkedArray]:
        return (in_sentence_case(pq.read_table(path, columns=[column])[column]) for path in manifest.paths())

    most = MOST // translate.config.hypotheses
    found = (pa.table({"source": texts}) for texts in repeated_texts(columns, work, most=most))
    # Small shards, so that all workers have some.
    repeats = cut_into_shards(
        found, work / f"0-repeats-{index}", {"input": manifest.checksum}, WINDOW, unit="sentences"
    )
    if not repeats.shards:
        return stage
    done = run_job(repeats, work / f"{index}-repeats", RepeatStage(translate), engine)
    translate = replace(translate, repeated=RepeatedSentences(tuple(done.paths()), done.checksum))
    return translate if isinstance(stage, TranslateStage) else replace(stage, translate=translate)
