"""What training writes down of a paraphraser, `training.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.training.record import TRAINING_FILE, ShownData
from paranmt_hf.util.records import from_json, read_json, to_json


@dataclass(frozen=True)
class Measured:
    """Figures of held-out pairs.

    Attributes:
        step: After so many steps.
        loss: Mean cross-entropy of a target piece, natural logarithm, without label smoothing.
        perplexity: Its exponential.
        bleu: BLEU of the most probable pieces against the targets, from 0 to 100; None of trees and without sacrebleu.
        template_match: Share of the most probable trees that have the template asked for, from 0 to 1; None where
            targets are sentences.
    """

    step: int
    loss: float
    perplexity: float
    bleu: float | None
    template_match: float | None = None


@dataclass
class Course:
    """The course of a run.

    Attributes:
        losses: Step, and mean training loss since the entry before.
        measured: Figures of held-out pairs, in the order of the steps.
        steps: Steps so far.
        pairs: Pairs trained on.
        tokens: Target pieces trained on.
        seconds: Time spent, measuring included.
    """

    losses: list[tuple[int, float]] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    steps: int = 0
    pairs: int = 0
    tokens: int = 0
    seconds: float = 0.0

    @property
    def best(self) -> Measured | None:
        """The figures with the lowest loss, whose weights are kept."""
        return min(self.measured, key=lambda each: each.loss, default=None)


@dataclass(frozen=True)
class ParaphraserRecord:
    """The content of `training.json`.

    Attributes:
        settings: The identity of the run: what determines its result.
        inputs: Names, without their folders, of what it began with.
        pairs: Pairs of the training part.
        held_out: Pairs of the held-out part.
        too_long: Pairs that were left out because of their length.
        course: Loss and figures over the steps.
        model_type: Kind of the model, as transformers names it.
        parameters: Number of weights.
        pieces: Size of the vocabulary.
        versions: Versions of this package and of the libraries that made it.
        machine: Kind of the processor, such as `x86_64`.
        device: What it was trained on, `cpu` or `cuda`.
        kind: What the record is about.
    """

    settings: dict[str, Any]
    inputs: dict[str, str]
    pairs: int
    held_out: int
    too_long: int
    course: Course
    model_type: str
    parameters: int
    pieces: int
    versions: dict[str, str]
    machine: str
    device: str
    kind: Literal["paraphraser"] = "paraphraser"

    def to_json(self) -> dict[str, Any]:
        """Give the record as JSON values."""
        values: dict[str, Any] = to_json(self)
        return values


def read_paraphraser(folder: Path) -> ParaphraserRecord:
    """Read what training wrote down of a paraphraser.

    Raises:
        InputError: The folder holds no such record, or a damaged one.
    """
    path = folder / TRAINING_FILE
    values = read_json(path, "the folder of a model made by `paranmt train-paraphraser`")
    if isinstance(values, dict) and values.get("kind") != "paraphraser":
        raise InputError(f"{path} is that of another kind of model; expected one made by `paranmt train-paraphraser`")
    record = from_json(ParaphraserRecord, values, path)
    from_json(Shown, values, path)
    return record


# What a card reads of settings and inputs. These are checked, other settings may be anything.


@dataclass(frozen=True)
class ShownTraining:
    """What cards read of how a paraphraser was trained, by the names of `ParaphraserTraining`."""

    direction: Literal["to-reference", "to-translation", "both"]
    learning_rate: float
    label_smoothing: float
    seed: int


@dataclass(frozen=True)
class ShownInputs:
    """What cards read of the inputs: names of what the pairs are from, between commas."""

    data: str


@dataclass(frozen=True)
class ShownSettings:
    """What cards read of the settings."""

    paraphraser: dict[str, Any]
    training: ShownTraining
    data: ShownData


@dataclass(frozen=True)
class Shown:
    """What cards read of the whole record."""

    settings: ShownSettings
    inputs: ShownInputs
