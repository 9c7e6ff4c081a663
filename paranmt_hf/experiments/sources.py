"""`paranmt sources`: which source of text makes the best encoders. ParaNMT-50M, table 4.

A sample of the same size of each source trains the same models, which are measured on the development set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.release import read_record, release_files
from paranmt_hf.corpus.sampling import MAX_ORIGINS, Sample, numbered_pairs
from paranmt_hf.corpus.selection.filters import LengthLimit
from paranmt_hf.corpus.selection.run_filters import ReleaseRows
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.data_configs import MAX_PAIRS, SourcesConfig
from paranmt_hf.experiments.experiment import Outcome, Part, Trials, run_experiment, write_sample
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.tables import markdown_table, percent, text_table

TABLE = "sources.md"
COLUMNS = ["reference", "translation", "reference_length", "translation_length"]


class _Source:
    """A source while its rows go past."""

    def __init__(self, config: SourcesConfig) -> None:
        self.rows = 0
        self.sample = Sample(config.sample, config.draw_seed)
        self._limit = LengthLimit(None, config.max_length) if config.max_length is not None else None

    def add(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        if self._limit is not None and table.num_rows:
            table = table.filter(pa.array(self._limit.judge(table).kept))
        self.sample.add(numbered_pairs(table))


def compare_sources(
    releases: Sequence[str | Path], out: str | Path, trials: Trials, config: SourcesConfig | None = None
) -> tuple[Outcome, bool]:
    """Train models on a sample of each source, and measure them.

    A source with fewer pairs than the sample gives all that it has; the table says how many.

    Args:
        releases: The releases, each a source of its own, or with origins that are.
        out: Folder for the outcome: `experiment.json` and a table.
        trials: Which models, and how they are trained.
        config: What a source is, and how large a sample.

    Returns:
        The outcome, and whether this call got it; it may have been there.
    """
    config, folders = config or SourcesConfig(), [Path(release) for release in releases]
    names = [folder.resolve().name for folder in folders]
    if len(set(names)) != len(names):
        raise InputError(f"sources are told apart by the names of their folders, but these are {', '.join(names)}")
    rows = [ReleaseRows(release_files(folder)) for folder in folders]
    for folder, found in zip(folders, rows, strict=True):
        if config.by == "origin" and "origin" not in found.schema.names:
            raise InputError(
                f"{folder} has no column origin; import it with --columns origin=NAME, or leave out --by origin"
            )
    trials.check()
    files = {
        name: dict(read_record(folder, ["default"]).configs["default"].files)
        for name, folder in zip(names, folders, strict=True)
    }
    identity = {**asdict(config), "sources": files, **trials.identity}

    def compare(work: Path) -> list[Part]:
        return list(_parts(dict(zip(names, rows, strict=True)), config, trials, work))

    return run_experiment(out, "sources", identity, compare, _write)


def _parts(releases: dict[str, ReleaseRows], config: SourcesConfig, trials: Trials, work: Path) -> Iterator[Part]:
    sources: dict[str, _Source] = {}
    for name, rows in releases.items():
        _draw(name, rows, config, sources, several=len(releases) > 1)
    if len(sources) < 2:
        raise InputError(
            f"there is one source, {next(iter(sources), 'none')}; name several releases, or give --by origin"
        )
    for name, source in sources.items():
        if source.sample.seen < 2:
            raise InputError(
                f"the source {name} has {source.sample.seen} pairs left of {source.rows:,}, which is too few to train "
                "on; leave it out, or allow a larger --max-length"
            )
    for name, source in sources.items():
        done = trials.run(work, name, write_sample(source.sample.table(), work, name))
        yield Part("", name, source.rows, source.sample.seen, None, None, done)


def _draw(name: str, rows: ReleaseRows, config: SourcesConfig, sources: dict[str, _Source], *, several: bool) -> None:
    """Draw a sample of a release, or of each of its origins."""
    columns = [*COLUMNS, "origin"] if config.by == "origin" else COLUMNS
    with Progress(f"read {name}", rows.rows, unit="pairs") as progress:
        for place, table in rows.tables(columns):
            if config.by == "release":
                sources.setdefault(name, _Source(config)).add(table)
            else:
                column = pc.fill_null(table["origin"].cast(pa.string()), "no origin")
                for origin in pc.unique(column).to_pylist():
                    label = f"{name}: {origin}" if several else origin
                    sources.setdefault(label, _Source(config)).add(table.filter(pc.equal(column, origin)))
                _check_number(sources, config)
            progress.advance_to(place + table.num_rows)


def _check_number(sources: dict[str, _Source], config: SourcesConfig) -> None:
    if len(sources) > MAX_ORIGINS:
        raise InputError(
            f"there are more than {MAX_ORIGINS} origins, such as {next(iter(sources))!r}; select a few first"
        )
    if sum(source.sample.held for source in sources.values()) > MAX_PAIRS:
        raise InputError(
            f"samples of {config.sample:,} pairs of {len(sources)} origins are more than the {MAX_PAIRS:,} pairs that "
            "are kept in memory; take smaller ones (--sample)"
        )


def _rows(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    models = [trial.model for trial in outcome.parts[0].trials]
    rows = [
        [
            part.name,
            f"{part.rows:,}",
            f"{part.pairs:,}",
            *(percent(trial.pearson) for trial in part.trials),
            percent(part.mean),
        ]
        for part in outcome.parts
    ]
    return ["source", "rows", "pairs", *models, "mean"], rows


def table_of(outcome: Outcome) -> str:
    """Write table 4 for a terminal: Pearson's r times 100 by source and model."""
    return text_table(*_rows(outcome))


def _write(outcome: Outcome, folder: Path) -> None:
    said = "Pearson's r times 100 on the development set, by what the models learned from."
    (folder / TABLE).write_text(f"{said}\n\n{markdown_table(*_rows(outcome))}\n", encoding="utf8")
