"""Figure 1 of PARAGRAM-PHRASE (arXiv:1511.08198): encoders by the number of training pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa

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
from paranmt_hf.util.markers import Range
from paranmt_hf.util.tables import percent

EPOCHS = 10


def paragram_figure1(
    release: str | Path,
    out: str | Path,
    models: ComparedModels,
    *,
    sizes: Annotated[tuple[int, ...], Range(at_least=2, at_most=MAX_SAMPLED)] = (),
    order: Literal["random", "given", "both"] = "both",
    sts: Sequence[str] = (),
) -> Comparison:
    """Compare numbers of training pairs (PARAGRAM-PHRASE, section 5.2.1, figure 1).

    The encoders are trained for 10 epochs unless `training` says otherwise.

    Args:
        release: A corpus.
        out: Folder of the outcome.
        models: The encoders.
        sizes: Numbers of pairs; one larger than the corpus is all of it. By default all pairs (at most 4 million),
            half of them, and so on until there are fewer than 10.
        order: Which pairs: sampled at random (a smaller sample is a part of a larger one), the first ones of the
            corpus, as PPDB has its best pairs first, or one after the other.
        sts: STS data that the encoders are measured on too, and the figure shows: the mean over the sets.
    """
    source, training = Source(release), Training(models, {"epochs": EPOCHS}, sts, "max_pairs")
    orders = ("given", "random") if order == "both" else (order,)
    settings = {"figure": 1, "files": source.checksums, "sizes": sizes, "order": order}

    def samples(work: Path) -> Iterator[ComparedSample]:
        largest = max(sizes, default=MAX_SAMPLED)
        part = training.sample(largest)
        first = read_pairs(source, part, largest)
        part.check("the corpus")
        wanted = sizes or halves(min(part.sample.seen, largest))
        for one in orders:
            pairs = part.sample.table() if one == "random" else first
            for size in sorted({min(size, part.sample.seen) for size in wanted}):
                trials = training.train(work, f"{one}-{size}", pairs.slice(0, size))
                yield part.compared(one, str(size), trials)

    measured = "mean over STS sets" if sts else "on the development set"
    axes: dict[str, Any] = {"xscale": "log", "xlabel": "training pairs", "ylabel": f"Pearson x 100, {measured}"}
    return compare_samples(out, {**settings, **training.identity}, samples, _write, _lines, **axes)


def halves(size: int) -> list[int]:
    """A number of pairs, halved until there are fewer than 10, but at least two."""
    found = [size]
    while found[-1] >= 10:
        found.append(found[-1] // 2)
    return found


def read_pairs(source: Source, part: SampledPart, largest: int) -> pa.Table:
    """Add the pairs of a corpus to a sample; returns the first ones, up to `largest` pairs."""
    first, taken = list[pa.Table](), 0
    for table in source.read("read"):
        pairs = part.add(table)
        if taken < largest:
            first.append(pairs.slice(0, largest - taken))
            taken += first[-1].num_rows
    return pa.concat_tables(first)


def _write(record: ComparisonRecord) -> list[str]:
    measured = record.samples[0].sts is not None
    rows = []
    for part in record.samples:
        sts = [*(percent(trial.sts) for trial in part.trials), percent(part.sts)] if measured else []
        rows.append([f"{part.pairs:,}", part.group, *sts, *part.cells])
    header = ["pairs", "order", *(f"STS {name}" for name in [*record.models, "mean"] if measured)]
    said = "Pearson's r times 100 on the development set, by the number of training pairs."
    return [f"{said} STS: mean over the STS sets." if measured else said, record.table(header, rows)]


def _lines(record: ComparisonRecord) -> list[Line]:
    """A line for each encoder and order: the mean over the STS sets if they were measured."""
    orders = list(dict.fromkeys(part.group for part in record.samples))
    lines = []
    for number, model in enumerate(record.models):
        for order in orders:
            trials = [part.trials[number] for part in record.samples if part.group == order]
            values = [each.pearson if each.sts is None else each.sts for each in trials]
            intervals = [each.interval for each in trials] if trials[0].sts is None else None
            label = model if len(orders) == 1 else f"{model}, {order}"
            style = "--" if order == "given" else "-"
            lines.append(Line(label, [each.pairs for each in trials], values, intervals, style))
    return lines
