"""Files of paraphrases: made of the sentences of a file in shards, which continue after a kill; written and read."""

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
    """The content of a file of paraphrases."""

    KIND: ClassVar[str] = "a file of paraphrases (`paranmt paraphrase text`)"

    lines: int  # Sentences that were read
    paraphrased: int  # Sentences with at least one paraphrase
    paraphrases: int  # Rows with a paraphrase
    notes: dict[str, int] = field(default_factory=dict)  # Sentences without a paraphrase, by reason


class ParaphrasedFile(Result[ParaphrasedFileRecord]):
    """A file of paraphrases."""

    def summary(self) -> str:
        """Counts, and reasons of sentences without a paraphrase."""
        record = self.record
        state = "" if self.fresh else " (made before)"
        lines = [
            f"{self.folder}: {counted(record.paraphrases, 'paraphrase')} of {counted(record.lines, 'line')}{state}"
        ]
        return "\n".join([*lines, *without_lines(record.notes)])


def without_lines(notes: dict[str, int]) -> list[str]:
    """Lines of a summary about sentences without a paraphrase."""
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

    The package carries no model for it; without one, `paranmt build` with a pivot or a language model paraphrases text
    (docs/paraphrase.md). A sentence without a paraphrase keeps its place: its `rank` is 0, and `note` says why. After
    an interruption the same call continues.

    Args:
        file: Text file with one sentence on each line, file with columns (docs/formats.md), or corpus.
        out: File of paraphrases, .parquet, .jsonl or .tsv, with the columns `index` (of the sentence, from 0),
            `source`, `paraphrase`, `rank` (from 1), `score` and `note`; with templates also `template`. Work in
            progress is in `OUT.work`.
        model: Folder or Hub id of an encoder-decoder; `paranmt paraphrase train` makes one.
        config: How it searches.
        column: Column of a file, by its name or number, or side of a corpus (default: reference).
        scorer: Encoder of the paraphrase score: folder or Hub id, or a text file of word vectors (default: the small
            encoder of this package).
        engine: The engine for the work.
        templates: For a syntactically controlled network: templates such as `(S(NP)(VP))`, or the number of most
            frequent ones. The highest score of each sentence comes first then.
        parser: For a syntactically controlled network, the source of the trees of sentences: `link-grammar`,
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
    """Read `index` and `source`; a line that cannot be paraphrased keeps its index."""
    read = 0
    for sentences in all_lines(source):
        yield pa.table({"index": np.arange(read, read + len(sentences)), "source": sentences})
        read += len(sentences)


def holds_paraphrases(work: Path) -> bool:
    """Whether a work folder holds finished shards."""
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
    """Cut tables into shards, unless an earlier run did; empty tables give no shards."""
    # A kill loses no more than the shards in progress.
    return cut_into_shards(tables, folder, identity, engine.shard_rows or 1000, unit=unit, extra=extra)


@dataclass(frozen=True)
class ParaphraseStage:
    """Converts shards with `index` and `source` to shards with every column of `schema`.

    A sentence has a row for each paraphrase, with `rank` from 1; one without a paraphrase has a row of rank 0 and a
    note. The number of CPU threads changes no result; `control` is for a syntactically controlled network.
    """

    model: str
    config: ParaphraseConfig
    scorer: NamedEncoder
    threads: int | None = None
    label: str = "paraphrase"
    unit: str = "sentences"
    control: TemplateControl | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of a result."""
        return SCHEMA if self.control is None else SCHEMA.insert(3, pa.field("template", pa.string()))

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What determines the paraphrases; the model is hashed once, and the stage is sent to workers with it."""
        # Before torch is imported, which takes seconds.
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
        """Load the paraphraser; returns a function that paraphrases a shard."""
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

        # Rows that are sorted by length together: enough for equal lengths, few enough for progress to move.
        return by_windows(500, paraphrased)


def is_paraphrase_file(name: str | Path) -> bool:
    """Whether a path is a file of paraphrases rather than a model."""
    path = Path(name).expanduser()
    return path.is_file() or (path.suffix.lower() in PARAPHRASE_SUFFIXES and not path.is_dir())


def read_paraphrases(path: Path) -> dict[str, list[str]]:
    """Read the paraphrases of each sentence, the best first.

    The file has the columns `source`, `paraphrase` and `rank`, from 1 (0 if a sentence has none).
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
            own = found.setdefault(source, [])
            if paraphrase and float(rank or 0):
                own.append((int(float(rank)), paraphrase))
    # A sentence that is in the input twice has the same paraphrases twice.
    return {source: list(dict.fromkeys(text for _, text in sorted(own))) for source, own in found.items()}


class TableWriter:
    """Writes tables into a file in the format of its suffix: .tsv, .csv, .jsonl or .parquet."""

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
        """Write rows of the schema."""
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
        if self._suffix == ".csv":
            csv.writer(self._file, lineterminator="\n").writerow(fields)
        else:
            # TSV has no way to write a tab or a line break.
            self._file.write("\t".join(re.sub(r"[\t\r\n]+", " ", field) for field in fields) + "\n")


def _as_text(value: object) -> str:
    """Format a value for TSV and CSV."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.4f}"
    return "" if value is None else str(value)
