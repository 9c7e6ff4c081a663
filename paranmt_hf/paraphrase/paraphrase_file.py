"""Write and read files of paraphrases.

The sentences of a file are paraphrased shard by shard, so that an interrupted run continues with the next shard.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest, Work, cut_into_shards
from paranmt_hf.corpus.jobs.stages import by_windows
from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.readers import Reader
from paranmt_hf.corpus.reading.sentences import all_lines, open_sentences
from paranmt_hf.corpus.reading.tables import text_rows
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import check_name, locate
from paranmt_hf.paraphrase.config import ParaphraseConfig
from paranmt_hf.paraphrase.templates import TemplateControl, check_control, control_of
from paranmt_hf.util.files import result_file
from paranmt_hf.util.markers import Advanced, Group
from paranmt_hf.util.records import FileRecord, as_json, made_with
from paranmt_hf.util.run import Result, run
from paranmt_hf.util.wording import brief, counted
from paranmt_hf.util.work import work_folder

PARAPHRASE_SUFFIXES = (".parquet", ".jsonl", ".tsv")
SCHEMA = pa.schema(
    {
        "index": pa.int64(),
        "source": pa.string(),
        "paraphrase": pa.string(),
        "rank": pa.int32(),
        "score": pa.float32(),
        "note": pa.string(),
    }
)
PACKAGES = ("torch", "transformers", "tokenizers")


@dataclass(frozen=True, kw_only=True)
class ParaphrasedFileRecord(FileRecord):
    """The record of a file of paraphrases, which lies next to it."""

    KIND: ClassVar[str] = "a file of paraphrases (`paranmt paraphrase text`)"

    lines: int  # Number of sentences that were read
    paraphrased: int  # Number of sentences with at least one paraphrase
    paraphrases: int  # Number of paraphrases
    notes: dict[str, int] = field(default_factory=dict)  # Number of sentences without a paraphrase, by reason


class ParaphrasedFile(Result[ParaphrasedFileRecord]):
    """A file of paraphrases."""

    def summary(self) -> str:
        """Return the numbers of paraphrases and lines, and of sentences without a paraphrase, by reason."""
        record = self.record
        state = "" if self.fresh else " (made before)"
        lines = [
            f"{self.folder}: {counted(record.paraphrases, 'paraphrase')} of {counted(record.lines, 'line')}{state}"
        ]
        return "\n".join([*lines, *without_lines(record.notes)])


def without_lines(notes: dict[str, int]) -> list[str]:
    """Return lines for a summary: the number of sentences without a paraphrase for each reason in `notes`."""
    return [f"  without  {count:>12,} {note}" for note, count in notes.items() if count]


def paraphrase_file(
    file: str | Path,
    out: str | Path,
    *,
    model: str | Path,
    config: ParaphraseConfig | None = None,
    column: str | None = None,
    scorer: Annotated[str | Path | None, Advanced] = None,
    engine: Annotated[EngineConfig | None, Group(), Advanced] = None,
    templates: Sequence[str] | int | None = None,
    parser: Annotated[str | Path, Advanced] = "link-grammar",
) -> ParaphrasedFile:
    """Generate paraphrases of the sentences of a file.

    The package has no model of its own for this. Without a model, `paranmt build` with a pivot or a language model
    paraphrases text (docs/paraphrase.md). A sentence without a paraphrase still has a row, with the `rank` 0 and a
    `note` that says why. After an interruption the same call continues.

    Args:
        file: Text file with one sentence on each line, file with columns (docs/formats.md), or corpus.
        out: File of paraphrases, .parquet, .jsonl or .tsv, with the columns `index` (of the sentence, from 0),
            `source`, `paraphrase`, `rank` (from 1), `score` and `note`; with templates also `template`. Work in
            progress is in `OUT.work`.
        model: Folder or Hub id of an encoder-decoder; `paranmt paraphrase train` makes one.
        config: How paraphrases are searched and selected.
        column: Column of a file, by its name or number, or side of a corpus (default: reference).
        scorer: Encoder of the paraphrase score: folder or Hub id, or a text file of word vectors (default: the small
            encoder of this package, which is for English).
        engine: Engine that runs the work.
        templates: Templates such as `(S(NP)(VP))`, or the number of most frequent ones, for a syntactically controlled
            network only. The paraphrase of the highest score comes first then.
        parser: Source of the trees of sentences, for a syntactically controlled network only: `link-grammar`,
            `stanza`, or a file of trees.
    """
    out = result_file(out, PARAPHRASE_SUFFIXES, sources=[model])
    engine = (engine or EngineConfig()).resolved()
    control = control_of(model, templates, parser, work_folder(out) / "trees")
    search = (config or ParaphraseConfig()).for_files()
    stage = ParaphraseStage(str(model), search, NamedEncoder.of(scorer), engine.threads, control=control)
    # The model is checked before the file is read, which may take long.
    settings = stage.identity
    source = open_sentences(file, column)
    identity = as_json({**settings, "input": source.identity})

    def make(work: Path, path: Path) -> ParaphrasedFileRecord:
        if control is not None:
            control.trees.write_index()
        cut = cut_shards(_lines(source), work / "input", identity, engine)
        if not cut.shards:
            raise InputError(f"{file} has no line; expected one sentence on each", path=Path(file))
        done = run_job(cut, work / "output", stage, engine)
        paraphrased = paraphrases = 0
        with TableWriter(path, stage.schema) as writer:
            for shard in done.paths():
                table = pq.read_table(shard)
                ranks = table["rank"].to_numpy()
                paraphrased += int(np.count_nonzero(ranks == 1))
                paraphrases += int(np.count_nonzero(ranks))
                writer.write(table)
        return ParaphrasedFileRecord(
            settings=identity,
            lines=cut.rows,
            paraphrased=paraphrased,
            paraphrases=paraphrases,
            notes=done.dropped,
            **made_with(*PACKAGES),
        )

    return run(
        out,
        identity,
        ParaphrasedFileRecord,
        make,
        result=ParaphrasedFile,
        command="paraphrase text",
        holds=holds_paraphrases,
    )


def _lines(source: Reader) -> Iterator[pa.Table]:
    """Yield tables with `index`, the number of a line from 0, and `source`, its text, null where it is not UTF-8."""
    read = 0
    for sentences in all_lines(source):
        yield pa.table({"index": np.arange(read, read + len(sentences)), "source": sentences})
        read += len(sentences)


def holds_paraphrases(work: Path) -> bool:
    """Return whether a work folder holds finished shards of paraphrases."""
    return any((work / "output").glob("*.parquet"))


def cut_shards(
    tables: Iterator[pa.Table],
    folder: Path,
    identity: dict[str, Any],
    engine: EngineConfig,
    *,
    unit: str = "lines",
    extra: Callable[[], dict[str, Any]] = dict,
) -> Manifest:
    """Cut tables into shards in a folder, unless an earlier run did; tables without rows give no shards.

    Args:
        tables: The tables.
        folder: Folder of the shards.
        identity: Everything that determines the tables, as JSON values.
        engine: Number of rows of a shard.
        unit: Name of a row, for the progress bar.
        extra: Returns values that the manifest keeps; called after the last table.
    """
    # Shards are small, because a run that is killed loses the shards in progress.
    return cut_into_shards(tables, folder, identity, engine.shard_rows or 1000, unit=unit, extra=extra)


@dataclass(frozen=True)
class ParaphraseStage:
    """The work on shards of sentences: from `index` and `source` to all columns of `schema`.

    A sentence has a row for each paraphrase, with `rank` from 1. A sentence without a paraphrase has a row with the
    rank 0 and a note.
    """

    model: str  # Folder or Hub id of the paraphraser
    config: ParaphraseConfig
    scorer: NamedEncoder  # Encoder of the paraphrase score
    threads: int | None = None  # Number of CPU threads, which does not change the result; None for torch's default
    label: str = "paraphrase"  # Label of the progress bar
    unit: str = "sentences"  # Name of a row, for the progress bar
    control: TemplateControl | None = None  # Templates and trees for a syntactically controlled network

    @property
    def schema(self) -> pa.Schema:
        """Columns of the result."""
        return SCHEMA if self.control is None else SCHEMA.insert(3, pa.field("template", pa.string()))

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the paraphrases, as JSON values.

        It is computed once and sent to workers with the stage, because hashing a model takes long.
        """
        # A wrong name is refused before torch is imported, which takes seconds.
        check_name(self.model)
        from paranmt_hf.corpus.translation.translator import resolve_device
        from paranmt_hf.paraphrase.models import locate_paraphraser, torch_dtype

        files = locate_paraphraser(self.model)
        check_control(files, templates=self.control is not None)
        dtype = str(torch_dtype(self.config, resolve_device(self.config.device))).removeprefix("torch.")
        identity: dict[str, Any] = {
            "model": {"name": files.name, "revision": files.revision},
            "generation": {**as_json(self.config), "dtype": dtype},
            "scorer": self.scorer.identity,
        }
        if self.control is not None:
            identity |= {"templates": list(self.control.templates), "trees": self.control.trees.identity}
        return identity

    def load(self) -> Work:
        """Load the paraphraser, and return a function that paraphrases a shard."""
        import torch

        from paranmt_hf.paraphrase.paraphraser import Paraphraser

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        files = locate(self.model)
        if files.revision != self.identity["model"]["revision"]:
            raise InputError(f"{self.model} has changed since the work began; put the former model back")
        scorer = self.scorer.load()
        if self.control is None:
            paraphraser = Paraphraser(files, self.config, scorer=scorer)
        else:
            trees, templates = self.control.trees.load(), self.control.templates
            paraphraser = Paraphraser(files, self.config, scorer=scorer, syntax=trees, templates=templates)

        def paraphrased(window: pa.Table) -> tuple[pa.Table, Counter[str]]:
            rows: list[dict[str, Any]] = []
            # A source is null if it is not UTF-8.
            indices, sources = window["index"].to_pylist(), window["source"].to_pylist()
            for index, source, result in zip(indices, sources, paraphraser.paraphrase(sources), strict=True):
                for rank, each in enumerate(result.paraphrases, 1):
                    rows.append({"index": index, "source": source, "paraphrase": each.text, "rank": rank})
                    rows[-1] |= {"template": each.template, "score": each.score}
                if not result.paraphrases:
                    rows.append({"index": index, "source": source, "rank": 0, "note": result.note})
            found = pa.Table.from_pylist(rows, self.schema)
            return found, Counter(found["note"].drop_null().to_pylist())

        # Sentences are sorted by length inside windows of 500: enough for batches of similar lengths, and few enough
        # for the progress bar to move.
        return by_windows(500, paraphrased)


