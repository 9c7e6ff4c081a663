"""What happened during a training run: loss, development score, speed; as a record and as a picture."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from paranmt_hf.util.optional import available

TRAINING_PICTURE = "training.png"
# Enough for a picture; an even number.
MOST_LOSSES = 4000


@dataclass
class History:
    """The course of a run.

    Attributes:
        losses: Step and mean loss since the entry before.
        scores: Step and score on the development set.
        best_score: Highest of them.
        best_step: Its step.
        stale: Evaluations since then.
        pairs: Pairs trained on.
        seconds: Time spent training, evaluations included.
    """

    losses: list[tuple[int, float]] = field(default_factory=list)
    scores: list[tuple[int, float]] = field(default_factory=list)
    best_score: float | None = None
    best_step: int = 0
    stale: int = 0
    pairs: int = 0
    seconds: float = 0.0

    def add_loss(self, step: int, loss: float) -> None:
        """Note a loss; when there are very many, neighbours are averaged."""
        self.losses = thinned([*self.losses, (step, loss)])

    def add_score(self, step: int, score: float) -> bool:
        """Note a development score; returns whether it is the best so far."""
        self.scores.append((step, score))
        if self.best_score is None or score > self.best_score:
            self.best_score, self.best_step, self.stale = score, step, 0
            return True
        self.stale += 1
        return False

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> History:
        """Read what `as_dict` gave."""
        pairs = {name: [(int(step), float(value)) for step, value in values[name]] for name in ("losses", "scores")}
        return cls(**{**values, **pairs})


def thinned(losses: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Average neighbours where there are very many losses."""
    if len(losses) < MOST_LOSSES:
        return losses
    pairs = zip(losses[::2], losses[1::2], strict=True)
    return [(later, (first + second) / 2) for (_, first), (later, second) in pairs]


def plot_history(history: History, path: Path, title: str, *, unit: str = "step") -> bool:
    """Draw loss and development score over the steps.

    Args:
        history: The course of the run.
        path: The picture.
        title: What stands above it.
        unit: What the losses are counted in.

    Returns:
        Whether it was drawn; it needs matplotlib.
    """
    if not available("matplotlib"):
        return False
    import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(*zip(*history.losses, strict=True), color="tab:blue", label="loss")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set(xlabel=unit, ylabel="loss", title=title)
    axes.set_ylim(bottom=0)
    if history.scores:
        right = axes.twinx()
        steps, scores = zip(*history.scores, strict=True)
        right.plot(steps, [100 * score for score in scores], color="tab:orange", marker="o", label="development")
        right.set_ylabel("Pearson on the development set, times 100")
    figure.legend(loc="outside lower center", ncols=2)
    figure.savefig(path, dpi=120)
    return True
