"""Figure 1 of PARAGRAM-PHRASE (arXiv:1511.08198): the same encoders trained on more and more pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import pyarrow as pa

from paranmt_hf.corpus.selection.run_filters import ReleaseRows
from paranmt_hf.experiments import outcome
from paranmt_hf.experiments.outcome import MAX_SAMPLED, ComparedSample, Comparison, Line, SampledPart
from paranmt_hf.experiments.trials import ComparedModels
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.settings import Count, Range
from paranmt_hf.util.tables import percent


def paragram_figure1(
    release: str | Path,
    out: str | Path,
    models: ComparedModels,
    *,
    sizes: Annotated[tuple[int, ...], Range(at_least=2, at_most=MAX_SAMPLED)] = (1_000, 10_000, 100_000),
    order: Literal["random", "given", "both"] = "random",
    max_length: Count | None = None,
    epochs: Count = 1,
    sts: Sequence[str] = (),
) -> Comparison:
    """Compare numbers of training pairs (PARAGRAM-PHRASE, section 6, figure 1).

    The paper halves the pairs down to fewer than 10 and trains for 10 epochs.

    Args:
        release: A release.
        out: Folder of the outcome.
        models: The encoders.
        sizes: Numbers of pairs; one larger than the corpus is all of it.
        order: Which pairs: sampled at random (a smaller sample is a part of a larger one), the first ones of the
            corpus, as PPDB has its best pairs first, or one after the other.
        max_length: Maximum number of word tokens on either side.
        epochs: Passes over the pairs of each size.
        sts: STS data that the encoders are measured on too, and the figure shows: the mean over the sets.
    """
    rows = outcome.rows_of(release)
    orders = ("given", "random") if order == "both" else (order,)
    settings = {"sizes": sizes, "order": order, "max_length": max_length}
    identity = {"figure": 1, "files": outcome.files_of(release), **settings, **models.identity(sts, epochs=epochs)}

    def samples(work: Path) -> Iterator[ComparedSample]:
        part, first = read_pairs(rows, max(sizes), max_length)
        part.check("the release")
        for one in orders:
            pairs = part.sample.table() if one == "random" else first
            for size in sorted({min(size, part.sample.seen) for size in sizes}):
                trials = models.train(work, f"{one}-{size}", pairs.slice(0, size), sts, epochs=epochs)
                yield part.compared(one, str(size), trials)

    measured = "mean over STS sets" if sts else "on the development set"
    axes = {"xscale": "log", "xlabel": "training pairs", "ylabel": f"Pearson x 100, {measured}"}
    return outcome.compare(out, identity, samples, _write, _lines, **axes)


def read_pairs(rows: ReleaseRows, largest: int, max_length: int | None) -> tuple[SampledPart, pa.Table]:
    """Sample the pairs of a release at random, and take the first ones; both up to `largest` pairs."""
    part, first, taken = SampledPart(largest, max_length), list[pa.Table](), 0
    with Progress("read", rows.rows, unit="pairs") as progress:
        for place, table in rows.tables(outcome.SENTENCES):
            pairs = part.add(table)
            if taken < largest:
                first.append(pairs.slice(0, largest - taken))
                taken += first[-1].num_rows
            progress.advance_to(place + table.num_rows)
    return part, pa.concat_tables(first)


def _write(record: outcome.ComparisonRecord) -> list[str]:
    measured = record.samples[0].sts is not None
    rows = []
    for part in record.samples:
        sts = [*(percent(trial.sts) for trial in part.trials), percent(part.sts)] if measured else []
        rows.append([f"{part.pairs:,}", part.group, *sts, *part.cells])
    header = ["pairs", "order", *(f"STS {name}" for name in [*record.models, "mean"] if measured)]
    said = "Pearson's r times 100 on the development set, by the number of training pairs."
    return [f"{said} STS: mean over the STS sets." if measured else said, outcome.model_table(record, header, rows)]


def _lines(record: outcome.ComparisonRecord) -> list[Line]:
    """A line for each encoder and order: the mean over the STS sets if they were measured."""
    orders = list(dict.fromkeys(part.group for part in record.samples))
    lines = []
    for number, model in enumerate(record.models):
        for order in orders:
            trials = [part.trials[number] for part in record.samples if part.group == order]
            values = [100 * float(each.pearson if each.sts is None else each.sts) for each in trials]
            label = model if len(orders) == 1 else f"{model}, {order}"
            lines.append(Line(label, [each.pairs for each in trials], values, "--" if order == "given" else "-"))
    return lines