def is_paraphrase_file(name: str | Path) -> bool:
    """Return whether a name is that of a file of paraphrases, and not of a model."""
    path = Path(name).expanduser()
    return path.is_file() or (path.suffix.lower() in PARAPHRASE_SUFFIXES and not path.is_dir())


def read_paraphrases(path: Path) -> dict[str, list[str]]:
    """Read the paraphrases of each sentence in a file, the best first, by sentence.

    The file has the columns `source`, `paraphrase` and `rank`, from 1; 0 if a sentence has no paraphrase.
    """
    columns = ("source", "paraphrase", "rank")
    table = open_table(path, columns)
    if missing := [name for name in columns if name not in table.names]:
        raise InputError(
            f"{path} has no column {', '.join(missing)}; expected a file that `paranmt paraphrase text` wrote",
            option="models",
            path=path,
        )
    found: dict[str, list[tuple[int, str]]] = {}
    for place, (source, paraphrase, rank) in text_rows(table, columns, ["rank"]):
        if not re.fullmatch(r"\d*(\.0)?", rank):
            raise InputError(
                f"{place}: expected a whole number in column 'rank', found {brief(rank)}", path=path, option="models"
            )
        if source:
            ranked = found.setdefault(source, [])
            if paraphrase and float(rank or 0):
                ranked.append((int(float(rank)), paraphrase))
    # A sentence that was in the input twice has each paraphrase twice, so repetitions are dropped.
    return {source: list(dict.fromkeys(text for _, text in sorted(ranked))) for source, ranked in found.items()}


