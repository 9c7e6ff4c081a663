"""What a supervised run writes down beside its model, `supervised.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from paranmt_hf.errors import InputError
from paranmt_hf.training.supervised.config import SuperviseConfig
from paranmt_hf.util.run import Record
from paranmt_hf.util.tables import percent, text_table


@dataclass(frozen=True)
class Epoch:
    """One pass over the training items: the mean loss of its steps, and what it reached on the development items."""

    loss: float
    development: float


@dataclass(frozen=True)
class SupervisedSettings:
    """What determines a model.

    Attributes:
        training: The task and how it is trained, resolved.
        encoder: The encoder before training: its settings, or the checksum of the one that it begins with.
        data: Checksum of the task's items.
    """

    training: SuperviseConfig
    encoder: dict[str, Any]
    data: str


@dataclass(frozen=True, kw_only=True)
class SupervisedRecord(Record):
    """The content of `supervised.json`.

    Attributes:
        settings: What determines the model.
        inputs: Names of the encoder or of the file of word vectors that it began with.
        items: Number of items of each part.
        figures: Figures of `dev` and `test`: `accuracy`, or of SICK-R `pearson`, `spearman` and `mse`.
        epochs: The course of the run.
        best_epoch: The epoch whose weights these are, from 1.
        dimension: Size of a sentence vector.
        parameters: Number of weights that were trained, those of tables only where the task's sentences have rows.
        unknown: Share of the training sentences' units without a row of their own, in [0, 1].
        notes: Sentences that a reader of the figures must know.
    """

    FILE: ClassVar[str] = "supervised.json"
    KIND: ClassVar[str] = "a model for a task (`paranmt supervise`)"

    settings: SupervisedSettings
    inputs: dict[str, str]
    items: dict[str, int]
    figures: dict[str, dict[str, float]]
    epochs: list[Epoch]
    best_epoch: int
    dimension: int
    parameters: int
    unknown: float
    notes: list[str]

    def __post_init__(self) -> None:
        names = self.figures.get("test", {}).keys()
        if not names or any(part not in self.items or names - own.keys() for part, own in self.figures.items()):
            raise InputError("it has no 'figures.test', or a part lacks its number of 'items' or one of these figures")

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
