"""Augment labelled sentences with paraphrases, each of which has the label of its sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest
from paranmt_hf.corpus.reading.pairs import plain
from paranmt_hf.corpus.statistics.draws import lottery
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.paraphrase_file import (
    PACKAGES,
    SCHEMA,
    ParaphraseStage,
    cut_shards,
    holds_paraphrases,
    without_lines,
)
from paranmt_hf.paraphrase.tables import LABELLED_SUFFIXES, LabelledColumns, LabelledFile, TableWriter, with_text
from paranmt_hf.text.identity import hash_texts
from paranmt_hf.util.files import result_file
from paranmt_hf.util.markers import Advanced, Count, Group
from paranmt_hf.util.records import FileRecord, as_json, made_with
from paranmt_hf.util.run import Result, run
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import counted

PARAPHRASE_COLUMNS = ["index", "paraphrase", "rank", "score"]


@dataclass(frozen=True)
class AugmentConfig(Settings):
    """Which paraphrases of labelled sentences are kept; each sentence has at most `ParaphraseConfig.n`.

    Attributes:
        balance: Bring each label to as many rows as the most frequent one has.
        per_label: Maximum number of rows of a label, originals included; labels with more originals keep them all.
    """

    balance: bool = False
    per_label: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.balance and self.per_label is not None:
            raise InputError("give either `balance` or `per_label`: both are numbers of rows", option="balance")


@dataclass(frozen=True, kw_only=True)
class AugmentedFileRecord(FileRecord):
    """The content of a file of labelled sentences and paraphrases."""

    KIND: ClassVar[str] = "a file of labelled sentences and paraphrases (`paranmt paraphrase augment`)"

    # For each label the number of rows of the input (`originals`), of those added (`paraphrases`), and of those that
    # its quota allows and that were not found (`short`)
    labels: dict[str, dict[str, int]]
    notes: dict[str, int] = field(default_factory=dict)  # Sentences without a paraphrase, by reason
    left_out: int = 0  # Paraphrases that are in the file already, as a sentence or as a paraphrase of another one


class AugmentedFile(Result[AugmentedFileRecord]):
    """A file of labelled sentences and paraphrases."""

    def summary(self) -> str:
        """Counts for each label, and reasons of sentences without a paraphrase."""
        labels, state = self.record.labels, "" if self.fresh else " (made before)"
        originals, added = (sum(counts[name] for counts in labels.values()) for name in ("originals", "paraphrases"))
        lines = [f"{self.folder}: {counted(originals, 'sentence')} and {counted(added, 'paraphrase')}{state}"]
        for label, counts in labels.items():
            short = f", {counts['short']:,} short: raise n and beams" if counts["short"] else ""
            lines.append(f"  {counts['originals']:>10,} + {counts['paraphrases']:>10,}  {label}{short}")
        notes = {**self.record.notes, "paraphrases that are in the file already": self.record.left_out}
        return "\n".join([*lines, *without_lines(notes)])


def augment(
    file: str | Path,
    out: str | Path,
    *,
    model: str | Path,
    columns: Annotated[LabelledColumns | None, Group()] = None,
    config: AugmentConfig | None = None,
    search: Annotated[ParaphraseConfig | None, Group()] = None,
    scorer: Annotated[str | Path | None, Advanced] = None,
    engine: Annotated[EngineConfig | None, Group(), Advanced] = None,
) -> AugmentedFile:
    """Add paraphrases to labelled sentences.

    Every row keeps its place and its label, and is followed by its paraphrases. A paraphrase that is a sentence of
    the file, case and punctuation aside, or equal to a paraphrase chosen before, is left out, whatever its label.

    Args:
        file: Labelled sentences, of any format with columns (docs/formats.md).
        out: The new file, .tsv, .csv, .jsonl or .parquet, with the columns of text and labels, `original` (whether
            the row was in `file`), `index` (of its sentence in `file`, from 0) and `score` (the paraphrase score; of
            originals empty). Work in progress is in `OUT.work`.
        model: Folder or Hub id of an encoder-decoder; the package carries none (docs/paraphrase.md).
        columns: Columns of the sentences and labels.
        config: Quotas.
        search: How paraphrases are searched, how many of each sentence, and which are good enough.
        scorer: Encoder of the paraphrase score: folder or Hub id, or a text file of word vectors (default: the small
            encoder of this package).
        engine: The engine for the work.
    """
    config, search = config or AugmentConfig(), search or ParaphraseConfig()
    search = search.for_files()  # Text that means something else does not have the label.
    out = result_file(out, LABELLED_SUFFIXES, sources=[model])
    engine = (engine or EngineConfig()).resolved()
    stage = ParaphraseStage(str(model), search, NamedEncoder.of(scorer), engine.threads)
    # The model is checked before the file is read, which may take long.
    settings = stage.identity
    source = LabelledFile(file, columns, out=out)
    if taken := {source.text, source.label} & {"original", "index", "score"}:
        raise InputError(
            f"{file}: the column {taken.pop()!r} has the name of one that is added; rename it", path=source.path
        )
    identity = as_json({**settings, "augment": config, "input": source.identity})

    def make(work: Path, path: Path) -> AugmentedFileRecord:
        whole = cut_shards(source.batches(), work / "whole", identity, engine)
        quotas = _quotas(whole, config)
        wanting = {label for label, quota in quotas.items() if quota is None or quota > 0}
        cut = cut_shards(_of_labels(whole, wanting), work / "input", identity, engine)
        done = run_job(cut, work / "output", stage, engine)
        chosen, left_out = _choose(whole, cut, done, quotas, search.seed)
        labels = _write(whole, done, chosen, source, path)
        for label, counts in labels.items():
            quota = quotas[label]
            counts["short"] = 0 if quota is None else max(0, quota - counts["paraphrases"])
        return AugmentedFileRecord(
            settings=identity, labels=labels, notes=done.dropped, left_out=left_out, **made_with(*PACKAGES)
        )

    return run(
        out,
        identity,
        AugmentedFileRecord,
        make,
        result=AugmentedFile,
        command="paraphrase augment",
        holds=holds_paraphrases,
    )


def _quotas(whole: Manifest, config: AugmentConfig) -> dict[str, int | None]:
    """Maximum number of paraphrases of each label; None for all."""
    counts: dict[str, int] = {}
    for shard in whole.paths():
        for entry in pq.read_table(shard, columns=["label"])["label"].value_counts().to_pylist():
            counts[str(entry["values"])] = counts.get(str(entry["values"]), 0) + entry["counts"]
    if not config.balance and config.per_label is None:
        return dict.fromkeys(sorted(counts))
    most = config.per_label or max(counts.values())
    return {label: max(0, most - count) for label, count in sorted(counts.items())}


def _of_labels(whole: Manifest, labels: set[str]) -> Iterator[pa.Table]:
    """Read the rows of some labels; one without text is an empty sentence."""
    wanted = pa.array(sorted(labels), pa.string())
    for shard in whole.paths():
        table = pq.read_table(shard)
        table = table.filter(pc.is_in(table["label"].cast(pa.string()), wanted))
        yield with_text(table)


def _choose(
    whole: Manifest, cut: Manifest, done: Manifest, quotas: dict[str, int | None], seed: int
) -> tuple[np.ndarray, int]:
    """Select the paraphrases of each label: the best of each sentence first, sentences in random order.

    Texts are compared by their hashes, because all texts of a large file do not fit into memory. Returns the row
    numbers of the selected paraphrases among all rows of `done` [paraphrase], sorted, and how many were in the file
    already.
    """
    codes = {label: code for code, label in enumerate(quotas)}
    # A row may be without text.
    sources = (pq.read_table(shard, columns=["source"])["source"].drop_null() for shard in whole.paths())
    known = np.concatenate([hash_texts(plain(source)) for source in sources])
    columns: dict[str, list[np.ndarray]] = {name: [] for name in ("row", "index", "rank", "label")}
    numbers = [np.empty(0, np.uint64)]
    first = candidates = 0
    for before, after in zip(cut.paths(), done.paths(), strict=True):
        rows, found = pq.read_table(before), pq.read_table(after, columns=["index", "rank", "paraphrase"])
        text = plain(found["paraphrase"])
        candidates += int(np.count_nonzero(found["rank"]))
        # Rows without a paraphrase, whose text is null, are dropped too.
        worded = np.flatnonzero(pc.fill_null(pc.not_equal(text, ""), False))
        found = found.take(worded)
        at = np.searchsorted(rows["index"].to_numpy(), found["index"].to_numpy())
        labels = np.array([codes[str(label)] for label in rows["label"].to_pylist()], np.int64)
        columns["row"].append(first + worded)
        columns["index"].append(found["index"].to_numpy())
        columns["rank"].append(found["rank"].to_numpy())
        columns["label"].append(labels[at])
        numbers.append(hash_texts(text.take(worded)))
        first += len(text)
    row, index, rank, label = (np.concatenate([np.empty(0, np.int64), *column]) for column in columns.values())
    number = np.concatenate(numbers)
    order = np.lexsort((index, lottery(index, seed), rank))
    order = order[~np.isin(number[order], known)]
    # Of equal paraphrases the first one in this order is kept, whatever its label.
    _, firsts = np.unique(number[order], return_index=True)
    order = order[np.sort(firsts)]
    kept = [order[label[order] == code][:quota] for code, quota in enumerate(quotas.values())]
    return np.sort(row[np.concatenate(kept)]), candidates - len(order)


def _write(
    whole: Manifest, done: Manifest, chosen: np.ndarray, source: LabelledFile, path: Path
) -> dict[str, dict[str, int]]:
    """Write every row, followed by its paraphrases; returns counts for each label."""
    labels: dict[str, dict[str, int]] = {}
    kind = pq.read_schema(whole.paths()[0]).field("label").type
    columns = {source.text: pa.string(), source.label: kind, "original": pa.bool_(), "index": pa.int64()}
    schema = pa.schema({**columns, "score": pa.float32()})
    shards, left, first = iter(done.paths()), SCHEMA.empty_table().select(PARAPHRASE_COLUMNS), 0
    with TableWriter(path, schema) as writer:
        for shard in whole.paths():
            rows = pq.read_table(shard)
            last = rows["index"][-1].as_py()
            # Paraphrases are in the order of their sentences.
            while not left.num_rows or left["index"][-1].as_py() <= last:
                if (following := next(shards, None)) is None:
                    break
                found = pq.read_table(following).select(PARAPHRASE_COLUMNS)
                start, end = np.searchsorted(chosen, [first, first + found.num_rows])
                left = pa.concat_tables([left, found.take(chosen[start:end] - first)])
                first += found.num_rows
            count = int(np.searchsorted(left["index"].to_numpy(), last, side="right"))
            added, left = left.slice(0, count), left.slice(count)
            at = pa.array(np.searchsorted(rows["index"].to_numpy(), added["index"].to_numpy()))
            given = rows["label"].take(at)
            for name, column in (("originals", rows["label"]), ("paraphrases", given)):
                for entry in column.value_counts().to_pylist():
                    counts = labels.setdefault(str(entry["values"]), {"originals": 0, "paraphrases": 0})
                    counts[name] += entry["counts"]
            table = pa.table(
                {
                    source.text: pa.chunked_array([*rows["source"].chunks, *added["paraphrase"].chunks]),
                    source.label: pa.chunked_array([*rows["label"].chunks, *given.chunks], kind),
                    "original": pa.array([True] * rows.num_rows + [False] * added.num_rows),
                    "index": pa.chunked_array([*rows["index"].chunks, *added["index"].chunks]),
                    "score": pa.chunked_array([pa.nulls(rows.num_rows, pa.float32()), *added["score"].chunks]),
                }
            )
            ranks = np.concatenate([np.zeros(rows.num_rows, np.int64), added["rank"].to_numpy()])
            writer.write(table.take(pa.array(np.lexsort((ranks, table["index"].to_numpy())))))
    return dict(sorted(labels.items()))
