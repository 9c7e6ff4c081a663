"""Add paraphrases to labelled sentences; each paraphrase gets the label of its sentence."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest
from paranmt_hf.corpus.reading.arrow_tables import rebatch
from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.normalisation import normalise
from paranmt_hf.corpus.reading.pairs import plain
from paranmt_hf.corpus.reading.tables import Table
from paranmt_hf.corpus.statistics.draws import lottery
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.paraphrase_file import (
    PACKAGES,
    ParaphraseStage,
    TableWriter,
    cut_shards,
    holds_paraphrases,
    without_lines,
)
from paranmt_hf.text.identity import distinct_rows, hash_texts
from paranmt_hf.util.files import check_regular, result_file
from paranmt_hf.util.markers import Advanced, Count, Group, Without
from paranmt_hf.util.records import FileRecord, as_json, made_with
from paranmt_hf.util.run import Result, run
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import brief, counted

logger = logging.getLogger(__name__)
COLUMNS = ["text", "label", "index", "score", "rank"]  # Columns of the tables that `_write` merges


@dataclass(frozen=True)
class LabelledColumns(Settings):
    """Columns of labelled sentences, by their names or numbers from 1.

    Attributes:
        text: Column of the sentences.
        label: Column of the labels, text or whole numbers; true and false are 1 and 0.
    """

    text: str = "text"
    label: str = "label"


@dataclass(frozen=True)
class LabelledSentences:
    """A file of labelled sentences, whose rows are read when they are needed."""

    table: Table
    columns: LabelledColumns  # Columns of the sentences and labels

    @classmethod
    def open(cls, path: str | Path, columns: LabelledColumns | None = None) -> Self:
        """Open a file; raises `InputError` if it lacks one of the columns, or both are the same column."""
        columns, path = columns or LabelledColumns(), Path(path).expanduser()
        check_regular(path)
        table = open_table(path, [columns.text, columns.label])
        if table.position(columns.text) == table.position(columns.label):
            raise InputError(
                f"{path}: text and label are both the column {columns.text!r}; name two columns",
                option="columns",
                path=path,
            )
        return cls(table, columns)

    @property
    def names(self) -> tuple[str, str]:
        """Names of the columns of text and label; `text` and `label` if the file has no names."""
        if not self.table.names:
            return "text", "label"
        text, label = (self.table.names[self.table.position(name)] for name in (self.columns.text, self.columns.label))
        return text, label

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the rows, as JSON values."""
        return {**self.table.identity, "text": self.columns.text, "label": self.columns.label}

    def tables(self) -> Iterator[pa.Table]:
        """Read the rows; rows without text and label, such as blank lines, are left out with a warning.

        Yields tables with the columns `index` (number of the row, from 0), `source` (the text, with normalised white
        space, or null) and `label` (text or int64).
        """
        path, names = self.table.path, [self.columns.text, self.columns.label]
        numbers = [] if self.columns.label in self.table.texts else names[1:]
        read = kept = 0
        kinds: set[type] = set()
        for piece in self.table.pieces(names, numbers=numbers):
            indices: list[int] = []
            texts: list[str | None] = []
            labels: list[str | int] = []
            for number, (text, label) in enumerate(zip(*map(pa.Array.to_pylist, piece.columns), strict=True)):
                if text is not None or label is not None:
                    place = f"{piece.where}{piece.first + number}"
                    indices.append(read + number)
                    texts.append(None if text is None else _decoded(text, place, path))
                    labels.append(_label(label, place, path))
            kinds.update(map(type, labels))
            if len(kinds) > 1:
                raise InputError(
                    f"{path}: the column {names[1]!r} has text and numbers; write all labels as text, or all as "
                    "numbers",
                    option="columns",
                    path=path,
                )
            read += len(piece.columns[0])
            kept += len(labels)
            if labels:
                yield pa.table({"index": indices, "source": normalise(pa.array(texts, pa.string())), "label": labels})
        if not kept:
            raise InputError(f"{path} has no row; expected labelled sentences", path=path)
        if read > kept:
            logger.warning(f"warning: {path}: {counted(read - kept, 'row')} without text and label were left out")


def _decoded(value: bytes, place: str, path: Path) -> str:
    """Return text from UTF-8; raises `InputError` for other bytes."""
    try:
        return value.decode("utf8")
    except UnicodeDecodeError:
        raise InputError(f"{place} is not UTF-8; convert the file to UTF-8", option="columns", path=path) from None


def _label(value: object, place: str, path: Path) -> str | int:
    """Return a label as text or a whole number; raises `InputError` for other values, at `place` in the file."""
    if isinstance(value, bytes) and value:
        return _decoded(value, place, path)
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return value
    if isinstance(value, float) and abs(value) <= 1 << 53 and value == int(value):
        return int(value)
    raise InputError(
        f"{place}: expected a label, text or a whole number of 64 bits, found {brief(value)}",
        option="columns",
        path=path,
    )


