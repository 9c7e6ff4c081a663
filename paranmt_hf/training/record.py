"""The record of a trained model, `training.json`, and the course of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.loading import load
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.util.files import shown_path
from paranmt_hf.util.optional import available
from paranmt_hf.util.records import Identity, Record, as_json
from paranmt_hf.util.run import Result
from paranmt_hf.util.wording import counted

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

TRAINING_PICTURE, CALIBRATION_PICTURE = "training.png", "calibration.png"
DISTILLATION_FILE = "distillation.json"  # Record of a distilled encoder, next to the record of its last training
R = TypeVar("R", bound=Record)


@dataclass
class History:
    """The course of a run."""

    losses: list[tuple[int, float]] = field(default_factory=list)  # Step and mean loss since the entry before
    scores: list[tuple[int, float]] = field(default_factory=list)  # Step and score on the development set
    best_score: float | None = None  # The best of these scores; None if there is none
    best_step: int = 0  # The step of the best score
    stale: int = 0  # Number of evaluations since the best score
    pairs: int = 0  # Number of pairs trained on, each as often as it was read
    seconds: float = 0.0  # Time spent training, in seconds, evaluations included
    start: float | None = None  # Score before the first step, which does not count for the best

    def add_loss(self, step: int, loss: float) -> None:
        """Add a loss to the course, and thin the losses out if there are many; see `thinned`."""
        self.losses = thinned([*self.losses, (step, loss)])

    def add_score(self, step: int, score: float) -> bool:
        """Add a development score, and return whether it is the best so far."""
        self.scores.append((step, score))
        if self.best_score is None or score > self.best_score:
            self.best_score, self.best_step, self.stale = score, step, 0
            return True
        self.stale += 1
        return False

    @property
    def last(self) -> dict[str, float]:
        """Values of the last step by name, as a reporting service shows them."""
        last = {name: each[-1] for name, each in (("loss", self.losses), ("development", self.scores)) if each}
        newest = max((step for step, _ in last.values()), default=0)
        return {name: value for name, (step, value) in last.items() if step == newest} | {"pairs": self.pairs}

    @property
    def note(self) -> str:
        """The last loss and development score as text, for the progress."""
        note = f"loss {self.losses[-1][1]:.3f}" if self.losses else ""
        return f"{note}, dev {100 * self.scores[-1][1]:.1f}" if self.scores else note

    def is_over(self, config: TrainConfig) -> bool:
        """Whether training stops early: the score has not improved for `patience` evaluations."""
        return config.patience is not None and self.stale >= config.patience


def thinned(losses: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Halve the number of losses when there are 4,000, enough for a picture, by averaging neighbours."""
    if len(losses) < 4000:
        return losses
    pairs = zip(losses[::2], losses[1::2], strict=True)
    return [(later, (first + second) / 2) for (_, first), (later, second) in pairs]


def plot_history(history: History, path: Path, title: str, *, unit: str = "step") -> None:
    """Draw loss and development score, if matplotlib is installed.

    Args:
        history: The course of a run.
        path: The picture to write.
        title: Title of the picture.
        unit: Unit of the horizontal axis.
    """
    if not available("matplotlib"):
        return
    import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=(7, 4))
    # A fixed place for the axes, because finding one takes longer than drawing the picture.
    axes = figure.add_axes((0.12, 0.23, 0.76, 0.68))
    axes.plot(*zip(*history.losses, strict=True), color="tab:blue", label="loss")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set(xlabel=unit, ylabel="loss", title=title)
    axes.set_ylim(bottom=0)
    if history.scores:
        right = axes.twinx()
        start = [] if history.start is None else [(0, history.start)]
        steps, scores = zip(*start, *history.scores, strict=True)
        right.plot(steps, [100 * score for score in scores], color="tab:orange", marker="o", label="development")
        right.set_ylabel("Pearson on the development set, times 100")
    figure.legend(loc="lower center", ncols=2)
    figure.savefig(path, dpi=120)


@dataclass(frozen=True)
class AveragedModel:
    """One of the models that a mean was made from: its name, and the commit or checksum of its files."""

    name: str
    revision: str


