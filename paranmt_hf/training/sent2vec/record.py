"""What training Sent2Vec writes down beside a model, its `training.json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from paranmt_hf.errors import InputError
from paranmt_hf.training.record import History, thinned
from paranmt_hf.training.sent2vec.config import Sent2VecConfig
from paranmt_hf.util.records import Record

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


@dataclass(frozen=True)
class Sent2VecSettings:
    """What determines a model.

    Attributes:
        sent2vec: How it is trained, resolved.
        data: The identity of each source of sentences, with checksums; `columns` names the columns that were read.
    """

    sent2vec: Sent2VecConfig
    data: list[dict[str, Any]]

    def __post_init__(self) -> None:
        if not all(isinstance(source.get("columns", {}), dict) for source in self.data):
            raise InputError("the settings do not say which columns were read")


@dataclass(frozen=True, kw_only=True)
class Sent2VecRecord(Record):
    """The content of the `sent2vec.json` of an encoder.

    Attributes:
        settings: What determines the model.
        sources: Names of what was read, without folders.
        datasets: Ids of data sets on the Hub among them.
        sentences: Number of sentences with at least two known words.
        words: Number of words with a vector.
        ngrams: Number of buckets of n-grams with a vector.
        known: Number of known words in these sentences.
        course: The course of the run.
        dimension: Size of a sentence vector.
        parameters: Number of weights of the model, without the output vectors.
    """

    FILE: ClassVar[str] = "sent2vec.json"
    KIND: ClassVar[str] = "an encoder trained on sentences (`paranmt train-sent2vec`)"

    settings: Sent2VecSettings
    sources: list[str]
    datasets: list[str]
    sentences: int
    words: int
    ngrams: int
    known: int
    course: Course
    dimension: int
    parameters: int
