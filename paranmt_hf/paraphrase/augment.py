"""Augment labelled sentences with paraphrases, each of which has the label of its sentence."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
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
from paranmt_hf.paraphrase.tables import LABELLED_SUFFIXES, LabelledColumns, LabelledFile, TableWriter
from paranmt_hf.util.files import result_file
from paranmt_hf.util.markers import Advanced, Count, Group
from paranmt_hf.util.records import FileRecord, as_json, made_with
from paranmt_hf.util.run import Result, run
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import counted

NO_LIMIT = sys.maxsize  # Quota of a label without one


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
        originals = sum(counts["originals"] for counts in labels.values())
        added = sum(counts["paraphrases"] for counts in labels.values())
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
    decoding: Annotated[ParaphraseConfig | None, Group()] = None,
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
        decoding: How paraphrases are found, how many of each sentence, and which are good enough.
        scorer: Encoder of the paraphrase score: folder or Hub id, or a text file of word vectors (default: the small
            encoder of this package).
        engine: The engine for the work.
    """
    config = config or AugmentConfig()
    # Text that means something else does not have the label.
    decoding = (decoding or ParaphraseConfig()).for_files()
    out = result_file(out, LABELLED_SUFFIXES, sources=[model])
    engine = (engine or EngineConfig()).resolved()
    stage = ParaphraseStage(str(model), decoding, NamedEncoder.of(scorer), engine.threads)
    # The model is checked before the file is read, which may take long.
    settings = stage.identity
    source = LabelledFile(file, columns)
    if taken := {source.text, source.label} & {"original", "index", "score"}:
        raise InputError(
            f"{file}: the column {taken.pop()!r} has the name of one that is added; rename it",
            option="columns",
            path=source.path,
        )
    identity = as_json({**settings, "augment": config, "input": source.identity})

    def make(work: Path, path: Path) -> AugmentedFileRecord:
        originals = pa.concat_tables(source.batches())
        quotas = _quotas(originals, config)
        wanting = pa.array([label for label, quota in quotas.items() if quota], pa.string())
        short = originals.filter(pc.is_in(originals["label"].cast(pa.string()), wanting))
        # One without text is an empty sentence.
        short = short.set_column(1, "source", short["source"].fill_null(""))
        cut = cut_shards(iter([short]), work / "input", identity, engine)
        done = run_job(cut, work / "output", stage, engine)
        found = pa.concat_tables([SCHEMA.empty_table(), *map(pq.read_table, done.paths())])
        found = found.filter(pc.greater(found["rank"], 0))
        labels_of_found = originals["label"].take(pc.index_in(found["index"], originals["index"]))
        found = found.append_column("label", labels_of_found)
        added, left_out = _choose(originals, found, quotas, decoding.seed)
        _write(originals, added, source, path)
        labels = _counts(originals, added, quotas)
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


def _quotas(originals: pa.Table, config: AugmentConfig) -> dict[str, int]:
    """Maximum number of paraphrases of each label."""
    counts = Counter(map(str, originals["label"].to_pylist()))
    if not config.balance and config.per_label is None:
        return dict.fromkeys(sorted(counts), NO_LIMIT)
    most = config.per_label or max(counts.values())
    return {label: max(0, most - count) for label, count in sorted(counts.items())}


def _choose(originals: pa.Table, found: pa.Table, quotas: dict[str, int], seed: int) -> tuple[pa.Table, int]:
    """Select the paraphrases of each label: the best of each sentence first, sentences in random order.

    Returns them in the order of `found`, and the number of those that are in the file already, as a sentence or as a
    paraphrase that comes first in this order, whatever its label.
    """
    index = found["index"].to_numpy()
    order = np.lexsort((index, lottery(index, seed), found["rank"].to_numpy()))
    texts, labels = plain(found["paraphrase"]).to_pylist(), found["label"].to_pylist()
    seen = {"", *plain(originals["source"].drop_null()).to_pylist()}
    left = dict(quotas)
    chosen = []
    left_out = 0
    for row in order.tolist():
        if texts[row] in seen:
            left_out += 1
            continue
        seen.add(texts[row])
        if left[str(labels[row])]:
            left[str(labels[row])] -= 1
            chosen.append(row)
    return found.take(pa.array(sorted(chosen), pa.int64())), left_out


def _counts(originals: pa.Table, added: pa.Table, quotas: dict[str, int]) -> dict[str, dict[str, int]]:
    """Counts of each label, as in the record."""
    before, after = (Counter(map(str, table["label"].to_pylist())) for table in (originals, added))
    counts = {}
    for label, quota in quotas.items():
        short = 0 if quota == NO_LIMIT else quota - after[label]
        counts[label] = {"originals": before[label], "paraphrases": after[label], "short": short}
    return counts


def _write(originals: pa.Table, added: pa.Table, source: LabelledFile, path: Path) -> None:
    """Write every row, followed by its paraphrases."""
    before, after = originals.num_rows, added.num_rows
    columns = {
        source.text: [*originals["source"].chunks, *added["paraphrase"].chunks],
        source.label: [*originals["label"].chunks, *added["label"].chunks],
        "original": [pa.array([True] * before + [False] * after)],
        "index": [*originals["index"].chunks, *added["index"].chunks],
        "score": [pa.nulls(before, pa.float32()), *added["score"].chunks],
    }
    table = pa.table({name: pa.chunked_array(chunks) for name, chunks in columns.items()})
    ranks = np.concatenate([np.zeros(before, np.int32), added["rank"].to_numpy()])
    order = np.lexsort((ranks, table["index"].to_numpy()))
    with TableWriter(path, table.schema) as writer:
        writer.write(table.take(pa.array(order)))
