"""Paraphrase the sentences of a file, by shards: killed at any moment and called again it goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest, sweep, write_shard
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.errors import InputError
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.stage import SCHEMA, ParaphraseStage
from paranmt_hf.util.files import check_result_path, check_suffix, checksum, replacing, write_bytes
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import from_json, read_json
from paranmt_hf.util.work import (
    Identity,
    as_json,
    describe_differences,
    keep_identity,
    locked,
    remove,
    remove_leftover,
    work_folder,
)
from paranmt_hf.version import __version__
from paranmt_hf.workflows.support.sentence_file import SentenceFile

COMMAND = "paraphrase"
SUFFIXES = (".parquet", ".jsonl", ".tsv")
# Lines that make one unit of work: a kill loses no more than those in hand.
SHARD_ROWS = 1000


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

    Raises:
        InputError: Bad input, or `out` holds something else.
    """
    out = Path(out).expanduser()
    check_result_path(out, "--out")
    check_suffix(out, "--out", SUFFIXES)
    source = SentenceFile(file, column)
    engine = (engine or EngineConfig()).resolved()
    stage = ParaphraseStage(str(model), config or ParaphraseConfig(), scorer or ScorerConfig(), engine.threads)
    identity = as_json({"input": source.identity, **stage.identity})
    if out.exists():
        return _found(out, identity)
    work = work_folder(out)
    with locked(work, COMMAND, worth=_holds_shards):
        keep_identity(work, identity, worth=_holds_shards, doing="paraphrasing")
        cut = _cut(source, work / "input", identity)
        done = run_job(cut, work / "output", stage, engine)
        counts = _write(done, work / out.name)
        record = _Record(__version__, identity, cut.rows, *counts, done.dropped, checksum(work / out.name))
        # The record first: a file is known by it.
        write_bytes(_record_path(out), f"{json.dumps(asdict(record), indent=1)}\n".encode())
        (work / out.name).replace(out)
        remove(work)
    return _result(out, record, fresh=True)


@dataclass(frozen=True)
class _Record:
    """The content of the JSON file beside a file of paraphrases: what determined it, what it holds, its checksum."""

    version: str
    settings: dict[str, Any]
    lines: int
    paraphrased: int
    paraphrases: int
    notes: dict[str, int]
    sha256: str


def _record_path(out: Path) -> Path:
    return out.with_name(f"{out.name}.json")


def _result(out: Path, record: _Record, *, fresh: bool) -> ParaphrasedFile:
    counts = (record.lines, record.paraphrased, record.paraphrases, record.notes)
    return ParaphrasedFile(out, *counts, fresh=fresh)


def _found(out: Path, identity: Identity) -> ParaphrasedFile:
    """Find a file that was made already, or refuse to write over another one."""
    path = _record_path(out)
    advice = "choose another --out, or move it away"
    if not path.is_file():
        raise InputError(f"{out} exists, and no {path.name} beside it says what it is; {advice}")
    record = from_json(_Record, read_json(path, "the record of a file of paraphrases"), path)
    if differences := describe_differences(record.settings, identity):
        raise InputError(f"{out} was made with other settings: {differences}; {advice}")
    if checksum(out) != record.sha256:
        raise InputError(f"{out} is not as it was written; {advice}")
    remove_leftover(out, COMMAND)
    return _result(out, record, fresh=False)


def _holds_shards(work: Path) -> bool:
    return any((work / "output").glob("*.parquet"))


def _cut(source: SentenceFile, folder: Path, identity: Identity) -> Manifest:
    """Cut the input into shards of `index` and `source`, every line in its place, also one that is of no use."""
    manifest = Manifest.open(folder, identity, restart=True)
    if manifest.complete:
        manifest.forget_damaged()
        if manifest.complete:
            return manifest
    sweep(folder)
    manifest.shards.clear()
    manifest.save()
    waiting: list[pa.Table] = []
    with Progress("read", unit="lines") as progress:
        read = 0
        for sentences in source.lines():
            waiting.append(pa.table({"index": np.arange(read, read + len(sentences)), "source": sentences}))
            read += len(sentences)
            whole = pa.concat_tables(waiting).combine_chunks()
            full = whole.num_rows // SHARD_ROWS * SHARD_ROWS
            for start in range(0, full, SHARD_ROWS):
                _add(manifest, whole.slice(start, SHARD_ROWS))
            waiting = [whole.slice(full)]
            progress.advance_to(read)
    if waiting and waiting[0].num_rows:
        _add(manifest, waiting[0])
    if not manifest.shards:
        raise InputError(f"{source.path} holds no line; expected one sentence on each")
    manifest.complete = True
    manifest.save()
    return manifest


def _add(manifest: Manifest, table: pa.Table) -> None:
    name = f"shard-{len(manifest.shards):06d}.parquet"
    manifest.shards[name] = write_shard(table, manifest.folder / name)


def _write(done: Manifest, path: Path) -> tuple[int, int]:
    """Join the shards into one file; returns sentences with a paraphrase, and paraphrases."""
    paraphrased = paraphrases = 0
    with replacing(path) as aside:
        writer = pq.ParquetWriter(aside, SCHEMA) if path.suffix.lower() == ".parquet" else None
        with writer or aside.open("w", encoding="utf8", newline="\n") as file:
            if path.suffix.lower() == ".tsv":
                file.write("\t".join(SCHEMA.names) + "\n")
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
