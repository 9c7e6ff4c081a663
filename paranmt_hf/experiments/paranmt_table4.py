"""Table 4 of ParaNMT-50M: the same encoders trained on samples of several sources of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.sampling import MAX_ORIGINS
from paranmt_hf.corpus.selection.run_filters import ReleaseRows
from paranmt_hf.errors import InputError
from paranmt_hf.experiments import outcome
from paranmt_hf.experiments.outcome import MAX_SAMPLED, ComparedSample, Comparison, SampledPart
from paranmt_hf.experiments.trials import ComparedModels
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.settings import Count, Range


def paranmt_table4(
    releases: Sequence[str | Path],
    out: str | Path,
    models: ComparedModels,
    *,
    by: Literal["release", "origin"] = "release",
    sample: Annotated[int, Range(at_least=2, at_most=MAX_SAMPLED)] = 100_000,
    max_length: Count | None = None,
    epochs: Count = 5,
) -> Comparison:
    """Compare sources of text by encoders trained on a sample of each (ParaNMT-50M, table 4).

    A source with fewer pairs than the sample gives all of them; the table says how many.

    Args:
        releases: Releases.
        out: Folder of the outcome.
        models: The encoders.
        by: What a source is: each release, or each origin in the column `origin`.
        sample: Number of pairs of each source, sampled at random.
        max_length: Maximum number of word tokens on either side.
        epochs: Passes over each sample.
    """
    names = [Path(release).resolve().name for release in releases]
    if len(set(names)) != len(names):
        raise InputError(f"sources are distinguished by the names of their folders, which are {', '.join(names)}")
    rows = {name: outcome.rows_of(release) for name, release in zip(names, releases, strict=True)}
    for name, found in rows.items():
        if by == "origin" and "origin" not in found.schema.names:
            raise InputError(f"{name} has no column origin; import it with --columns origin=NAME, or leave out `by`")
    files = {name: outcome.files_of(release) for name, release in zip(names, releases, strict=True)}
    settings = {"sources": files, "by": by, "sample": sample, "max_length": max_length}

    def samples(work: Path) -> Iterator[ComparedSample]:
        sources: dict[str, SampledPart] = {}
        for name, found in rows.items():
            for label, table in _tables(name, found, by, several=len(rows) > 1):
                sources.setdefault(label, SampledPart(sample, max_length)).add(table)
                _check_number(sources)
        if len(sources) < 2:
            raise InputError(f"there is one source, {next(iter(sources), 'empty')}; name several releases, or origins")
        for name, source in sources.items():
            source.check(f"the source {name}")
        for name, source in sources.items():
            yield source.compared("", name, models.train(work, name, source.sample.table(), epochs=epochs))

    return outcome.compare(out, {"table": 4, **settings, **models.identity(epochs=epochs)}, samples, _write)


def _tables(name: str, rows: ReleaseRows, by: str, *, several: bool) -> Iterator[tuple[str, pa.Table]]:
    """Read the rows of a release, with the name of their source."""
    with Progress(f"read {name}", rows.rows, unit="pairs") as progress:
        for place, table in rows.tables([*outcome.SENTENCES, *(["origin"] if by == "origin" else [])]):
            if by == "release":
                yield name, table
            else:
                column = pc.fill_null(table["origin"].cast(pa.string()), "no origin")
                for origin in pc.unique(column).to_pylist():
                    yield f"{name}: {origin}" if several else origin, table.filter(pc.equal(column, origin))
            progress.advance_to(place + table.num_rows)


def _check_number(sources: dict[str, SampledPart]) -> None:
    if len(sources) > MAX_ORIGINS:
        raise InputError(f"there are more than {MAX_ORIGINS} origins, such as {next(iter(sources))!r}; select a few")
    if sum(source.sample.held for source in sources.values()) > MAX_SAMPLED:
        raise InputError(f"sample must be smaller: {len(sources)} of them have more than {MAX_SAMPLED:,} pairs")


def _write(record: outcome.ComparisonRecord) -> list[str]:
    rows = [[part.name, f"{part.rows:,}", f"{part.pairs:,}", *part.cells] for part in record.samples]
    said = "Pearson's r times 100 on the development set, by the source that the encoders are trained on."
    return [said, outcome.model_table(record, ["source", "rows", "pairs"], rows)]
