"""Table 6 of ParaNMT-50M: the same encoders trained with mega-batches of several sizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from paranmt_hf.experiments.comparison import (
    ComparedModels,
    ComparedSample,
    Comparison,
    ComparisonRecord,
    Source,
    Training,
    compare_samples,
)
from paranmt_hf.util.markers import Count, PythonOnly


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
        release: A corpus.
        out: Folder of the outcome.
        models: The encoders.
        mega_batches: Sizes M of a mega-batch, in mini-batches.
    """
    source, training = Source(release), Training(models, {"epochs": 5}, compared="mega_batch")

    def samples(work: Path) -> Iterator[ComparedSample]:
        whole = training.sample()
        for table in source.read("read"):
            whole.add(table)
        whole.check("the corpus")
        pairs = whole.sample.table()
        for size in mega_batches:
            yield whole.compared("M", str(size), training.train(work, f"M-{size}", pairs, mega_batch=size))

    identity = {"table": 6, "files": source.checksums, "mega_batches": mega_batches, **training.identity}
    return compare_samples(out, identity, samples, _write, total=len(mega_batches))


def _write(record: ComparisonRecord) -> list[str]:
    rows = [[part.name, f"{part.pairs:,}", *part.cells] for part in record.samples]
    said = "Pearson's r times 100 on the development set, by the size M of a mega-batch."
    return [said, record.table(["M", "pairs"], rows)]
