"""What training Sent2Vec writes down beside a model, its `training.json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.training.history import History, thinned
from paranmt_hf.training.record import TRAINING_FILE
from paranmt_hf.training.sent2vec.config import Sent2VecConfig, given
from paranmt_hf.util.records import from_json, read_json, to_json

# What is in progress.
CHECKPOINT = "checkpoint.safetensors"


@dataclass
class Course:
    """The course of a run.

    Attributes:
        losses: Words read, and the mean loss of a target since the entry before.
        words: Words read.
        targets: Targets predicted.
        total: Sum of their losses.
        seconds: Time spent training.
    """

    losses: list[tuple[int, float]] = field(default_factory=list)
    words: int = 0
    targets: int = 0
    total: float = 0.0
    seconds: float = 0.0

    def add(self, words: int, targets: int, loss: float) -> None:
        """Note some words that were read, their targets and the sum of their losses."""
        self.words, self.targets, self.total = self.words + words, self.targets + targets, self.total + loss
        if targets:
            self.losses = thinned([*self.losses, (self.words, loss / targets)])

    @property
    def mean(self) -> float:
        """Mean loss of all targets, the figure that the authors' program shows."""
        return self.total / max(self.targets, 1)

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Course:
        """Read what `as_dict` gave."""
        return cls(**{**values, "losses": [(int(words), float(loss)) for words, loss in values["losses"]]})

    @property
    def history(self) -> History:
        """The course as it is drawn."""
        return History(losses=self.losses)


@dataclass(frozen=True, kw_only=True)
class Sent2VecRecord:
    """The content of the `training.json` of a model that was trained on sentences.

    Attributes:
        kind: Tells this record from that of a model trained on pairs.
        settings: The identity of the run, as JSON values, under `sent2vec` and `data`.
        sources: Names of what was read, without folders.
        datasets: Ids of data sets on the Hub among them.
        sentences: Sentences of two and more known words in the text.
        words: Words that have a row.
        ngrams: Buckets of n-grams that have a row.
        known: Known words of these sentences.
        course: The course of the run.
        dimension: Size of a sentence vector.
        parameters: Number of weights of the model; the output rows are not in it.
        versions: Versions of the libraries that made it.
        machine: Kind of the processor, such as `x86_64`.
        paranmt_hf: Version of this package.
    """

    kind: Literal["sent2vec"] = "sent2vec"
    settings: dict[str, Any]
    sources: list[str]
    datasets: list[str]
    sentences: int
    words: int
    ngrams: int
    known: int
    course: Course
    dimension: int
    parameters: int
    versions: dict[str, str]
    machine: str
    paranmt_hf: str

    @property
    def config(self) -> Sent2VecConfig:
        """The settings."""
        return given(self.settings["sent2vec"]).resolved()

    @classmethod
    def from_json(cls, values: Any, where: Path | str) -> Sent2VecRecord:  # noqa: ANN401
        """Read what `to_json` gave.

        Args:
            values: Parsed JSON.
            where: The file, for the error.
        """
        record = from_json(cls, values, where)
        try:
            _ = record.config
            named = all(isinstance(source.get("columns", {}), dict) for source in record.settings["data"])
        except (KeyError, TypeError, AttributeError, InputError) as error:
            raise InputError(f"{where} is damaged: its settings are none of Sent2Vec ({error})") from None
        if not named:
            raise InputError(f"{where} is damaged: its settings do not say which columns were read")
        return record

    def to_json(self) -> dict[str, Any]:
        """Give the record as JSON values."""
        values: dict[str, Any] = to_json(self)
        return values


def is_sent2vec(folder: Path) -> bool:
    """Tell whether the record in a folder is that of a model trained on sentences."""
    try:
        values = read_json(folder / TRAINING_FILE, "a record of training")
    except InputError:
        return False
    return isinstance(values, dict) and values.get("kind") == "sent2vec"


def read_sent2vec(folder: Path) -> Sent2VecRecord:
    """Read what training wrote down of a model."""
    path = folder / TRAINING_FILE
    values = read_json(path, "the folder of an encoder made by `paranmt train-sent2vec`")
    return Sent2VecRecord.from_json(values, path)
