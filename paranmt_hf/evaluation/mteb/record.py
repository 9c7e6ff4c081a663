"""What an evaluation by `mteb` writes down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.util.records import from_json, to_json
from paranmt_hf.util.tables import percent, write_table


@dataclass(frozen=True)
class MtebScore:
    """The figure of a part of a task.

    Attributes:
        split: Such as `test`.
        subset: Such as `en-en`, or `default` where there is only one.
        score: The task's main figure, which papers report times 100.
    """

    split: str
    subset: str
    score: float


@dataclass(frozen=True)
class MtebTask:
    """The figures of one task.

    Attributes:
        name: Such as `STS12`.
        type: Such as `STS`.
        measure: What the figure is, by mteb's name: `cosine_spearman`.
        score: Mean of the parts.
        parts: The parts.
        seconds: Time that it took, data included.
        identity: What determined the result: `data` (a revision on the Hub, or `sha256:` of the files), `weights`,
            `settings` of the model (prompts, `truncate_dim`), `mteb` (its version), `subsets` (the parts).
        result: The result as mteb itself writes it.
    """

    name: str
    type: str
    measure: str
    score: float
    parts: list[MtebScore]
    seconds: float
    identity: dict[str, Any]
    result: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Give the record as JSON values."""
        values: dict[str, Any] = to_json(self)
        return values

    @classmethod
    def from_json(cls, values: Any, where: Any) -> MtebTask:  # noqa: ANN401
        """Read what `to_json` gave.

        Raises:
            InputError: A value is missing or of another type.
        """
        return from_json(cls, values, where)


@dataclass(frozen=True)
class MtebRecord:
    """The figures of a model on tasks of mteb, and which model that was.

    Attributes:
        model: Name of the model, as it was given.
        name: Name under which it would be submitted, `ORGANISATION/NAME`.
        weights: Checksum of the weights.
        tasks: The results.
        versions: Versions of this package, of mteb, and of what encodes.
        kind: Tells these records from those of other evaluations.
    """

    model: str
    name: str
    weights: str
    tasks: list[MtebTask]
    versions: dict[str, str]
    kind: Literal["mteb"] = "mteb"

    def to_json(self) -> dict[str, Any]:
        """Give the record as JSON values, without what mteb writes into files of its own."""
        values: dict[str, Any] = to_json(self)
        for task in values["tasks"]:
            del task["result"]
        return values


def read_task(task_type: str, measure: str, result: dict[str, Any], identity: dict[str, Any]) -> MtebTask:
    """Take the figures out of what mteb gave.

    Args:
        task_type: Such as `STS`.
        measure: The task's main figure by name.
        result: The result, as `run_task` gives it.
        identity: What determined it.

    Raises:
        InputError: A figure is no number, such as a correlation with figures that are all the same.
    """
    for split, entries in result["scores"].items():
        for entry in entries:
            # In JSON what is not finite is null.
            if entry["main_score"] is None or not math.isfinite(entry["main_score"]):
                where = f"split {split!r} ({entry['hf_subset']})"
                raise InputError(
                    f"the task {result['task_name']} gives no {measure} in the {where}, as where all similarities or "
                    "all scores are the same, or a score is no number; look at the data, and whether the model knows "
                    "their words"
                )
    parts = [
        MtebScore(split, str(entry["hf_subset"]), float(entry["main_score"]))
        for split, entries in result["scores"].items()
        for entry in entries
    ]
    score = sum(part.score for part in parts) / len(parts)
    seconds = float(result.get("evaluation_time") or 0)
    return MtebTask(result["task_name"], task_type, measure, score, parts, seconds, identity, result)


def compare_mteb(records: Sequence[MtebRecord], *, style: Literal["markdown", "text"] = "text") -> str:
    """Write one table of tasks and models, times 100, with the mean of each kind of task and of all tasks.

    Args:
        records: The results, each on the same tasks.
        style: Markdown, or columns for a terminal.
    """
    header = ("Task", "Kind", "Measure", *(record.model for record in records))
    rows = []
    for index, task in enumerate(records[0].tasks):
        columns = [record.tasks[index] for record in records]
        rows.append((task.name, task.type, task.measure, *(percent(each.score) for each in columns)))
        if len(task.parts) > 1:
            rows += [
                (f"  {part.subset} {part.split}", "", "", *(percent(each.parts[place].score) for each in columns))
                for place, part in enumerate(task.parts)
            ]
    kinds = list(dict.fromkeys(task.type for task in records[0].tasks))
    if len(records[0].tasks) > 1:
        if len(kinds) > 1:
            rows += [
                (f"mean of {kind}", "", "", *(percent(_mean(record, kind)) for record in records)) for kind in kinds
            ]
        rows.append(("mean of tasks", "", "", *(percent(_mean(record, None)) for record in records)))
    return write_table(header, rows, style)


def _mean(record: MtebRecord, kind: str | None) -> float:
    scores = [task.score for task in record.tasks if kind is None or task.type == kind]
    return sum(scores) / len(scores)
