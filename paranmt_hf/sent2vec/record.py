"""The record and the card of an encoder of Sent2Vec."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from paranmt_hf.encoders.config import FAMILIES
from paranmt_hf.sent2vec.config import Sent2VecConfig
from paranmt_hf.training.record import thinned
from paranmt_hf.util.records import Record
from paranmt_hf.util.settings import option_words


@dataclass
class Sent2VecHistory:
    """The course of a run.

    Attributes:
        losses: Points of the curve: number of words read, and the mean loss of a target since the point before.
        words: Number of words read.
        targets: Number of words predicted.
        total: Sum of their losses.
        seconds: Time spent training, in seconds.
    """

    losses: list[tuple[int, float]] = field(default_factory=list)
    words: int = 0
    targets: int = 0
    total: float = 0.0
    seconds: float = 0.0

    def add(self, words: int, targets: int, loss: float) -> None:
        """Add a block of sentences: its number of words, its number of targets, and the sum of their losses."""
        self.words += words
        self.targets += targets
        self.total += loss
        if targets:
            self.losses = thinned([*self.losses, (self.words, loss / targets)])

    @property
    def mean(self) -> float:
        """Mean loss of all targets, the value that the authors' program shows."""
        return self.total / max(self.targets, 1)


@dataclass(frozen=True)
class Sent2VecSettings:
    """Everything that determines a model.

    Attributes:
        sent2vec: The settings, resolved.
        data: The identity of each source of text, with checksums.
        language: Language of the text (ISO 639-1); None if it was not given.
    """

    sent2vec: Sent2VecConfig
    data: list[dict[str, Any]]
    language: str | None = None


@dataclass(frozen=True, kw_only=True)
class Sent2VecRecord(Record):
    """The content of the `sent2vec.json` of an encoder.

    Attributes:
        sources: Names of the sources of text, without folders.
        datasets: Ids of the datasets on the Hub among them.
        sentences: Number of sentences with at least two known words.
        words: Number of words with a vector.
        ngrams: Number of buckets of n-grams with a vector.
        known: Number of known words in these sentences.
        threshold: The threshold t of the subsampling.
        course: The course of the run.
        dimension: Dimensions of a vector.
        parameters: Number of weights of the encoder, without the output vectors.
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
    threshold: float
    course: Sent2VecHistory
    dimension: int
    parameters: int


def sent2vec_values(training: Sent2VecRecord, folder: Path) -> dict[str, Any]:
    """Return the values of the card of a trained encoder; see `encoder_values` of `training/card.py`."""
    return {
        "made": "sent2vec",
        "record": {**training.to_json(), "course": {"targets": training.course.targets}},
        "commands": [_command(training)],
        "datasets": training.datasets,
        "languages": [training.settings.language] if training.settings.language else [],
        "limits": FAMILIES["sent2vec" if training.ngrams else "word"].limits,
        "mean_loss": training.course.mean,
    }


def _command(training: Sent2VecRecord) -> str:
    """Return the command that trained an encoder, for its card, with paths shortened to names."""
    words = ["paranmt train-sent2vec", *(shlex.quote(" ".join(name.split())) for name in training.sources)]
    columns = [str(source.get("columns", {}).get("sentence", "")) for source in training.settings.data]
    if columns and all(columns) and set(columns) != {"reference", "translation"}:
        words += ["--columns", *map(shlex.quote, dict.fromkeys(columns))]
    if any("split" in source for source in training.settings.data):
        words.append("--split")
    if training.settings.language:
        words += ["--language", training.settings.language]
    config = training.settings.sent2vec
    usual = replace(Sent2VecConfig(ngrams=config.ngrams).resolved(), ngrams=1)
    return " ".join([*words, *option_words(config, usual), "--out FOLDER"])
