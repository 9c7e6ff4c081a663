"""What a supervised run writes down beside its model, `supervised.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.util.records import from_json, read_json, to_json
from paranmt_hf.util.tables import percent, text_table

RECORD_FILE = "supervised.json"


@dataclass(frozen=True)
class Epoch:
    """One pass over the training items: the mean loss of its steps, and what it reached on the development items."""

    loss: float
    development: float


@dataclass(frozen=True)
class SupervisedRecord:
    """The content of `supervised.json`.

    Attributes:
        settings: The identity of the run, as JSON values: what determines its result.
        inputs: Names of the encoder or of the file of word vectors that it began with.
        items: Number of items of each part.
        figures: Figures of `dev` and `test`: `accuracy`, or of SICK-R `pearson`, `spearman` and `mse`.
        epochs: The course of the run.
        best_epoch: The epoch whose weights these are, from 1.
        dimension: Size of a sentence vector.
        parameters: Number of weights that were trained, those of tables only where the task's sentences have rows.
        unknown: Share of the training sentences' units without a row of their own, in [0, 1].
        notes: Sentences that a reader of the figures must know.
        versions: Versions of this package and of the libraries that made it.
        machine: Kind of the processor, such as `x86_64`.
    """

    settings: dict[str, Any]
    inputs: dict[str, str]
    items: dict[str, int]
    figures: dict[str, dict[str, float]]
    epochs: list[Epoch]
    best_epoch: int
    dimension: int
    parameters: int
    unknown: float
    notes: list[str]
    versions: dict[str, str]
    machine: str

    def __post_init__(self) -> None:
        names = self.figures.get("test", {}).keys()
        if not names or any(part not in self.items or names - own.keys() for part, own in self.figures.items()):
            raise InputError("it has no 'figures.test', or a part lacks its number of 'items' or one of these figures")

    def to_json(self) -> dict[str, Any]:
        """Give the record as JSON values."""
        values: dict[str, Any] = to_json(self)
        return values

    def text(self) -> str:
        """Write the figures as a table for a terminal; correlations and accuracies times 100, as in the paper."""
        names = list(self.figures["test"])
        rows = [
            (
                part,
                f"{self.items[part]:,}",
                *(f"{own[name]:.3f}" if name == "mse" else percent(own[name]) for name in names),
            )
            for part, own in self.figures.items()
        ]
        return "\n".join([text_table(("Part", "Items", *names), rows), *self.notes])


def read_supervised(folder: Path) -> SupervisedRecord:
    """Read what a supervised run wrote down of its model.

    Raises:
        InputError: The folder holds no such record, or a damaged one.
    """
    path = folder / RECORD_FILE
    return from_json(SupervisedRecord, read_json(path, "the folder of a model made by `paranmt supervise`"), path)
