"""Tables 4, 5 and 6 of ParaNMT-50M: the same encoders trained on several samples, or with several mega-batches.

Table 4 compares sources of text, table 5 tenths of a corpus by several scores, table 6 sizes of a mega-batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.sampling import MAX_ORIGINS
from paranmt_hf.corpus.schema import COLUMNS
from paranmt_hf.corpus.selection.filters import numbers, parts_by_rank
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
from paranmt_hf.experiments.pictures import Line
from paranmt_hf.util.files import source_name
from paranmt_hf.util.settings import Count, PythonOnly
from paranmt_hf.util.tables import markdown_table, percent

FOLDS = 10
SCORES = ("translation_score", "trigram_overlap", "para_score")


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
        releases: Releases.
        out: Folder of the outcome.
        models: The encoders.
        by: What a source is: each release, or each origin in the column `origin`.
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
            raise InputError(f"there is one source, {next(iter(parts), 'empty')}; name several releases, or origins")
        for name, part in parts.items():
            part.check(f"the source {name}")
        for name, part in parts.items():
            yield part.compared("", name, training.train(work, name, part.sample.table()))

    return compare_samples(out, {**settings, **training.identity}, samples, _write_table4)


def _tables(name: str, source: Source, by: str, *, several: bool) -> Iterator[tuple[str, pa.Table]]:
    """Read the rows of a release, with the name of their source."""
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


def _write_table4(record: ComparisonRecord) -> list[str]:
    rows = [[part.name, f"{part.rows:,}", f"{part.pairs:,}", *part.cells] for part in record.samples]
    said = "Pearson's r times 100 on the development set, by the source that the encoders are trained on."
    return [said, record.table(["source", "rows", "pairs"], rows)]


def paranmt_table5(
    release: str | Path, out: str | Path, models: ComparedModels, *, scores: tuple[str, ...] = SCORES
) -> Comparison:
    """Compare tenths of a corpus by encoders trained on a sample of each (ParaNMT-50M, section 5.4, table 5).

    All rows are ranked by a score and cut into ten folds of equal size, of which fold 1 has the lowest scores; rows of
    equal score are ranked by their ids, and rows without a score have no rank. One million pairs of each fold train
    the encoders for one epoch, unless `training` says otherwise; its `max_length` applies after the ranking.

    Args:
        release: A release.
        out: Folder of the outcome.
        models: The encoders.
        scores: Columns by which the rows are ranked, one after the other.
    """
    source = Source(release)
    _check_scores(source, scores)
    training = Training(models, {"epochs": 1, "max_pairs": 1_000_000})
    identity = {"table": 5, "files": source.checksums, "scores": scores, **training.identity}

    def samples(work: Path) -> Iterator[ComparedSample]:
        together = training.samples_in_memory(FOLDS)
        for score in scores:
            ranks = folds_by_rank(source, score, FOLDS)
            for first in range(1, FOLDS + 1, together):
                folds = {number: training.sample() for number in range(first, min(first + together, FOLDS + 1))}
                sample_folds(source, score, ranks, folds)
                for number, fold in folds.items():
                    fold.check(f"fold {number} by {score}")
                for number, fold in folds.items():
                    trials = training.train(work, f"{score}-{number}", fold.sample.table())
                    yield fold.compared(score, str(number), trials)

    axes = {"xlabel": "fold, from the lowest scores to the highest", "ylabel": "Pearson x 100, mean of the encoders"}
    return compare_samples(out, identity, samples, _write_table5, _lines, **axes)


def _check_scores(source: Source, scores: tuple[str, ...]) -> None:
    commands = {column.name: column.command for column in COLUMNS}
    for score in scores:
        if score not in source.schema.names:
            made = f"`{commands[score]}` makes it" if score in commands else f"it has {', '.join(source.schema.names)}"
            raise InputError(f"{source.folder} has no column {score} to rank its rows by; {made}", option="scores")
        if not (pa.types.is_integer(kind := source.schema.field(score).type) or pa.types.is_floating(kind)):
            raise InputError(f"the column {score} of {source.folder} must hold numbers, not {kind}", option="scores")


def folds_by_rank(source: Source, score: str, folds: int) -> np.ndarray:
    """Fold, from 1, of each row that has a score [row]."""
    scored = (numbers(table[score]) for _, table in source.tables([score]))
    return parts_by_rank(np.concatenate([values[known] for values, known in scored]), folds)


def sample_folds(source: Source, score: str, ranks: np.ndarray, folds: Mapping[int, SampledPart]) -> None:
    """Add each row to the sample of its fold, if that is one of the given ones, by number from 1."""
    seen = 0
    for table in source.read(f"folds by {score}", score):
        values, known = numbers(table[score])
        scored, values = table.filter(pa.array(known)), values[known]
        parts = ranks[seen : (seen := seen + len(values))]
        for number, fold in folds.items():
            inside = parts == number
            fold.add(scored.filter(pa.array(inside)), values[inside])


def _write_table5(record: ComparisonRecord) -> list[str]:
    scores = list(dict.fromkeys(part.group for part in record.samples))
    means = {(part.group, part.name): percent(part.mean) for part in record.samples}
    rows = [[str(fold), *(means[score, str(fold)] for score in scores)] for fold in range(1, FOLDS + 1)]
    details = [
        [part.group, part.name, f"{part.low:.4f}", f"{part.high:.4f}"]
        + [f"{count:,}" for count in (part.rows, part.left, part.pairs)]
        + part.cells
        for part in record.samples
    ]
    said = "Pearson's r times 100 on the development set, mean of the encoders; fold 1 has the lowest scores."
    header = ["score", "fold", "from", "to", "rows", "left", "pairs"]
    return [said, markdown_table(["fold", *scores], rows), record.table(header, details)]


def _lines(record: ComparisonRecord) -> list[Line]:
    scores = dict.fromkeys(part.group for part in record.samples)
    means = {score: [100 * part.mean for part in record.samples if part.group == score] for score in scores}
    return [Line(score, range(1, FOLDS + 1), values) for score, values in means.items()]


def paranmt_table6(
    release: str | Path,
    out: str | Path,
    models: ComparedModels,
    *,
    mega_batches: Annotated[tuple[Count, ...], PythonOnly] = (1, 20, 40),
) -> Comparison:
    """Compare mega-batches of 1, 20 and 40 mini-batches (ParaNMT-50M, section 5.5, table 6).

    The encoders are trained for 5 epochs on the same pairs, unless `training` says otherwise.

    Args:
        release: A release.
        out: Folder of the outcome.
        models: The encoders.
        mega_batches: Sizes M of a mega-batch, in mini-batches.
    """
    source, training = Source(release), Training(models, {"epochs": 5}, compared="mega_batch")

    def samples(work: Path) -> Iterator[ComparedSample]:
        whole = training.sample()
        for table in source.read("read"):
            whole.add(table)
        whole.check("the release")
        pairs = whole.sample.table()
        for size in mega_batches:
            yield whole.compared("M", str(size), training.train(work, f"M-{size}", pairs, mega_batch=size))

    identity = {"table": 6, "files": source.checksums, "mega_batches": mega_batches, **training.identity}
    return compare_samples(out, identity, samples, _write_table6)


def _write_table6(record: ComparisonRecord) -> list[str]:
    rows = [[part.name, f"{part.pairs:,}", *part.cells] for part in record.samples]
    said = "Pearson's r times 100 on the development set, by the size M of a mega-batch."
    return [said, record.table(["M", "pairs"], rows)]
