"""Evaluate encoders on transfer tasks: ParaNMT-50M, table 14; Sent2Vec, table 1.

For each task a head, a simple classifier or regressor, is trained on sentence vectors in SentEval's protocol; the
encoder is not trained. The features of a sentence are its vector u, those of a pair of sentences |u - v| and u * v.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import pearson, spearman
from paranmt_hf.evaluation.finished_tasks import FinishedTasks
from paranmt_hf.evaluation.results import Results, Row, write_figure
from paranmt_hf.evaluation.similarities import pair_cosines, vectors_of
from paranmt_hf.evaluation.transfer_data import TaskPart, TransferTask, read_tasks
from paranmt_hf.evaluation.transfer_heads import (
    GRIDS,
    LabelledVectors,
    Tick,
    TransferConfig,
    check_folds,
    count_fits,
    train_relatedness,
    tuned_head,
)
from paranmt_hf.text.protocols import Encoder, fitted
from paranmt_hf.util.optional import versions
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.wording import counted
from paranmt_hf.version import __version__

logger = logging.getLogger(__name__)
# Averages of accuracies that papers print, with the tasks that each is over.
AVERAGES: Mapping[str, tuple[str, ...]] = {
    # Sent2Vec (arXiv:1703.02507), table 1.
    "Mean of 6": ("MR", "CR", "SUBJ", "MPQA", "TREC", "MRPC"),
    # Sentence-BERT, SimCSE and others.
    "Mean of 7": ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC"),
}
LIBRARIES = ("scikit-learn", "numpy", "torch")


def evaluate_transfer(
    encoder: Encoder,
    data: Path | str | Sequence[TransferTask],
    *,
    name: str | None = None,
    config: TransferConfig | None = None,
    left_out: Sequence[str] = (),
    finished: FinishedTasks | None = None,
) -> Results:
    """Evaluate an encoder on transfer tasks.

    Args:
        encoder: Anything with `encode(sentences)`, such as a `SentenceTransformer`.
        data: A folder with tasks in SentEval's layout, see `read_tasks`; or the tasks themselves.
        name: Name of the model in the results; by default the name of its class.
        config: Folds and seed.
        left_out: Names of tasks that are not evaluated because their files are missing, for the notes. If `data` is a
            folder, they are found there instead.
        finished: Where the results of finished tasks are kept and found again; by default they are not kept.
    """
    config = config or TransferConfig()
    if isinstance(data, str | Path):
        tasks, left_out = read_tasks(data)
    else:
        tasks = list(data)
    if not tasks:
        raise InputError("there is nothing to evaluate: expected at least one task")
    for task in tasks:
        # All tasks are checked before the first one is trained, whose result an error would lose.
        if task.way != "relatedness":
            items = task.parts["all" if task.way == "nested" else "train"]
            check_folds(items.labels, 1 if task.way == "dev" else config.folds, task.name, nested=task.way == "nested")
    name = name or type(encoder).__name__
    store = _VectorStore(encoder, name, scaled=config.scaled)
    finished = finished or FinishedTasks()
    rows: list[Row] = []
    for task in tasks:
        row = finished.read(task.name, task.checksum)
        if row is None:
            row = _evaluate_task(task, store, config)
            finished.write(row, task.checksum)
        rows.append(row)
        logger.info(f"{name}, {task.name}: {write_figure('accuracy', row.main)}")
    return Results(
        kind="transfer",
        model=name,
        tables={"Task": rows, "Mean": averages(rows)},
        data={task.name: task.checksum for task in tasks},
        settings={"dimension": rows[-1].details["dimension"], **config.describe()},
        versions={"paranmt-hf": __version__, **versions(LIBRARIES)},
        notes=[*_notes(tasks, rows, config, left_out), *getattr(encoder, "notes", ())],
    )


def _notes(
    tasks: Sequence[TransferTask], rows: Sequence[Row], config: TransferConfig, left_out: Sequence[str]
) -> list[str]:
    """Return the sentences that a reader of the scores must know, on files, penalties and unusual vectors."""
    notes: list[str] = []
    edges = []
    for task, row in zip(tasks, rows, strict=True):
        notes += task.notes
        chosen = row.details["penalties"]
        # Most tests of the task chose the weakest penalty.
        if task.way != "relatedness" and 2 * chosen.count(max(GRIDS[task.way])) > len(chosen):
            edges.append(task.name)
    if edges:
        advice = "" if config.scaled else ", which means that vectors are short for it: evaluate them scaled"
        notes.append(f"Of {', '.join(edges)} the largest C of the grid was chosen{advice}.")
    if left_out:
        notes.append(f"Left out, because the files are not there: {', '.join(left_out)}.")
    zeros = sum(row.details["zero_vectors"] for row in rows)
    if zeros:
        notes.append(f"{counted(zeros, 'sentence has', 'sentences have')} a vector of zeros.")
    return notes


def averages(rows: Sequence[Row]) -> list[Row]:
    """Compute those of the `AVERAGES` whose tasks all have a row."""
    figures = {row.name: row.main for row in rows}
    means = []
    for title, parts in AVERAGES.items():
        if set(parts) <= figures.keys():
            means.append(Row(name=title, values={"mean": sum(map(figures.__getitem__, parts)) / len(parts)}))
    return means


class _VectorStore:
    """The vectors of the sentences of one task; each distinct sentence is encoded once.

    The vectors stay for a next task with the same sentences, such as the second task of SICK. `vectors` are the
    vectors [sentence, dimension], float32.
    """

    def __init__(self, encoder: Encoder, name: str, *, scaled: bool = False) -> None:
        self._encoder, self._name, self._scaled = encoder, name, scaled
        self._rows: dict[str, int] = {}
        self.vectors = np.empty((0, 0), np.float32)

    def encode(self, task: TransferTask) -> None:
        """Encode the sentences of a task, unless they are the same as those of the previous task."""
        sentences = dict.fromkeys(task.sentences)
        if sentences.keys() == self._rows.keys():
            return
        self._rows = dict(zip(sentences, range(len(sentences)), strict=True))
        texts, blocks = list(sentences), []
        encoder = fitted(self._encoder, texts)
        with Progress(f"{self._name}, {task.name}: encoding", len(texts)) as progress:
            for start in range(0, len(texts), 4096):
                block = texts[start : start + 4096]
                vectors = vectors_of(encoder, block, task.name).astype(np.float32, copy=False)
                if not (finite := np.isfinite(vectors).all(axis=1)).all():
                    raise InputError(
                        f"{task.name}: the vector of {block[int(np.argmin(finite))][:60]!r} is not finite, so the "
                        "model cannot be evaluated"
                    )
                blocks.append(vectors)
                progress.advance_to(start + len(block))
        self.vectors = np.concatenate(blocks)
        if self._scaled and self.vectors.any():
            self.vectors /= np.linalg.norm(self.vectors, axis=1).mean()

    def sides(self, part: TaskPart) -> list[np.ndarray]:
        """Return the indices into `vectors` of the sentences of each side of a part [item]."""
        return [np.array(list(map(self._rows.__getitem__, side)), np.int64) for side in part.sides]

    def features(self, part: TaskPart) -> LabelledVectors:
        """Return the features and labels of the items of a part."""
        first, *others = (self.vectors[rows] for rows in self.sides(part))
        if others:
            first = np.concatenate([np.abs(first - others[0]), first * others[0]], axis=1)
        return LabelledVectors(first, part.labels)


def _evaluate_task(task: TransferTask, store: _VectorStore, config: TransferConfig) -> Row:
    """Encode the sentences of a task, train and test its head, and return its scores."""
    from sklearn.exceptions import ConvergenceWarning

    store.encode(task)
    steps = count_fits(task.way, config)
    with Progress(f"{task.name}: training", steps, unit="steps") as progress, warnings.catch_warnings():
        # With vectors as they are, a head seldom converges within the steps that SentEval allows, so its warnings are
        # not shown.
        warnings.simplefilter("ignore", ConvergenceWarning)
        values, penalties = _train_and_test(task, store, config, lambda: progress.advance_to(progress.rows + 1))
    parts = {part: len(items) for part, items in task.parts.items()}
    details = {
        "parts": parts,
        "penalties": list(penalties),
        "zero_vectors": int((~store.vectors.any(axis=1)).sum()),
        "dimension": store.vectors.shape[1],
    }
    return Row(name=task.name, values=values, items=sum(parts.values()), details=details)


def _train_and_test(
    task: TransferTask, store: _VectorStore, config: TransferConfig, tick: Tick
) -> tuple[dict[str, float], Sequence[float]]:
    """Train and test the head of a task.

    Returns:
        Scores by measure, with `dev`, the score on the items that the head was chosen by; and the chosen penalties,
        none for relatedness.
    """
    features = {part: store.features(items) for part, items in task.parts.items()}
    if task.way == "relatedness":
        scores, dev = train_relatedness(features["train"], features["dev"], features["test"], config.seed, tick)
        gold = features["test"].labels
        # MTEB's score needs no training: the cosines of all pairs of train, dev and test.
        untrained = np.concatenate([pair_cosines(store.vectors, *store.sides(part)) for part in task.parts.values()])
        every = np.concatenate([part.labels for part in task.parts.values()])
        values = {
            "pearson": pearson(scores, gold),
            "dev": dev,
            "spearman": spearman(scores, gold),
            "mse": float(np.mean((scores - gold) ** 2)),
            "cosine_spearman": spearman(untrained, every),
        }
        return values, ()
    tuned = tuned_head(features, task.way, config, tick)
    values = {"accuracy": tuned.accuracy, "dev": tuned.dev}
    if task.name == "MRPC":
        from sklearn.metrics import f1_score

        values["f1"] = float(f1_score(features["test"].labels, tuned.predictions, zero_division=0))
    return values, tuned.penalties
