"""The items of supervised tasks: those of SentEval's folders, and the STS benchmark with its training part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.pair_set import StsSet
from paranmt_hf.evaluation.sts_data import read_benchmark
from paranmt_hf.evaluation.transfer_data import JUDGEMENTS, TaskPart, TransferTask, read_tasks

# The subset of the STS benchmark that a task has (ParaNMT-50M, table 16); its other parts are filtered too.
BENCHMARK: Mapping[str, str | None] = {
    "STSB": None,
    "STSB-captions": "captions",
    "STSB-no-captions": "no captions",
}
# What the classes of a similarity task count as; a score is their expectation.
VALUES: Mapping[str, Sequence[int]] = {"SICK-R": range(1, 6), **dict.fromkeys(BENCHMARK, range(6))}
CLASSES: Mapping[str, Sequence[str]] = {
    **{task: list(map(str, values)) for task, values in VALUES.items()},
    "SICK-E": JUDGEMENTS,
    "SST2": ("negative", "positive"),
    "SST5": ("very negative", "negative", "neutral", "positive", "very positive"),
}


def measure_of(task: str) -> str:
    """Name of the figure of a task that decides between models."""
    return "pearson" if task in VALUES else "accuracy"


def read_task(folder: str | Path, name: str) -> TransferTask:
    """Read the items of a task.

    Args:
        folder: A folder in SentEval's layout; of the STS benchmark that with its files, or one that holds it as
            `STSBenchmark`.
        name: The task.
    """
    if name not in BENCHMARK:
        (task,), _ = read_tasks(folder, [name])
        return task
    place = Path(folder).expanduser()
    if (place / "STSBenchmark").is_dir():
        place /= "STSBenchmark"
    parts, files = {}, []
    for split in ("train", "dev", "test"):
        files.append(place / f"sts-{split}.csv")
        parts[split] = _part(read_benchmark(place, split), BENCHMARK[name], files[-1])
    return TransferTask(name, "relatedness", parts, tuple(files))


def _part(pairs: StsSet, subset: str | None, path: Path) -> TaskPart:
    if subset is None:
        return TaskPart((pairs.left, pairs.right), pairs.gold)
    if subset not in pairs.subsets:
        raise InputError(f"{path} has no {subset}, by the genres in its first column; get the file again", path=path)
    chosen = pairs.subsets[subset].nonzero()[0]
    return TaskPart(([pairs.left[row] for row in chosen], [pairs.right[row] for row in chosen]), pairs.gold[chosen])
