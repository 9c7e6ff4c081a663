"""`paranmt parse`: both sentences of pairs, parsed by shards."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.bitext.columns import normalise
from paranmt_hf.corpus.jobs.cutting import cut_into_shards
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest, Report, Work
from paranmt_hf.corpus.pairs import Pairs, PairSelection
from paranmt_hf.corpus.parsing.parsers import Parser, check_reads, named_parsers
from paranmt_hf.corpus.parsing.template_counts import (
    RECORD_FILE,
    TEMPLATES_FILE,
    ParseRecord,
    TemplateCounter,
    read_parsed,
    write_template_counts,
)
from paranmt_hf.corpus.parsing.templates import linearised
from paranmt_hf.corpus.parsing.tree_file import TreeFile, TreeIndex, write_index
from paranmt_hf.errors import InputError
from paranmt_hf.training.card import languages
from paranmt_hf.util.files import checksum, source_name, write_bytes
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import Identity, as_json
from paranmt_hf.util.run import put_in_place, result_folder, work_folder
from paranmt_hf.util.settings import check, is_given, seed_setting, setting
from paranmt_hf.util.work import finished, folder_aside, keep_identity, locked, refuse_inside, remove, remove_leftover
from paranmt_hf.version import __version__

# Columns with the trees, by the columns with the sentences.
PARSES = {"reference": "reference_parse", "translation": "translation_parse"}
# Sentences after which a parser that takes all of them at once is asked for progress.
BLOCK = 1000


@dataclass(frozen=True)
class ParseStage:
    """Shards of pairs get the columns of `PARSES`: linearised trees, null where the parser finds none.

    Attributes:
        parser: Its name, the folder of an index of trees, or a parser of your own, which workers receive pickled.
        name: What it calls itself, with its version.
        seconds: What a sentence may take, for parsers that can take long.
        checksum: That of the file of trees, where they come from one.
    """

    parser: str | Path | Parser
    name: str
    seconds: int
    checksum: str | None = None
    label: str = "parse"
    unit: str = "pairs"

    @property
    def identity(self) -> dict[str, Any]:
        """What determines the trees."""
        return {"parser": {"name": self.name, **({"sha256": self.checksum} if self.checksum else {})}}

    def load(self) -> Work:
        """Start the parser."""
        parser = self._open()
        if parser.name != self.name:
            raise InputError(f"this worker has {parser.name}, the work began with {self.name}; install the same")

        def work(table: pa.Table, report: Report) -> tuple[pa.Table, dict[str, int]]:
            return parse_table(table, parser, report), {}

        return work

    def _open(self) -> Parser:
        if isinstance(self.parser, Path):
            return TreeIndex(self.parser, self.name)
        if isinstance(self.parser, str):
            return named_parsers(seconds=self.seconds, processes=1)[self.parser]()
        return self.parser


def sentences_of(table: pa.Table) -> pa.DictionaryArray:
    """Find the sentences of a shard that are parsed, each once: all references, then all translations [2 x pair]."""
    sides = [normalise(table[side].combine_chunks()) for side in PARSES]
    return pa.concat_arrays(sides).dictionary_encode()


def parse_table(table: pa.Table, parser: Parser, report: Report) -> pa.Table:
    """Parse both sentences of pairs, each distinct sentence once.

    Args:
        table: Columns `reference` and `translation` [pair]; null has no tree. Other columns stay.
        parser: The parser.
        report: Told the rows that are as good as done.

    Returns:
        The table with the columns of `PARSES` at its end.
    """
    encoded = sentences_of(table)
    sentences = encoded.dictionary.to_pylist()
    trees: list[str | None] = []
    step = parser.at_once or BLOCK
    for start in range(0, len(sentences), step):
        block = sentences[start : start + step]
        trees += [None if tree is None else linearised(tree) for tree in parser.trees(block)]
        report(table.num_rows * len(trees) // len(sentences))
    column = pa.array(trees, pa.string()).take(encoded.indices)
    for index, name in enumerate(PARSES.values()):
        table = table.append_column(name, column.slice(index * table.num_rows, table.num_rows))
    return table


COMMAND = "parse"
# Pairs of a file of the result.
FILE_ROWS = 1_000_000
# More processes than that take more memory than an ordinary machine has; `--workers` asks for them.
MOST_WORKERS = 8


@dataclass(frozen=True)
class ParseConfig:
    """How pairs are parsed."""

    seconds: int = setting(5, "seconds that link-grammar has for a sentence", at_least=1)
    seed: int = seed_setting(1, "decides which pairs --max-pairs draws")
    rows_per_shard: int = setting(2000, "pairs that make one unit of work", at_least=1, at_most=FILE_ROWS)

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class ParsedPairs:
    """Parsed pairs.

    Attributes:
        folder: Where they are.
        record: What is there, as in `parses.json`.
        fresh: Whether this call made them; they may have been there already.
        sentences: Distinct sentences of shards that this call parsed.
        seconds: What parsing them took.
    """

    folder: Path
    record: ParseRecord
    fresh: bool
    sentences: int = 0
    seconds: float = 0.0


def parse_pairs(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    parser: str | Path | Parser,
    config: ParseConfig | None = None,
    selection: PairSelection | None = None,
    engine: EngineConfig | None = None,
) -> ParsedPairs:
    """Give pairs the trees of both sentences.

    Args:
        data: One or more releases, Parquet files with `reference` and `translation`, or datasets on the Hub.
        out: Folder of the result: Parquet files of the pairs with all their columns, `reference_parse` and
            `translation_parse`, where a sentence without a tree has null; the templates of the references with their
            counts; and a record. Work in progress lies in `<out>.work`.
        parser: `link-grammar`, `stanza`, a file of trees (see `TreeFile`), or a parser of your own.
        config: How they are parsed.
        selection: Which pairs.
        engine: Where the work runs.
    """
    config, out = config or ParseConfig(), result_folder(out)
    sources = [data] if isinstance(data, str | Path) else list(data)
    refuse_inside(out, *map(Path, sources))
    if is_given(config, "seconds") and str(parser) != "link-grammar":
        name = parser if isinstance(parser, str | Path) else parser.name
        raise InputError(f"--seconds is for link-grammar, and the parser is {name}; leave it out")
    stage, trees = _stage(parser, config, work_folder(out) / "trees")
    pairs = Pairs(sources, selection or PairSelection(), seed=config.seed, all_columns=True)
    check_reads(parser, languages(pairs.identity))
    identity = as_json({"data": pairs.identity, **stage.identity})
    record = finished(out, identity, read_parsed, lambda record: record.settings, made="parsed")
    if record is not None:
        remove_leftover(out, COMMAND)
        return ParsedPairs(out, record, fresh=False)
    engine = _resolved(engine or EngineConfig(), parser)
    work = work_folder(out)
    with locked(work, COMMAND, worth=_holds_shards):
        kept = {**identity, "rows_per_shard": config.rows_per_shard}
        keep_identity(work, kept, worth=_holds_shards, doing="parsing")
        cut = cut_into_shards(
            _tables(pairs), work / "input", identity["data"], config.rows_per_shard, extra=lambda: pairs.left_out_by
        )
        if not cut.shards:
            raise InputError(f"there is nothing to parse: {pairs.left_out}; choose others")
        if trees is not None and not (work / "trees").exists():
            write_index(trees, work / "trees")
        before = {path.name for path in (work / "output").glob("*.parquet")}
        began = time.monotonic()
        done = run_job(cut, work / "output", stage, engine)
        seconds = time.monotonic() - began
        sentences = sum(_sentences(path) for path in done.paths() if path.name not in before)
        inputs = {"data": ", ".join(map(source_name, sources)), "parser": stage.name}
        record = _write(done, work / "result", identity, inputs, cut.extra)
        put_in_place(work / "result", out)
        remove(work)
    return ParsedPairs(out, record, fresh=True, sentences=sentences, seconds=seconds)


def _stage(parser: str | Path | Parser, config: ParseConfig, index: Path) -> tuple[ParseStage, TreeFile | None]:
    """Find the parser, before any work; and the file of trees, if they come from one."""
    named = named_parsers(seconds=config.seconds, processes=1)
    if not isinstance(parser, str | Path):
        return ParseStage(parser, parser.name, config.seconds), None
    if str(parser) in named:
        return ParseStage(str(parser), named[str(parser)]().name, config.seconds), None
    path = Path(parser).expanduser()
    if not path.exists():
        raise InputError(f"--parser {parser}: there is no such file, nor a parser of that name: {', '.join(named)}")
    file = TreeFile(path)
    return ParseStage(index, file.name, config.seconds, checksum(path)), file


def _resolved(engine: EngineConfig, parser: str | Path | Parser) -> EngineConfig:
    """Only stanza computes on GPUs: of other parsers, a process for each core."""
    if engine.engine == "local" and not engine.workers and str(parser) != "stanza":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        engine = replace(engine, workers=min(cores, MOST_WORKERS))
    return engine.resolved()


def _holds_shards(work: Path) -> bool:
    return any((work / "output").glob("*.parquet"))


def _tables(pairs: Pairs) -> Iterator[pa.Table]:
    """Read the chosen pairs with all columns but trees of an earlier parser."""
    first: dict[str, pa.DataType] | None = None
    for table in pairs.batches():
        # Without what a file says of its columns, which would not be true of the result.
        rows = pa.table({name: table[name] for name in table.column_names if name not in PARSES.values()})
        columns = dict(zip(rows.schema.names, rows.schema.types, strict=True))
        first = first or columns
        if columns != first:
            differing = sorted({name for name, _ in first.items() ^ columns.items()})
            raise InputError(
                f"the pairs come with different columns ({', '.join(differing)}); parse each source for itself"
            )
        yield rows.select(list(first))


def _sentences(shard: Path) -> int:
    return len(sentences_of(pq.read_table(shard, columns=list(PARSES))).dictionary)


def _write(
    done: Manifest, folder: Path, identity: Identity, inputs: dict[str, str], left_out: dict[str, int]
) -> ParseRecord:
    """Join the shards into files of pairs, count trees and templates, and write the record."""
    shutil.rmtree(folder, ignore_errors=True)
    with folder_aside(folder) as aside:
        trees, counter = dict.fromkeys([*PARSES, "both"], 0), TemplateCounter()
        files = _write_pairs(done, aside, trees, counter)
        if not any(trees.values()):
            of_file = inputs["parser"].startswith("the file ")
            asked = "are they the sentences that it is for?" if of_file else "are they whole English sentences?"
            raise InputError(f"{inputs['parser']} has a tree of none of {done.rows:,} pairs' sentences; {asked}")
        templates = counter.table()
        write_template_counts(templates, aside / TEMPLATES_FILE)
        record = ParseRecord(
            version=__version__,
            settings=identity,
            inputs=inputs,
            rows=done.rows,
            trees=trees,
            left_out=left_out,
            templates=templates.num_rows,
            files={path.name: checksum(path) for path in [*files, aside / TEMPLATES_FILE]},
        )
        write_bytes(aside / RECORD_FILE, f"{json.dumps(asdict(record), indent=1)}\n".encode())
    return record


def _write_pairs(done: Manifest, folder: Path, trees: dict[str, int], counter: TemplateCounter) -> list[Path]:
    """Write the files of pairs, adding to the counts as they go past."""
    shards, rows = done.paths(), 0
    each = max(1, FILE_ROWS // max(shard.rows for shard in done.shards.values()))
    groups = [shards[start : start + each] for start in range(0, len(shards), each)]
    files = [folder / f"pairs-{index:05d}-of-{len(groups):05d}.parquet" for index in range(len(groups))]
    with Progress("write", done.rows, unit="pairs") as progress:
        for path, group in zip(files, groups, strict=True):
            with pq.ParquetWriter(path, pq.read_schema(group[0]), compression="zstd") as writer:
                for shard in group:
                    table = pq.read_table(shard)
                    writer.write_table(table)
                    _count(table, trees, counter)
                    rows += table.num_rows
                    progress.advance_to(rows)
    return files


def _count(table: pa.Table, trees: dict[str, int], counter: TemplateCounter) -> None:
    present = {side: table[column].is_valid() for side, column in PARSES.items()}
    for side, found in {**present, "both": pc.and_(*present.values())}.items():
        trees[side] += pc.sum(found).as_py() or 0
    counter.add(table[PARSES["reference"]], table["reference"])
