"""The record of a trained paraphraser, `paraphraser.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
from paranmt_hf.util.records import Record
from paranmt_hf.util.wording import counted


@dataclass(frozen=True)
class HeldOutFigures:
    """Figures of held-out pairs."""

    step: int  # Number of steps before
    loss: float  # Mean cross-entropy of a target piece, natural logarithm, without label smoothing
    perplexity: float  # Its exponential
    # BLEU of the most probable pieces against the targets, from 0 to 100; None of trees and without sacrebleu
    bleu: float | None
    # Share of the most probable trees that have the template asked for, in [0, 1]; None if targets are sentences
    template_match: float | None = None
    # As `loss`, each target with the tree of another pair; the more it is above `loss`, the more the tree decides.
    # None without controls.
    loss_other_tree: float | None = None


@dataclass
class TrainingCourse:
    """The course of training one model."""

    # Step, and mean training loss since the entry before
    losses: list[tuple[int, float]] = field(default_factory=list)
    # Figures of held-out pairs, in the order of the steps
    measured: list[HeldOutFigures] = field(default_factory=list)
    steps: int = 0  # Number of steps so far
    pairs: int = 0  # Pairs trained on
    tokens: int = 0  # Target pieces trained on
    seconds: float = 0.0  # Time, that of measuring included

    @property
    def last(self) -> dict[str, float]:
        """The values of the last step by name, as a reporting service shows them."""
        values = {"loss": self.losses[-1][1]}
        if self.measured and self.measured[-1].step == self.steps:
            found = self.measured[-1]
            values["held-out perplexity"] = found.perplexity
            if found.bleu is not None:
                values["held-out bleu"] = found.bleu
        return values

    @property
    def best(self) -> HeldOutFigures | None:
        """The figures with the lowest loss; their weights are kept."""
        return min(self.measured, key=lambda each: each.loss, default=None)


@dataclass(frozen=True)
class ControlFigures:
    """How far templates control the paraphrases of held-out sentences, each asked for the most frequent templates."""

    paraphrases: int  # Number of paraphrases
    distinct: float  # Different paraphrases of a sentence by the number of its templates, mean, in [0, 1]
    # Share of the paraphrases that have the template asked for, after parsing, in [0, 1]; None if the parser is not
    # there
    template_match: float | None = None
    other_template_match: float | None = None  # The same of those whose sentence has another template
    # Share of the sentences and templates for which a paraphrase with the template is found, as users search, in
    # [0, 1], and of those whose sentence has another template
    found: float | None = None
    other_found: float | None = None

    def describe(self) -> str:
        """Describe the figures in a sentence."""
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
    """Training of the parse generator of a syntactically controlled network.

    Pairs with a sentence `without_tree`, with `long_trees`, or of the `same_template`, were left out. `templates` is
    the number of different templates of the targets, `tree_tokens` the size of the vocabulary of trees, `control` what
    came of both models.
    """

    without_tree: int
    long_trees: int
    same_template: int
    templates: int
    tree_tokens: int
    course: TrainingCourse
    control: ControlFigures | None = None


@dataclass(frozen=True)
class ParaphraserSettings:
    """What determines a paraphraser: the model, the checksum of its base, the resolved training, and the pairs."""

    paraphraser: ParaphraserConfig
    base: str | None
    training: ParaphraserTraining
    data: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ParaphraserRecord(Record):
    """The content of `paraphraser.json`."""

    FILE: ClassVar[str] = "paraphraser.json"
    KIND: ClassVar[str] = "a paraphraser (`paranmt paraphrase train`)"

    settings: ParaphraserSettings  # What determines the model
    # Names, without their folders, of what it began with: `data`, `base`, and `parser` of trees
    inputs: dict[str, str]
    pairs: int  # Pairs of the training part
    held_out: int  # Pairs of the held-out part
    too_long: int  # Pairs that were left out because of a long sentence
    left_out: dict[str, int] = field(default_factory=dict)  # Pairs that were left out before, by reason
    course: TrainingCourse  # Loss and figures over the steps; a controlled network had the targets' own trees
    model_type: str  # Kind of the model, as transformers names it
    parameters: int  # Number of weights, of a controlled network those of both models
    pieces: int  # Size of the vocabulary of sentences
    device: str  # What it was trained on, `cpu` or `cuda`
    parses: ParseGenerator | None = None  # Of a syntactically controlled network