class TableWriter:
    """A writer of tables into a file, in the format of the file's suffix: .tsv, .csv, .jsonl or .parquet."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._suffix, self._schema = path.suffix.lower(), schema
        self._file: Any
        if self._suffix == ".parquet":
            self._file = pq.ParquetWriter(path, schema)
            return
        self._file = path.open("w", encoding="utf8", newline="")
        if self._suffix != ".jsonl":
            self._write_fields(schema.names)

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, table: pa.Table) -> None:
        """Add the rows of a table, which may have its columns in any order."""
        table = table.select(self._schema.names)
        if self._suffix == ".parquet":
            self._file.write_table(table.cast(self._schema))
        elif self._suffix == ".jsonl":
            for row in table.to_pylist():
                self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
        else:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                self._write_fields([_as_text(value) for value in row])

    def _write_fields(self, fields: Sequence[str]) -> None:
        """Write a line of TSV or CSV."""
        if self._suffix == ".csv":
            csv.writer(self._file, lineterminator="\n").writerow(fields)
        else:
            # TSV cannot hold tabs and line breaks in a field, so they become blanks.
            self._file.write("\t".join(re.sub(r"[\t\r\n]+", " ", field) for field in fields) + "\n")


def _as_text(value: object) -> str:
    """Return a value as text for TSV and CSV: `true`, four digits after the point, empty for None."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.4f}"
    return "" if value is None else str(value)