@dataclass(frozen=True)
class AugmentConfig(Settings):
    """How many paraphrases of labelled sentences are kept; each sentence gets at most `ParaphraseConfig.n`.

    Attributes:
        balance: Add paraphrases to each label until it has as many rows as the most frequent label has.
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
    """The record of a file of labelled sentences and paraphrases, which lies next to it."""

    KIND: ClassVar[str] = "a file of labelled sentences and paraphrases (`paranmt paraphrase augment`)"

    # For each label, the number of rows of the input (`originals`), of added rows (`paraphrases`), and of rows that
    # its quota allows but for which no paraphrase was found (`short`)
    labels: dict[str, dict[str, int]]
    notes: dict[str, int] = field(default_factory=dict)  # Number of sentences without a paraphrase, by reason
    left_out: int = 0  # Number of paraphrases that were left out because the file has the same text already


class AugmentedFile(Result[AugmentedFileRecord]):
    """A file of labelled sentences and paraphrases."""

    def summary(self) -> str:
        """Return the counts of rows for each label, and of sentences without a paraphrase by reason."""
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
    decoding: Annotated[
        ParaphraseConfig | None, Group(), Without("has_template", "trees", "keep_copies", "max_mutual_overlap")
    ] = None,
    scorer: Annotated[str | Path | None, Advanced] = None,
    engine: Annotated[EngineConfig | None, Group(), Without("kind", "gpus"), Advanced] = None,
) -> AugmentedFile:
    """Add paraphrases to labelled sentences.

    Each row of the file stays as it is, and its paraphrases follow it with its label. A paraphrase is left out if it
    is, case and punctuation aside, a sentence of the file or a paraphrase chosen before, whatever the label of these.

    Args:
        file: Labelled sentences, of any format with columns (docs/formats.md).
        out: The new file, .tsv, .csv, .jsonl or .parquet, with the columns of texts and labels, `original` (whether
            the row is one of `file`), `index` (of its sentence in `file`, from 0) and `score` (the paraphrase
            score; empty for originals). Work in progress is in `OUT.work`.
        model: Folder or Hub id of an encoder-decoder; the package has none of its own (docs/paraphrase.md).
        columns: Columns of the sentences and labels.
        config: Numbers of rows of each label.
        decoding: How paraphrases are found, how many of each sentence, and which are good enough.
        scorer: Encoder of the paraphrase score: folder or Hub id, or a text file of word vectors (default: the small
            encoder of this package, which is for English).
        engine: Engine that runs the work.
    """
    config = config or AugmentConfig()
    # The default minimum score leaves out paraphrases of another meaning, which may not have the label.
    decoding = (decoding or ParaphraseConfig()).for_files()
    out = result_file(out, (".tsv", ".csv", ".jsonl", ".parquet"), sources=[model])
    engine = (engine or EngineConfig()).resolved()
    stage = ParaphraseStage(str(model), decoding, NamedEncoder.of(scorer), engine.threads)
    # The model is checked before the file is read, which may take long.
    settings = stage.identity
    source = LabelledSentences.open(file, columns)
    if taken := {*source.names} & {"original", "index", "score"}:
        raise InputError(
            f"{file}: the column {taken.pop()!r} has the name of one that is added; rename it",
            option="columns",
            path=Path(file),
        )
    identity = as_json({**settings, "augment": config, "input": source.identity})

    def make(work: Path, path: Path) -> AugmentedFileRecord:
        originals = _cut_originals(source, out, work / "originals", identity, engine)
        counts: dict[str, int] = originals.extra["labels"]
        # Maximum number of paraphrases of each label; None for any number.
        quotas: dict[str, int | None] = dict.fromkeys(sorted(counts))
        if config.balance or config.per_label is not None:
            most = config.per_label or max(counts.values())
            quotas = {label: max(0, most - counts[label]) for label in quotas}
        cut = cut_shards(_wanting(originals, quotas), work / "input", identity, engine)
        done = run_job(cut, work / "output", stage, engine)
        found = Found(cut, done)
        chosen, left_out = _choose(originals, found, quotas, decoding.seed)
        added = _write(originals, found, chosen, source.names, path)
        labels = {}
        for label, quota in quotas.items():
            short = 0 if quota is None else quota - added[label]
            labels[label] = {"originals": counts[label], "paraphrases": added[label], "short": short}
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


def _cut_originals(
    source: LabelledSentences, out: Path, folder: Path, identity: dict[str, Any], engine: EngineConfig
) -> Manifest:
    """Cut the rows of the file into shards; the manifest keeps the number of rows of each label as `labels`."""
    counts = Counter[str]()

    def rows() -> Iterator[pa.Table]:
        for table in source.tables():
            labels = table["label"].cast(pa.string())
            if out.suffix.lower() == ".tsv" and pc.any(pc.match_substring_regex(labels, r"[\t\r\n]")).as_py():
                raise InputError(
                    f"{source.table.path} has a {source.names[1]!r} with a tab or a line break, which TSV cannot "
                    "hold; write .jsonl, .csv or .parquet",
                    option="out",
                    path=out,
                )
            counts.update(labels.to_pylist())
            yield table

    return cut_shards(rows(), folder, identity, engine, unit="rows", extra=lambda: {"labels": counts})


def _wanting(originals: Manifest, quotas: dict[str, int | None]) -> Iterator[pa.Table]:
    """Read the rows whose label may get paraphrases; a row without text becomes an empty sentence."""
    wanting = pa.array([label for label, quota in quotas.items() if quota != 0], pa.string())
    for table in map(pq.read_table, originals.paths()):
        short = table.filter(pc.is_in(table["label"].cast(pa.string()), wanting))
        yield short.set_column(1, "source", short["source"].fill_null(""))


@dataclass(frozen=True)
class Found:
    """The paraphrases that a job found."""

    sentences: Manifest  # Shards of sentences
    paraphrases: Manifest  # Shards of their paraphrases, in the same order

    def tables(self) -> Iterator[pa.Table]:
        """Read the paraphrases with the labels of their sentences, in the order of the sentences."""
        for before, after in zip(self.sentences.paths(), self.paraphrases.paths(), strict=True):
            sentences, found = pq.read_table(before, columns=["index", "label"]), pq.read_table(after)
            found = found.filter(pc.greater(found["rank"], 0))
            labels = sentences["label"].take(pc.index_in(found["index"], sentences["index"]))
            yield found.append_column("label", labels)


def _choose(originals: Manifest, found: Found, quotas: dict[str, int | None], seed: int) -> tuple[np.ndarray, int]:
    """Choose paraphrases of each label up to its quota: first the best one of each sentence, sentences at random.

    Returns a mask of the chosen paraphrases [paraphrase], and the number of paraphrases whose text is in the file
    already, as a sentence or as a paraphrase before in this order. Texts are compared by their hashes.
    """
    known = [hash_texts([""])]
    for table in map(pq.read_table, originals.paths()):
        known.append(hash_texts(plain(table["source"].drop_null())))
    names = pa.array(list(quotas), pa.string())
    parts = []
    for table in found.tables():
        labels = pc.index_in(table["label"].cast(pa.string()), names).to_numpy()
        keys = hash_texts(plain(table["paraphrase"]))
        parts.append([table["index"].to_numpy(), table["rank"].to_numpy(), labels, keys])
    if not parts:
        return np.empty(0, bool), 0
    index, ranks, labels, keys = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((index, lottery(index, seed), ranks))
    fresh = order[distinct_rows(keys[order])]
    fresh = fresh[~np.isin(keys[fresh], np.concatenate(known))]
    chosen = np.zeros(len(index), bool)
    for label, quota in enumerate(quotas.values()):
        chosen[fresh[labels[fresh] == label][:quota]] = True
    return chosen, len(index) - len(fresh)


def _write(originals: Manifest, found: Found, chosen: np.ndarray, names: tuple[str, str], path: Path) -> Counter[str]:
    """Write each row, followed by its chosen paraphrases, and return the number of paraphrases of each label."""
    kind = pq.read_schema(originals.paths()[0]).field("label").type
    added = Counter[str]()

    def paraphrases() -> Iterator[pa.Table]:
        read = 0
        for table in found.tables():
            kept = table.filter(pa.array(chosen[read : read + table.num_rows]))
            read += table.num_rows
            added.update(kept["label"].cast(pa.string()).to_pylist())
            if kept.num_rows:
                columns = [kept[name] for name in ("paraphrase", "label", "index", "score", "rank")]
                yield pa.table(columns, names=COLUMNS)

    def rows() -> Iterator[pa.RecordBatch]:
        waiting, more = None, paraphrases()
        for table in map(pq.read_table, originals.paths()):
            last, count = table["index"][-1].as_py(), table.num_rows
            empty = [pa.nulls(count, pa.float32()), pa.array(np.zeros(count, np.int32))]
            parts = [pa.table([table["source"], table["label"], table["index"], *empty], names=COLUMNS)]
            while (waiting := waiting or next(more, None)) is not None:
                inside = pc.less_equal(waiting["index"], last)
                parts.append(waiting.filter(inside))
                waiting = waiting.filter(pc.invert(inside))
                if waiting.num_rows:
                    break
                waiting = None
            joined = pa.concat_tables(parts).sort_by([("index", "ascending"), ("rank", "ascending")])
            yield from joined.combine_chunks().to_batches()

    text, label = names
    fields = [(text, pa.string()), (label, kind), ("original", pa.bool_()), ("index", pa.int64())]
    schema = pa.schema([*fields, ("score", pa.float32())])
    with TableWriter(path, schema) as writer:
        # Row groups of Parquet have at most this many rows.
        for batch in rebatch(rows(), 1 << 20):
            texts, labels, index, score, rank = batch.columns
            writer.write(pa.table([texts, labels, pc.equal(rank, 0), index, score], schema=schema))
    return added
