"""The record of a trained paraphraser, `paraphraser.json`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from paranmt_hf.errors import InputError
from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
from paranmt_hf.training.record import ShownData
from paranmt_hf.util.records import Record, from_json
from paranmt_hf.util.wording import counted


@dataclass(frozen=True)
class HeldOutFigures:
    """Figures of held-out pairs.

    Attributes:
        step: Number of steps before.
        loss: Mean cross-entropy of a target piece, natural logarithm, without label smoothing.
        perplexity: Its exponential.
        bleu: BLEU of the most probable pieces against the targets, from 0 to 100; None of trees and without sacrebleu.
        template_match: Share of the most probable trees that have the template asked for, in [0, 1]; None if targets
            are sentences.
        loss_other_tree: As `loss`, each target with the tree of another pair; the more it is above `loss`, the more
            the tree decides. None without controls.
    """

    step: int
    loss: float
    perplexity: float
    bleu: float | None
    template_match: float | None = None
    loss_other_tree: float | None = None


@dataclass
class TrainingCourse:
    """The course of training one model.

    Attributes:
        losses: Step, and mean training loss since the entry before.
        measured: Figures of held-out pairs, in the order of the steps.
        steps: Number of steps so far.
        pairs: Pairs trained on.
        tokens: Target pieces trained on.
        seconds: Time, that of measuring included.
    """

    losses: list[tuple[int, float]] = field(default_factory=list)
    measured: list[HeldOutFigures] = field(default_factory=list)
    steps: int = 0
    pairs: int = 0
    tokens: int = 0
    seconds: float = 0.0

    @property
    def best(self) -> HeldOutFigures | None:
        """The figures with the lowest loss; their weights are kept."""
        return min(self.measured, key=lambda each: each.loss, default=None)


@dataclass(frozen=True)
class ControlFigures:
    """How far templates control the paraphrases of held-out sentences, each asked for the most frequent templates.

    Attributes:
        paraphrases: Number of paraphrases.
        distinct: Different paraphrases of a sentence by the number of its templates, mean, in [0, 1].
        template_match: Share of the paraphrases that have the template asked for, after parsing, in [0, 1]; None if
            the parser is not there.
        other_template_match: The same of those whose sentence has another template.
    """

    paraphrases: int
    distinct: float
    template_match: float | None
    other_template_match: float | None

    def describe(self) -> str:
        """Describe the figures in a sentence."""
        text = f"of {counted(self.paraphrases, 'held-out paraphrase')}, {self.distinct:.0%} are distinct"
        if self.template_match is None:
            return f"{text}; without their parser it is not known how many have the template asked for"
        text += f", {self.template_match:.0%} have the template asked for"
        if self.other_template_match is None:
            return text
        return f"{text}, {self.other_template_match:.0%} where it is not that of the sentence"


@dataclass(frozen=True)
class ParseGenerator:
    """Training of the parse generator of a syntactically controlled network.

    Pairs with a sentence `without_tree`, or with `long_trees`, were left out. `templates` is the number of different
    templates of the targets, `tree_tokens` the size of the vocabulary of trees, `control` what came of both models.
    """

    without_tree: int
    long_trees: int
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

    def __post_init__(self) -> None:
        from_json(ShownData, self.data, "data")
        if self.training.learning_rate is None:
            raise InputError("it has no 'settings.training.learning_rate'")


@dataclass(frozen=True, kw_only=True)
class ParaphraserRecord(Record):
    """The content of `paraphraser.json`.

    Attributes:
        settings: What determines the model.
        inputs: Names, without their folders, of what it began with: `data`, `base`, and `parser` of trees.
        pairs: Pairs of the training part.
        held_out: Pairs of the held-out part.
        too_long: Pairs that were left out because of a long sentence.
        course: Loss and figures over the steps; a controlled network had the targets' own trees.
        model_type: Kind of the model, as transformers names it.
        parameters: Number of weights, of a controlled network those of both models.
        pieces: Size of the vocabulary of sentences.
        device: What it was trained on, `cpu` or `cuda`.
        parses: Of a syntactically controlled network.
    """

    FILE: ClassVar[str] = "paraphraser.json"
    KIND: ClassVar[str] = "a paraphraser (`paranmt paraphrase train`)"

    settings: ParaphraserSettings
    inputs: dict[str, str]
    pairs: int
    held_out: int
    too_long: int
    course: TrainingCourse
    model_type: str
    parameters: int
    pieces: int
    device: str
    parses: ParseGenerator | None = None
