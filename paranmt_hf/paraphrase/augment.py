"""Augment labelled sentences with paraphrases, each of which has the label of its sentence."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.normalisation import normalise
from paranmt_hf.corpus.reading.pairs import plain
from paranmt_hf.corpus.statistics.draws import lottery
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.paraphrase_file import (
    PACKAGES,
    SCHEMA,
    ParaphraseStage,
    TableWriter,
    cut_shards,
    holds_paraphrases,
    without_lines,
)
from paranmt_hf.util.files import check_regular, result_file
from paranmt_hf.util.markers import Advanced, Count, Group, Without
from paranmt_hf.util.records import FileRecord, as_json, made_with
from paranmt_hf.util.run import Result, run
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.wording import brief, counted

logger = logging.getLogger(__name__)
LABELLED_SUFFIXES = (".tsv", ".csv", ".jsonl", ".parquet")
NO_LIMIT = sys.maxsize  # Quota of a label without one


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
    """Labelled sentences of a file.

    Attributes:
        rows: Columns `index` (row of the file, from 0), `source` (white space normalised) and `label` (text or int64).
        text: Name of the column of sentences; `text` if the file has no names.
        label: Name of the column of labels; `label` if the file has no names.
        identity: Everything that determines the rows, as JSON values.
    """

    rows: pa.Table
    text: str
    label: str
    identity: dict[str, Any]


def read_labelled(path: str | Path, columns: LabelledColumns | None = None) -> LabelledSentences:
    """Read labelled sentences; rows without text and label, such as blank lines, are counted and left out."""
    columns, path = columns or LabelledColumns(), Path(path).expanduser()
    check_regular(path)
    table = open_table(path, [columns.text, columns.label])
    places = [table.position(columns.text), table.position(columns.label)]
    if places[0] == places[1]:
        raise InputError(
            f"{path}: text and label are both the column {columns.text!r}; name two columns",
            option="columns",
            path=path,
        )
    numbers = [] if columns.label in table.texts else [columns.label]
    indices: list[int] = []
    texts: list[str | None] = []
    labels: list[str | int] = []
    read = 0
    for piece in table.pieces([columns.text, columns.label], numbers=numbers):
        rows = zip(*(column.to_pylist() for column in piece.columns), strict=True)
        for number, (text, label) in enumerate(rows, piece.first):
            if text is not None or label is not None:
                place = f"{piece.where}{number}"
                indices.append(read)
                texts.append(None if text is None else _decoded(text, place, path))
                labels.append(_label(label, place, path))
            read += 1
    if not indices:
        raise InputError(f"{path} has no row; expected labelled sentences", path=path)
    if len({type(label) for label in labels}) > 1:
        raise InputError(
            f"{path}: the column {columns.label!r} has text and numbers; write all labels as text, or all as numbers",
            option="columns",
            path=path,
        )
    if read > len(indices):
        logger.warning(f"warning: {path}: {counted(read - len(indices), 'row')} without text and label were left out")
    sources = normalise(pa.array(texts, pa.string()))
    names = table.names
    return LabelledSentences(
        pa.table({"index": indices, "source": sources, "label": labels}),
        names[places[0]] if names else "text",
        names[places[1]] if names else "label",
        {**table.identity, "text": columns.text, "label": columns.label},
    )


def _decoded(value: bytes, place: str, path: Path) -> str:
    try:
        return value.decode("utf8")
    except UnicodeDecodeError:
        raise InputError(f"{place} is not UTF-8; convert the file to UTF-8", option="columns", path=path) from None


def _label(value: bytes | float | None, place: str, path: Path) -> str | int:
    """Convert a label to text or a whole number; JSON is read in double precision, exact up to 53 bits."""
    if isinstance(value, bytes) and value:
        return _decoded(value, place, path)
    if isinstance(value, int | float) and abs(value) <= (1 << 53) and value == int(value):
        return int(value)
    raise InputError(
        f"{place}: expected a label, text or a whole number of 53 bits or less, found {brief(value)}",
        option="columns",
        path=path,
    )


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
    decoding: Annotated[
        ParaphraseConfig | None, Group(), Without("has_template", "trees", "keep_copies", "max_mutual_overlap")
    ] = None,
    scorer: Annotated[str | Path | None, Advanced] = None,
    engine: Annotated[EngineConfig | None, Group(), Without("kind", "gpus"), Advanced] = None,
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
    source = read_labelled(file, columns)
    if taken := {source.text, source.label} & {"original", "index", "score"}:
        raise InputError(
            f"{file}: the column {taken.pop()!r} has the name of one that is added; rename it",
            option="columns",
            path=Path(file),
        )
    labels = source.rows["label"].cast(pa.string())
    if out.name.endswith(".tsv") and pc.any(pc.match_substring_regex(labels, r"[\t\r\n]")).as_py():
        raise InputError(
            f"{file} has a {source.label!r} with a tab or a line break, which TSV cannot hold; write .jsonl, .csv or "
            ".parquet",
            option="out",
            path=out,
        )
    identity = as_json({**settings, "augment": config, "input": source.identity})

    def make(work: Path, path: Path) -> AugmentedFileRecord:
        originals = source.rows
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


def _write(originals: pa.Table, added: pa.Table, source: LabelledSentences, path: Path) -> None:
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
