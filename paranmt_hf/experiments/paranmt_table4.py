"""Table 4 of ParaNMT-50M: the same encoders trained on samples of several sources of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.statistics.sampling import MAX_ORIGINS
from paranmt_hf.errors import InputError
from paranmt_hf.experiments.comparison import (
    MAX_SAMPLED,
    ComparedModels,
    ComparedSample,
    Comparison,
    ComparisonRecord,
    SampledPart,
    Source,
    Training,
    compare_samples,
)
from paranmt_hf.util.files import source_name


def paranmt_table4(
    releases: Sequence[str | Path],
    out: str | Path,
    models: ComparedModels,
    *,
    by: Literal["release", "origin"] = "release",
) -> Comparison:
    """Compare sources of text by encoders trained on a sample of each (ParaNMT-50M, table 4).

    The encoders are trained for 5 epochs on 100,000 pairs of each source, unless `training` says otherwise. A source
    with fewer pairs gives all of them; the table says how many.

    Args:
        releases: Corpora.
        out: Folder of the outcome.
        models: The encoders.
        by: What a source is: each corpus, or each origin in the column `origin`.
    """
    names = [source_name(release) for release in releases]
    if len(set(names)) != len(names):
        raise InputError(f"sources are distinguished by the names of their folders, which are {', '.join(names)}")
    rows = {name: Source(release) for name, release in zip(names, releases, strict=True)}
    for name, source in rows.items():
        if by == "origin" and "origin" not in source.schema.names:
            raise InputError(f"{name} has no column origin; import it with `columns` origin=NAME, or leave out `by`")
    training = Training(models, {"epochs": 5, "max_pairs": 100_000})
    settings = {"table": 4, "sources": {name: source.checksums for name, source in rows.items()}, "by": by}

    def samples(work: Path) -> Iterator[ComparedSample]:
        parts: dict[str, SampledPart] = {}
        for name, source in rows.items():
            for label, table in _tables(name, source, by, several=len(rows) > 1):
                parts.setdefault(label, training.sample()).add(table)
                _check_number(parts)
        if len(parts) < 2:
            raise InputError(f"there is one source, {next(iter(parts), 'empty')}; name several corpora, or origins")
        for name, part in parts.items():
            part.check(f"the source {name}")
        for name, part in parts.items():
            yield part.compared("", name, training.train(work, name, part.sample.table()))

    return compare_samples(
        out, {**settings, **training.identity}, samples, _write, total=len(rows) if by == "release" else None
    )


def _tables(name: str, source: Source, by: str, *, several: bool) -> Iterator[tuple[str, pa.Table]]:
    """Read the rows of a corpus, with the name of their source."""
    for table in source.read(f"read {name}", *(["origin"] if by == "origin" else [])):
        if by == "release":
            yield name, table
        else:
            column = pc.fill_null(table["origin"].cast(pa.string()), "no origin")
            for origin in pc.unique(column).to_pylist():
                yield f"{name}: {origin}" if several else origin, table.filter(pc.equal(column, origin))


def _check_number(parts: dict[str, SampledPart]) -> None:
    if len(parts) > MAX_ORIGINS:
        raise InputError(f"there are more than {MAX_ORIGINS} origins, such as {next(iter(parts))!r}; select a few")
    if sum(part.sample.held for part in parts.values()) > MAX_SAMPLED:
        raise InputError(
            f"max_pairs of `training` must be smaller: {len(parts)} samples have more than {MAX_SAMPLED:,} pairs",
            option="training",
        )


def _write(record: ComparisonRecord) -> list[str]:
    rows = [[part.name, f"{part.rows:,}", f"{part.pairs:,}", *part.cells] for part in record.samples]
    said = "Pearson's r times 100 on the development set, by the source that the encoders are trained on."
    return [said, record.table(["source", "rows", "pairs"], rows)]
