"""What training writes down beside a model, its `training.json`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.training.history import History
from paranmt_hf.util.records import from_json, read_json, to_json

TRAINING_FILE = "training.json"
# What comes after training, and is left out of the file where nothing came.
LATER = ("mean_of", "rotated", "basis")


@dataclass(frozen=True)
class AveragedModel:
    """A model that another was made of: its name, and the commit or checksum of its files."""

    name: str
    revision: str


@dataclass(frozen=True)
class Rotation:
    """How the dimensions of a model were ordered after its training.

    Attributes:
        model: The model of before.
        order: `even` or `principal`.
        dimension: So many of the first dimensions were kept; None for all.
        each_part: Whether each table of a concatenation was rotated by itself.
    """

    model: AveragedModel
    order: str
    dimension: int | None = None
    each_part: bool = False


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """The content of a model's `training.json`.

    Attributes:
        settings: The identity of the run, as JSON values: what determines its result, under `encoder`, `training`,
            `data` and `development`.
        inputs: Names of the models and files that the run began with, of which the settings hold checksums.
        pairs: Pairs in the training data.
        history: The course of the run.
        development: Pearson's r on the development set, in [-1, 1], if there was one.
        dimension: Size of a sentence vector.
        parameters: Number of weights.
        versions: Versions of the libraries that made it.
        machine: Kind of the processor, such as `x86_64`.
        paranmt_hf: Version of this package.
        mean_of: The models that this is the mean of; the rest is then the last one's.
        rotated: How its dimensions were ordered; the rest is then that of the model of before.
        basis: What its start had under `rotated`, whose dimensions it has too.
    """

    settings: dict[str, Any]
    inputs: dict[str, str] = field(default_factory=dict)
    pairs: int
    history: History
    development: float | None
    dimension: int
    parameters: int
    versions: dict[str, str]
    machine: str
    paranmt_hf: str
    mean_of: list[AveragedModel] | None = None
    rotated: Rotation | None = None
    basis: dict[str, Any] | None = None

    @classmethod
    def from_json(cls, values: Any, where: Path | str) -> TrainingRecord:  # noqa: ANN401
        """Read what `to_json` gave.

        Args:
            values: Parsed JSON.
            where: The file, for the error.

        Raises:
            InputError: A value is missing or of another type; those of the settings that a card shows count too.
        """
        record = from_json(cls, values, where)
        from_json(_Shown, values, where)
        known = {entry.name for entry in fields(EncoderConfig)}
        if others := sorted(
            {*record.settings["encoder"], *record.inputs} - known - {"teacher", "second_teacher", "text"}
        ):
            raise InputError(
                f"{where} names {others[0]!r}, which no encoder of this version has; use the version of paranmt-hf "
                "that it names, or train the model again"
            )
        return record

    def to_json(self) -> dict[str, Any]:
        """Give the record as JSON values."""
        values: dict[str, Any] = to_json(self)
        return {name: value for name, value in values.items() if value is not None or name not in LATER}

    def for_card(self) -> dict[str, Any]:
        """Give what a card shows: all but the course of loss and score, which belongs to the model's folder."""
        history = {name: getattr(self.history, name) for name in ("pairs", "seconds", "best_step")}
        return {**self.to_json(), "history": history}


def read_training(folder: Path) -> TrainingRecord:
    """Read what training wrote down of a model.

    Raises:
        InputError: The folder holds no such record, or a damaged one.
    """
    path = folder / TRAINING_FILE
    values = read_json(path, "the folder of an encoder made by `paranmt train`")
    return TrainingRecord.from_json(values, path)


# What a card reads of settings and course. These are checked, other settings may be anything.


@dataclass(frozen=True)
class _Encoder:
    model: str
    unknown: Literal["drop", "train", "share"] | None = None


@dataclass(frozen=True)
class _Training:
    batch_size: int
    mega_batch: int
    margin: float
    learning_rate: float
    seed: int
    teacher: str | None
    teacher_weight: float


@dataclass(frozen=True)
class _Release:
    release: str


@dataclass(frozen=True)
class _Dataset:
    dataset: str
    revision: str | None = None


@dataclass(frozen=True)
class _PhraseFile:
    name: str


@dataclass(frozen=True)
class _Phrases:
    kind: Literal["phrases"]
    files: list[_PhraseFile]


@dataclass(frozen=True)
class ShownData:
    """What cards read of the pairs that a model learned from, in its settings under `data`.

    Attributes:
        sources: Parquet files by their names, files of phrases, releases, or data sets on the Hub.
        unwanted_sentences: Sentences whose pairs were left out.
        ranges: Smallest and largest value of columns.
    """

    sources: list[list[str] | _Phrases | _Release | _Dataset]
    unwanted_sentences: int
    ranges: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Settings:
    encoder: _Encoder
    training: _Training
    data: ShownData
    development: str | None


@dataclass(frozen=True)
class _Course:
    pairs: int
    seconds: float
    best_step: int


@dataclass(frozen=True)
class _Shown:
    settings: _Settings
    history: _Course
