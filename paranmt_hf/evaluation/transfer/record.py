"""What an evaluation on transfer tasks writes down: an entry of the file of `paranmt evaluate transfer --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.transfer.protocol import AVERAGES
from paranmt_hf.util.records import from_json, read_json, to_json
from paranmt_hf.util.tables import percent, write_table

_HEADER = ("Task", "Items", "Chosen by", "There", "Test", "Also")


@dataclass(frozen=True)
class TaskRecord:
    """The figures of one task.

    Attributes:
        name: Such as `MR`.
        items: Number of items of each part: `all`, or `train`, `dev` and `test`.
        measure: What `test` is: `accuracy`, or `pearson` of SICK-R.
        test: The task's figure, in [-1, 1].
        dev: The same on the items that the head was chosen by; the mean where there are several folds.
        others: Other figures on the test items: `f1` of MRPC; `spearman` and `mse` of SICK-R, and of its pairs without
            any training `cosine_spearman_all`, over train, dev and test, which is what MTEB calls SICK-R.
        penalties: The chosen inverse strengths C of the L2 penalty, one a fold where there are several.
        zero_vectors: Distinct sentences with a vector of zeros.
        checksum: SHA-256 of sentences and labels.
    """

    name: str
    items: dict[str, int]
    measure: Literal["accuracy", "pearson"]
    test: float
    dev: float
    others: dict[str, float]
    penalties: list[float]
    zero_vectors: int
    checksum: str


@dataclass(frozen=True)
class TransferRecord:
    """The figures of a model on transfer tasks, and which model and protocol that was.

    Attributes:
        model: Name of the model.
        dimension: Length of its vectors.
        tasks: The results.
        left_out: Names of the tasks that were not there.
        averages: The averages that papers print, of accuracies, in [0, 1]; only those whose tasks are all there.
        protocol: How the heads were trained.
        versions: Versions of this package and of those that train.
        notes: Sentences that a reader of the numbers must know.
        weights: Checksum of the weights, of an encoder that was loaded.
        kind: Tells these records from those of other evaluations.
    """

    model: str
    dimension: int
    tasks: list[TaskRecord]
    left_out: list[str]
    averages: dict[str, float]
    protocol: dict[str, Any]
    versions: dict[str, str]
    notes: list[str]
    weights: str | None = None
    kind: Literal["transfer"] = "transfer"

    def task(self, name: str) -> TaskRecord:
        """Give the figures of a task.

        Raises:
            InputError: It was left out.
        """
        for task in self.tasks:
            if task.name == name:
                return task
        raise InputError(f"{self.model} has no result on {name}")

    def to_json(self) -> dict[str, Any]:
        """Give the record as JSON values."""
        values: dict[str, Any] = to_json(self)
        return values

    def text(self) -> str:
        """Write the tasks as a table for a terminal, figures times 100 as in the papers."""
        return self._table("text")

    def markdown(self) -> str:
        """Write the tasks as a table in Markdown, figures times 100 as in the papers."""
        return self._table("markdown")

    def _table(self, style: Literal["text", "markdown"]) -> str:
        table = write_table(_HEADER, [_row(task) for task in self.tasks], style)
        sentences = list(self.notes)
        if self.left_out:
            sentences.append(f"Left out, because the files are not there: {', '.join(self.left_out)}.")
        if zeros := sum(task.zero_vectors for task in self.tasks):
            sentences.append(f"{zeros:,} sentences have a vector of zeros.")
        return "\n\n".join([table, *(["\n".join(sentences)] if sentences else [])])


def read_transfer_results(path: Path) -> list[TransferRecord]:
    """Read a file of results on transfer tasks.

    Raises:
        InputError: It cannot be read, or is damaged.
    """
    values = read_json(path, "what `paranmt evaluate transfer --json` wrote")
    return from_json(list[TransferRecord], values, path)


def averages(tasks: Sequence[TaskRecord]) -> dict[str, float]:
    """Compute the averages of which all tasks are there."""
    figures = {task.name: task.test for task in tasks}
    return {
        name: sum(figures[part] for part in parts) / len(parts)
        for name, parts in AVERAGES.items()
        if set(parts) <= figures.keys()
    }


def compare_transfer(records: Sequence[TransferRecord], *, style: Literal["markdown", "text"] = "text") -> str:
    """Write one table of several models, a row each, as table 14 of ParaNMT-50M; times 100.

    Accuracies, of MRPC also F1, and Pearson's r of SICK-R.

    Raises:
        InputError: There is no record, or the models were evaluated on different data.
    """
    if not records:
        raise InputError("there are no results to compare")
    first = [(task.name, task.checksum) for task in records[0].tasks]
    for record in records[1:]:
        if [(task.name, task.checksum) for task in record.tasks] != first:
            raise InputError(
                f"{record.model} and {records[0].model} were evaluated on different data; evaluate both on the same"
            )
    header = ("Model", *(name for name, _ in first), *records[0].averages)
    rows = [
        (
            record.model,
            *("/".join(map(percent, [task.test, *_f1(task)])) for task in record.tasks),
            *map(percent, record.averages.values()),
        )
        for record in records
    ]
    table = write_table(header, rows, style)
    missing = [
        f"{name}, which needs {', '.join(part for part in parts if part not in dict(first))} too"
        for name, parts in AVERAGES.items()
        if name not in records[0].averages
    ]
    return f"{table}\n\nNot printed: {'; '.join(missing)}." if missing else table


def _f1(task: TaskRecord) -> list[float]:
    return [task.others["f1"]] if "f1" in task.others else []


def _row(task: TaskRecord) -> tuple[str, ...]:
    items = " + ".join(f"{count:,}" for count in task.items.values())
    by = "dev pairs" if task.measure == "pearson" else "dev items" if "dev" in task.items else "cross-validation"
    others = [f"{name.replace('_', ' ')} {_figure(name, value)}" for name, value in task.others.items()]
    return task.name, items, by, percent(task.dev), percent(task.test), ", ".join(others)


def _figure(name: str, value: float) -> str:
    return f"{value:.3f}" if name == "mse" else percent(value)