@dataclass(frozen=True)
class TrainingSettings:
    """Everything that determines a trained model."""

    encoder: EncoderConfig  # Settings of the encoder, with checksums in place of the names of inputs
    training: TrainConfig  # How it is trained, with checksums in place of the names of teachers
    data: dict[str, Any]  # Everything that determines the pairs, as JSON values
    development: str | None = None  # Name of the development set, if there is one
    development_checksum: str | None = None  # Its checksum
    processes: int | None = None  # Number of processes, if there are several


@dataclass(frozen=True, kw_only=True)
class TrainingRecord(Record):
    """The content of the `training.json` of a model that was trained on pairs."""

    FILE: ClassVar[str] = "training.json"
    KIND: ClassVar[str] = "an encoder trained on pairs (`paranmt train`)"

    settings: TrainingSettings  # Everything that determines the model
    # Names of the models and files that the run started from, by setting; the settings hold their checksums
    inputs: dict[str, str] = field(default_factory=dict)
    pairs: int  # Number of pairs of the training data; each two sentences of text count as a pair
    sentences: int | None = None  # Number of sentences of the training data; None if it is pairs alone
    # Numbers of pairs and sentences that were left out of the training data, by reason
    left_out: dict[str, int] = field(default_factory=dict)
    history: History  # The course of the run
    development: float | None  # Pearson's r on the development set, in [-1, 1], if there was one
    dimension: int  # Dimension of a sentence vector
    parameters: int  # Number of weights
    # The models of which this is the mean, None for another model; the other fields are those of the last of them
    mean_of: list[AveragedModel] | None = None

    def for_card(self) -> dict[str, Any]:
        """Return the values that a card shows: everything except the curves of loss and score."""
        history = {name: getattr(self.history, name) for name in ("pairs", "seconds", "best_step")}
        return {**self.to_json(), "history": history}


class EncoderResult(Result[R]):
    """The result of a command that makes the folder of an encoder."""

    def load(self) -> SentenceEncoder:
        """Load the encoder."""
        return load(self.folder)


class Trained(EncoderResult[TrainingRecord]):
    """The result of `paranmt train`: an encoder."""

    def summary(self) -> str:
        """Return lines about the encoder's size, the time of training, and its scores."""
        record, history = self.record, self.record.history
        state = "" if self.fresh else " (was trained already)"
        lines = [
            f"{shown_path(self.folder)}: {counted(record.dimension, 'dimension')}, "
            f"{counted(record.parameters, 'parameter')}{state}"
        ]
        # If the data is text, a pair is two of its sentences.
        of_text = "text" in record.settings.data
        seen = counted(2 * history.pairs, "sentence") if of_text else counted(history.pairs, "pair")
        lines.append(f"  {seen} in {history.seconds:,.0f} s, last loss {history.losses[-1][1]:.2g}")
        if record.development is not None:
            before = "" if history.start is None else f", {100 * history.start:.1f} before training"
            score = f"{100 * record.development:.1f}"
            lines.append(f"  Pearson {score} on the development set, {record.settings.development}{before}")
            if len(history.scores) > 1:
                kept = f"step {history.best_step:,} of {history.scores[-1][0]:,}"
                lines.append(f"  the best of {counted(len(history.scores), 'score')}; the weights are those of {kept}")
        return "\n".join([*lines, f"load it: paranmt_hf.load({shown_path(self.folder)!r})"])


@dataclass(frozen=True, kw_only=True)
class MeanRecord(TrainingRecord):
    """The record of the mean of several encoders: the record of the last of them, with the names of all."""

    KIND: ClassVar[str] = "an encoder trained on pairs, or the mean of such encoders (`paranmt encoder average`)"

    @property
    def identity(self) -> Identity:
        """Everything that determines the mean: the encoders, in order."""
        return as_json({"mean_of": self.mean_of or []})


class Mean(EncoderResult[MeanRecord]):
    """The result of `paranmt encoder average`: the mean of several encoders."""

    def summary(self) -> str:
        """Return lines with the encoder's dimension, the number of averaged models, and the call that loads it."""
        shown, record = shown_path(self.folder), self.record
        of = counted(len(record.mean_of or []), "model")
        size = counted(record.dimension, "dimension")
        return f"{shown}: {size}, the mean of {of}\nload it: paranmt_hf.load({shown!r})"
