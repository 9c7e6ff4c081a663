"""`paranmt parse`: constituency trees of both sentences of pairs.

A syntactically controlled paraphrase network is trained on them (Iyyer et al. 2018, section 2.2; ParaNMT-50M, section
6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest, ReportRows, Work, cut_into_shards
from paranmt_hf.corpus.parsing.parsers import Parser, TreeSource, linearised_trees
from paranmt_hf.corpus.parsing.template_counts import (
    TEMPLATES_FILE,
    CountedTemplates,
    ParseRecord,
    ParseSettings,
    TemplateCounter,
    TreeCounts,
    frequent_templates,
    write_template_counts,
)
from paranmt_hf.corpus.reading.normalisation import normalise
from paranmt_hf.corpus.reading.pair_files import languages
from paranmt_hf.corpus.reading.pairs import Pairs, PairSelection
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import checksum, listed, source_name
from paranmt_hf.util.machine import visible_cores
from paranmt_hf.util.markers import Group, Seed
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import made_with
from paranmt_hf.util.run import Result, result_folder, run
from paranmt_hf.util.wording import counted
from paranmt_hf.util.work import work_folder

SHARD_PAIRS = 2000  # Number of pairs in a shard by default
# The column of trees for each column of sentences.
PARSES = {"reference": "reference_parse", "translation": "translation_parse"}


@dataclass(frozen=True)
class ParseStage:
    """Adds the columns of `PARSES` to shards of pairs: linearised trees, null for a sentence without a tree."""

    source: TreeSource
    label: str = "parse"
    unit: str = "pairs"

    @property
    def identity(self) -> dict[str, Any]:
        return {"parser": self.source.identity}

    def load(self) -> Work:
        parser = self.source.load()
        return lambda table, report: (parse_table(table, parser, report), {})


def parse_table(table: pa.Table, parser: Parser, report: ReportRows) -> pa.Table:
    """Add the columns of `PARSES` to pairs; each distinct sentence is parsed once, and null has no tree.

    Args:
        table: The pairs.
        parser: The parser.
        report: Called with the number of pairs that are done so far.
    """
    sides = [normalise(table[side].combine_chunks()) for side in PARSES]
    encoded = pa.concat_arrays(sides).dictionary_encode()
    sentences = encoded.dictionary.to_pylist()
    trees: list[str | None] = []
    # A parser that takes any number of sentences gets 1000 at once, so that progress is reported.
    step = parser.at_once or 1000
    for start in range(0, len(sentences), step):
        trees += linearised_trees(parser, sentences[start : start + step])
        report(table.num_rows * len(trees) // len(sentences))
    column = pa.array(trees, pa.string()).take(encoded.indices)
    for index, name in enumerate(PARSES.values()):
        table = table.append_column(name, column.slice(index * table.num_rows, table.num_rows))
    return table


class ParsedPairs(Result[ParseRecord]):
    """Parsed pairs in their folder."""

    def templates(self, *, top: int | None = 20) -> CountedTemplates:
        """Return the `top` most frequent templates of the references with their counts; None for all."""
        return frequent_templates(self.folder, top=top)

    def summary(self) -> str:
        """Describe how many sentences have trees, with the most frequent templates."""
        record, state = self.record, "" if self.fresh else " (were parsed already)"
        lines = [f"{self.folder}: {counted(record.rows, 'pair')}, parsed by {record.parser}{state}"]
        for side, count in vars(record.trees).items():
            lines.append(f"  with a tree {count:>12,} {100 * count / record.rows:5.1f} % {side}")
        lines += [f"  left out    {count:>12,} {reason}" for reason, count in record.left_out.items()]
        if record.trees.reference:
            lines += ["", self.templates().summary()]
        return "\n".join(lines)


def parse_pairs(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    parser: str | Path | Parser,
    columns: Mapping[str, str] | None = None,
    selection: Annotated[PairSelection | None, Group()] = None,
    seed: Seed = 1,
    engine: Annotated[EngineConfig | None, Group()] = None,
) -> ParsedPairs:
    """Parse both sentences of pairs into constituency trees, and count their templates.

    Args:
        data: Corpora, files with columns (docs/formats.md), or datasets on the Hub.
        out: Folder of the result: Parquet files of the pairs with all their columns and the trees, null for a sentence
            without one; templates of the references with their counts; and a record.
        parser: Source of the trees: link-grammar, stanza, or a file with lines `SENTENCE<tab>TREE`.
        columns: Columns of `data` with other names: reference=sentence1,translation=sentence2,label=is_duplicate.
        selection: Which pairs are parsed.
        seed: Seed of the sample of `max_pairs`.
        engine: Where parsing runs.
    """
    sources = listed(data)
    out = result_folder(out, ParseRecord, sources=sources)
    pairs = Pairs(sources, selection or PairSelection(), columns=columns, seed=seed, all_columns=True)
    spoken = languages(pairs.identity)
    trees = TreeSource.of(parser, work_folder(out) / "trees", languages=spoken)
    settings = ParseSettings(pairs.identity, trees.identity)
    resolved = _resolved(engine or EngineConfig(), parser)

    def make(work: Path, folder: Path) -> ParseRecord:
        rows = resolved.shard_rows or SHARD_PAIRS
        cut = cut_into_shards(_tables(pairs), work / "input", settings.data, rows, extra=lambda: pairs.left_out_by)
        if not cut.shards:
            raise InputError(f"there is nothing to parse: {pairs.left_out}; choose other pairs")
        trees.write_index()
        done = run_job(cut, work / "output", ParseStage(trees), resolved)
        return _write(done, folder, settings, ", ".join(map(source_name, sources)), trees, cut.extra)

    def holds_trees(work: Path) -> bool:
        return any((work / "output").glob("*.parquet"))

    return run(out, settings, ParseRecord, make, result=ParsedPairs, command="parse", holds=holds_trees)


def _resolved(engine: EngineConfig, parser: str | Path | Parser) -> EngineConfig:
    """Return the engine with its defaults: one process for each core, except for stanza, which computes on GPUs."""
    if engine.kind == "local" and not engine.workers and str(parser) != "stanza":
        # Not more than eight processes, because each takes memory.
        engine = replace(engine, workers=min(visible_cores(), 8))
    return engine.resolved()


def _tables(pairs: Pairs) -> Iterator[pa.Table]:
    """Read the selected pairs with all columns except trees of an earlier parser.

    Raises:
        InputError: If the sources have different columns.
    """
    first: dict[str, pa.DataType] | None = None
    for table in pairs.batches():
        # The table is made again to drop the metadata of the file, which would be wrong for the result.
        rows = pa.table({name: table[name] for name in table.column_names if name not in PARSES.values()})
        columns = dict(zip(rows.schema.names, rows.schema.types, strict=True))
        first = first or columns
        if columns != first:
            differing = sorted({name for name, _ in first.items() ^ columns.items()})
            raise InputError(f"the sources have different columns ({', '.join(differing)}); parse them one by one")
        yield rows.select(list(first))


def _write(
    done: Manifest, folder: Path, settings: ParseSettings, source: str, trees: TreeSource, left_out: dict[str, int]
) -> ParseRecord:
    """Join the shards into files of pairs, count trees and templates, and return the record.

    Args:
        done: The parsed shards.
        folder: Folder of the result.
        settings: What determines the result.
        source: Names of the sources, for the record.
        trees: The source of the trees.
        left_out: Number of pairs that were left out, by reason.

    Raises:
        InputError: If no sentence has a tree.
    """
    counts = dict.fromkeys([*PARSES, "both"], 0)
    counter = TemplateCounter()
    for table in join_shards(done, folder):
        present = {side: table[column].is_valid() for side, column in PARSES.items()}
        present["both"] = pc.and_(*present.values())
        for side, mask in present.items():
            counts[side] += pc.sum(mask).as_py() or 0
        counter.add(table[PARSES["reference"]], table["reference"])
    if not any(counts.values()):
        asked = "are they the sentences of the file?" if trees.checksum else "are they whole English sentences?"
        raise InputError(f"{trees.name} has no tree of any sentence of {counted(done.rows, 'pair')}; {asked}")
    templates = counter.table()
    write_template_counts(templates, folder / TEMPLATES_FILE)
    files = sorted(folder.glob("pairs-*.parquet"))
    return ParseRecord(
        settings=settings,
        source=source,
        parser=trees.name,
        rows=done.rows,
        trees=TreeCounts(**counts),
        left_out=left_out,
        templates=templates.num_rows,
        files={path.name: checksum(path) for path in [*files, folder / TEMPLATES_FILE]},
        **made_with("pyarrow"),
    )


def join_shards(done: Manifest, folder: Path, file_pairs: int = 1_000_000) -> Iterator[pa.Table]:
    """Write the shards into files of at most `file_pairs` pairs, and yield the table of each shard."""
    shards = done.paths()
    step = max(1, file_pairs // max(shard.rows for shard in done.shards.values()))
    count = -(-len(shards) // step)
    with Progress("write", done.rows, unit="pairs") as progress:
        for number in range(count):
            group = shards[number * step : (number + 1) * step]
            path = folder / f"pairs-{number:05d}-of-{count:05d}.parquet"
            with pq.ParquetWriter(path, pq.read_schema(group[0]), compression="zstd") as writer:
                for table in progress.over(map(pq.read_table, group)):
                    writer.write_table(table)
                    yield table
