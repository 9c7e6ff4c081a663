"""Paraphrase the sentences of a file, by shards: killed at any moment and called again it goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest
from paranmt_hf.corpus.sentences import SentenceFile
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.errors import InputError
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.control import PARSER, control_of, make_index
from paranmt_hf.paraphrase.paraphrase_job import cut_shards, make_once, result_file
from paranmt_hf.paraphrase.stage import ParaphraseStage
from paranmt_hf.util.files import replacing
from paranmt_hf.util.records import as_json
from paranmt_hf.util.run import work_folder

COMMAND = "paraphrase"
SUFFIXES = (".parquet", ".jsonl", ".tsv")


@dataclass(frozen=True)
class ParaphrasedFile:
    """A file of paraphrases.

    Attributes:
        path: The file.
        lines: Sentences that were read.
        paraphrased: Sentences with at least one paraphrase.
        paraphrases: Rows with a paraphrase.
        notes: Sentences without a paraphrase, by reason.
        fresh: Whether this call made it.
    """

    path: Path
    lines: int
    paraphrased: int
    paraphrases: int
    notes: dict[str, int] = field(default_factory=dict)
    fresh: bool = True


def paraphrase_file(
    file: str | Path,
    out: str | Path,
    *,
    model: str | Path,
    config: ParaphraseConfig | None = None,
    column: str | None = None,
    scorer: ScorerConfig | None = None,
    engine: EngineConfig | None = None,
    templates: Sequence[str] | int | None = None,
    parser: str | Path = PARSER,
) -> ParaphrasedFile:
    """Generate paraphrases of the sentences of a file.

    Args:
        file: A text file with one sentence on a line, a Parquet file, or the folder of a release.
        out: The file of paraphrases, .parquet, .jsonl or .tsv, with the columns `index` (of the sentence, from 0),
            `source`, `paraphrase`, `rank` (from 1), `score` and `note`. A sentence without a paraphrase keeps its
            place: its rank is 0, and the note says why. Work in progress lies in `<out>.work`.
        model: Folder or Hub id of an encoder-decoder.
        config: How it searches.
        column: Which column of Parquet, or which side of a release.
        scorer: The encoder behind the paraphrase score; the small one of this package if left out.
        engine: Where the work runs.
        templates: For a syntactically controlled network: templates such as `(S(NP)(VP))`, or how many of the most
            frequent ones. There is a column `template` then, and of each sentence the highest score comes first.
        parser: What gives the trees of sentences then: `link-grammar`, `stanza`, or a file of trees.

    Raises:
        InputError: Bad input, or `out` holds something else.
    """
    out = result_file(out, SUFFIXES)
    source = SentenceFile(file, column)
    engine = (engine or EngineConfig()).resolved()
    control = control_of(model, templates, parser, work_folder(out) / "trees")
    stage = ParaphraseStage(
        str(model), config or ParaphraseConfig(), scorer or ScorerConfig(), engine.threads, control=control
    )
    identity = as_json({"input": source.identity, **stage.identity})

    def make(work: Path) -> dict[str, Any]:
        make_index(parser, work / "trees", control)
        cut = cut_shards(_lines(source), work / "input", identity)
        if not cut.shards:
            raise InputError(f"{source.path} holds no line; expected one sentence on each")
        done = run_job(cut, work / "output", stage, engine)
        paraphrased, paraphrases = _write(done, work / out.name, stage.schema)
        return {"lines": cut.rows, "paraphrased": paraphrased, "paraphrases": paraphrases, "notes": done.dropped}

    return make_once(ParaphrasedFile, out, identity, make, command=COMMAND, doing="paraphrasing")


def _lines(source: SentenceFile) -> Iterator[pa.Table]:
    """Read `index` and `source`, every line in its place, also one that is of no use."""
    read = 0
    for sentences in source.lines():
        yield pa.table({"index": np.arange(read, read + len(sentences)), "source": sentences})
        read += len(sentences)


def _write(done: Manifest, path: Path, schema: pa.Schema) -> tuple[int, int]:
    """Join the shards into one file; returns sentences with a paraphrase, and paraphrases."""
    paraphrased = paraphrases = 0
    with replacing(path) as aside:
        writer = pq.ParquetWriter(aside, schema) if path.suffix.lower() == ".parquet" else None
        with writer or aside.open("w", encoding="utf8", newline="\n") as file:
            if path.suffix.lower() == ".tsv":
                file.write("\t".join(schema.names) + "\n")
            for shard in done.paths():
                table = pq.read_table(shard)
                ranks = table["rank"].to_numpy()
                paraphrased += int(np.count_nonzero(ranks == 1))
                paraphrases += int(np.count_nonzero(ranks))
                if writer is not None:
                    writer.write_table(table)
                else:
                    file.writelines(_jsonl(table) if path.suffix.lower() == ".jsonl" else _tsv(table))
    return paraphrased, paraphrases


def _jsonl(table: pa.Table) -> Iterator[str]:
    for row in table.to_pylist():
        yield json.dumps(row, ensure_ascii=False) + "\n"


def _tsv(table: pa.Table) -> Iterator[str]:
    """Rows with fields between tabs, which no sentence holds, for white space is normalised; null is nothing."""
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        yield "\t".join(map(_field, row)) + "\n"


def _field(value: object) -> str:
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)
