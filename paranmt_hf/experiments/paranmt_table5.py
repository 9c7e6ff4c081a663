"""Table 5 of ParaNMT-50M: the best tenth of a corpus for training, by several scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.release.schema import COLUMNS
from paranmt_hf.corpus.selection.filters import numbers, parts_by_rank
from paranmt_hf.errors import InputError
from paranmt_hf.experiments.comparison import (
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
from paranmt_hf.util.tables import markdown_table, percent

FOLDS = 10
SCORES = ("translation_score", "trigram_overlap", "para_score")


def paranmt_table5(
    release: str | Path, out: str | Path, models: ComparedModels, *, scores: tuple[str, ...] = SCORES
) -> Comparison:
    """Compare tenths of a corpus by encoders trained on a sample of each (ParaNMT-50M, section 5.4, table 5).

    All rows are ranked by a score and cut into ten folds of equal size, of which fold 1 has the lowest scores; rows of
    equal score are ranked by their ids, and rows without a score have no rank. One million pairs of each fold train
    the encoders for one epoch, unless `training` says otherwise; its `max_length` applies after the ranking.

    Args:
        release: A corpus.
        out: Folder of the outcome.
        models: The encoders.
        scores: Columns by which the rows are ranked, one after the other.
    """
    source = Source(release)
    _check_scores(source, scores)
    training = Training(models, {"epochs": 1, "max_pairs": 1_000_000})
    identity = {"table": 5, "files": source.checksums, "scores": scores, **training.identity}

    def samples(work: Path) -> Iterator[ComparedSample]:
        together = training.samples_in_memory(FOLDS, source.rows)
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
    return compare_samples(out, identity, samples, _write, _lines, total=FOLDS * len(scores), **axes)


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


def _write(record: ComparisonRecord) -> list[str]:
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
    lines = []
    for score in dict.fromkeys(part.group for part in record.samples):
        parts = [part for part in record.samples if part.group == score]
        folds = range(1, FOLDS + 1)
        lines.append(Line(score, folds, [part.mean for part in parts], [part.interval for part in parts]))
    return lines
