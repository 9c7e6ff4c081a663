"""The record of a trained paraphraser, the file `paraphraser.json`, and the figures in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
from paranmt_hf.util.records import Record
from paranmt_hf.util.wording import counted


@dataclass(frozen=True)
class HeldOutFigures:
    """The quality of a model on held-out pairs, after some steps of training."""

    step: int  # Number of steps before the measurement
    loss: float  # Mean cross-entropy of a target piece, with the natural logarithm and without label smoothing
    perplexity: float  # Exponential of the loss
    # BLEU of greedy outputs against the targets, from 0 to 100; None if targets are trees, or without sacrebleu
    bleu: float | None
    # Share of greedy outputs, trees, that have the requested template, in [0, 1]; None if targets are sentences
    template_match: float | None = None
    # Loss if each target is given the tree of another pair. The more it exceeds `loss`, the more the tree decides the
    # output. None if the targets are trees, or the model has no control.
    loss_other_tree: float | None = None


@dataclass
class TrainingCourse:
    """The course of training one model: losses, held-out figures, and amounts so far."""

    # Steps, each with the mean training loss since the entry before
    losses: list[tuple[int, float]] = field(default_factory=list)
    # Figures on held-out pairs, in the order of the steps
    measured: list[HeldOutFigures] = field(default_factory=list)
    steps: int = 0  # Number of steps so far
    pairs: int = 0  # Number of pairs trained on so far, repetitions included
    tokens: int = 0  # Number of target pieces trained on so far, repetitions included
    seconds: float = 0.0  # Time of training so far, including measurements

    @property
    def last(self) -> dict[str, float]:
        """The newest loss, and the held-out figures if they are of the same step, by names for a reporting service."""
        values = {"loss": self.losses[-1][1]}
        if self.measured and self.measured[-1].step == self.steps:
            found = self.measured[-1]
            values["held-out perplexity"] = found.perplexity
            if found.bleu is not None:
                values["held-out bleu"] = found.bleu
        return values

    @property
    def best(self) -> HeldOutFigures | None:
        """The held-out figures of the lowest loss, whose weights are kept; None if nothing was measured."""
        return min(self.measured, key=lambda each: each.loss, default=None)


@dataclass(frozen=True)
class ControlFigures:
    """How far templates control paraphrases, measured on held-out sentences and the most frequent templates.

    Shares are in [0, 1]. The last four need the parser of the training; they are None if it is not installed.
    """

    paraphrases: int  # Number of most probable paraphrases, one for each sentence and template
    distinct: float  # Share that is left if equal paraphrases of a sentence count once
    template_match: float | None = None  # Share of these paraphrases that have the requested template
    # The same share among requests for another template than that of the sentence; None if there is no such request
    other_template_match: float | None = None
    # Share of the requests for which a search as users run it finds a paraphrase with the requested template
    found: float | None = None
    # The same share among requests for another template than that of the sentence; None if there is no such request
    other_found: float | None = None

    def describe(self) -> str:
        """Return a phrase with the figures, for summaries and cards."""
        text = f"of {counted(self.paraphrases, 'held-out paraphrase')}, {self.distinct:.0%} are distinct"
        if self.template_match is None:
            return f"{text}; without their parser it is not known how many have the template asked for"
        text += f", {self.template_match:.0%} have the template asked for"
        if self.other_template_match is None:
            return f"{text}; a search for one that has it finds {self.found:.0%}"
        return (
            f"{text}, {self.other_template_match:.0%} where it is not that of the sentence; a search for one that has "
            f"it finds {self.found:.0%} and {self.other_found:.0%}"
        )


@dataclass(frozen=True)
class ParseGenerator:
    """The record of a parse generator, a part of a syntactically controlled network."""

    without_tree: int  # Number of pairs that were left out because a sentence has no tree
    long_trees: int  # Number of pairs that were left out because of a long tree
    same_template: int  # Number of pairs that were left out because both trees have the same template
    templates: int  # Number of different templates of the targets
    tree_tokens: int  # Size of the vocabulary of trees
    course: TrainingCourse
    control: ControlFigures | None = None  # How far templates control the paraphrases of the whole network


@dataclass(frozen=True)
class ParaphraserSettings:
    """The input and the settings that determine a paraphraser."""

    paraphraser: ParaphraserConfig
    base: str | None  # Revision of the model that is trained further; None for a new model
    training: ParaphraserTraining  # Settings of the training, with the learning rate filled in
    data: dict[str, Any]  # Identity of the pairs, with checksums


@dataclass(frozen=True, kw_only=True)
class ParaphraserRecord(Record):
    """The record of a trained paraphraser, the file `paraphraser.json` in its folder."""

    FILE: ClassVar[str] = "paraphraser.json"
    KIND: ClassVar[str] = "a paraphraser (`paranmt paraphrase train`)"

    settings: ParaphraserSettings  # The input and the settings that determine the model
    # Names, without folders, of the inputs: `data`, `base` for a model trained further, and `parser` for trees
    inputs: dict[str, str]
    pairs: int  # Number of pairs to train on
    held_out: int  # Number of held-out pairs
    too_long: int  # Number of pairs that were left out because of a long sentence
    left_out: dict[str, int] = field(default_factory=dict)  # Number of pairs that the selection left out, by reason
    # Course of training the model of sentences; in a controlled network, it was given the trees of the targets
    course: TrainingCourse
    model_type: str  # Kind of the model, as transformers names it
    parameters: int  # Number of weights, in a controlled network of both models
    pieces: int  # Size of the vocabulary of sentences
    device: str  # Device of the training, `cpu` or `cuda`
    parses: ParseGenerator | None = None  # Record of the parse generator; None if the model is not controlled
