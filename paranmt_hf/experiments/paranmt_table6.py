"""Table 6 of ParaNMT-50M: the same encoders trained with mega-batches of several sizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from paranmt_hf.experiments import outcome
from paranmt_hf.experiments.outcome import MAX_SAMPLED, ComparedSample, Comparison, SampledPart
from paranmt_hf.experiments.trials import ComparedModels
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.settings import Count, Range


def paranmt_table6(
    release: str | Path,
    out: str | Path,
    models: ComparedModels,
    *,
    mega_batches: tuple[Count, ...] = (1, 20, 40),
    sample: Annotated[int, Range(at_least=2, at_most=MAX_SAMPLED)] = MAX_SAMPLED,
    max_length: Count | None = None,
    epochs: Count = 5,
) -> Comparison:
    """Compare sizes of mega-batches (ParaNMT-50M, section 5.5, table 6).

    Args:
        release: A release.
        out: Folder of the outcome.
        models: The encoders.
        mega_batches: Sizes M of a mega-batch, in mini-batches.
        sample: Number of training pairs, sampled at random.
        max_length: Maximum number of word tokens on either side.
        epochs: Passes over the pairs.
    """
    rows = outcome.rows_of(release)
    settings = {"sample": sample, "max_length": max_length}
    identity = {"table": 6, "files": outcome.files_of(release), "mega_batches": mega_batches, **settings}

    def samples(work: Path) -> Iterator[ComparedSample]:
        whole = SampledPart(sample, max_length)
        with Progress("read", rows.rows, unit="pairs") as progress:
            for place, table in rows.tables(outcome.SENTENCES):
                whole.add(table)
                progress.advance_to(place + table.num_rows)
        whole.check("the release")
        pairs = whole.sample.table()
        for size in mega_batches:
            trials = models.train(work, f"M-{size}", pairs, epochs=epochs, mega_batch=size)
            yield whole.compared("M", str(size), trials)

    return outcome.compare(out, {**identity, **models.identity(epochs=epochs)}, samples, _write)


def _write(record: outcome.ComparisonRecord) -> list[str]:
    rows = [[part.name, f"{part.pairs:,}", *part.cells] for part in record.samples]
    said = "Pearson's r times 100 on the development set, by the size M of a mega-batch."
    return [said, outcome.model_table(record, ["M", "pairs"], rows)]
