"""The items of supervised tasks, from SentEval's folders or the STS benchmark, and the figures of predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from paranmt_hf.errors import DivergedError, InputError, refuse
from paranmt_hf.evaluation.correlation import pearson, spearman
from paranmt_hf.evaluation.sts_data import benchmark_folder, read_benchmark
from paranmt_hf.evaluation.transfer_data import JUDGEMENTS, TaskPart, TransferTask, read_tasks

# The subset of the STS benchmark that each of its tasks uses, in all three parts (ParaNMT-50M, table 16); None for
# all.
BENCHMARK: Mapping[str, str | None] = {
    "STSB": None,
    "STSB-captions": "captions",
    "STSB-no-captions": "no captions",
}
# The score that each class of a similarity task stands for. A prediction is the expectation of these scores.
VALUES: Mapping[str, Sequence[int]] = {"SICK-R": range(1, 6), **dict.fromkeys(BENCHMARK, range(6))}
CLASSES: Mapping[str, Sequence[str]] = {
    **{task: list(map(str, values)) for task, values in VALUES.items()},
    "SICK-E": JUDGEMENTS,
    "SST2": ("negative", "positive"),
    "SST5": ("very negative", "negative", "neutral", "positive", "very positive"),
}


def read_task(folder: str | Path, name: str) -> TransferTask:
    """Read the items of a task.

    Args:
        folder: A folder in SentEval's layout; of the STS benchmark that with its files, or one that holds it as
            `STSBenchmark`.
        name: The task.
    """
    if name not in BENCHMARK:
        return read_tasks(folder, [name])[0][0]
    folder = benchmark_folder(folder)
    subset = BENCHMARK[name]
    parts, files = {}, []
    for split in ("train", "dev", "test"):
        pairs, path = read_benchmark(folder, split), folder / f"sts-{split}.csv"
        chosen = np.arange(len(pairs.gold))
        if subset is not None:
            missing = subset not in pairs.subsets
            refuse(missing, f"{path} has no {subset}, by the genres in its first column", path=path)
            chosen = pairs.subsets[subset].nonzero()[0]
        sides = ([pairs.left[row] for row in chosen], [pairs.right[row] for row in chosen])
        parts[split] = TaskPart(sides, pairs.gold[chosen])
        files.append(path)
    return TransferTask(name, "relatedness", parts, tuple(files))


def measure_of(task: str) -> str:
    """Return the name of the figure that decides between models for a task."""
    return "pearson" if task in VALUES else "accuracy"


def figures_of(task: str, shares: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Compute the figures of predictions for a task, by name; `measure_of` names the main one.

    Args:
        task: Name of the task.
        shares: Probability of each class [item, class].
        labels: Score or class of each item [item].

    Raises:
        DivergedError: A correlation cannot be computed, because training has diverged.
    """
    if task not in VALUES:
        return {"accuracy": float(np.mean(shares.argmax(axis=1) == labels))}
    scores = shares @ np.array(VALUES[task])
    try:
        return {
            "pearson": pearson(scores, labels),
            "spearman": spearman(scores, labels),
            "mse": float(np.mean((scores - labels) ** 2)),
        }
    except InputError as error:
        raise DivergedError(
            f"{task} (first: predictions, second: gold scores): {error}; lower `learning_rate`"
        ) from None
