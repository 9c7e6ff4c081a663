"""The settings of a supervised run, and its record `supervised.json`: PARAGRAM-PHRASE, section 4.4 (arXiv:1511.08198).

The paper prints the values that it tried (footnotes 16 and 17) and not those that it chose. The defaults are those of
its authors' program (github.com/jwieting/iclr2016, `demo.sh`): the word model on SICK, the LSTM on SST.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from paranmt_hf.errors import refuse
from paranmt_hf.util.markers import Count, Group, Range, Seed
from paranmt_hf.util.records import Record
from paranmt_hf.util.settings import Settings
from paranmt_hf.util.tables import percent, text_table

TaskName = Literal["SICK-R", "SICK-E", "SST2", "SST5", "STSB", "STSB-captions", "STSB-no-captions"]
Way = Literal["scratch", "initialised", "regularised", "fixed"]
Width = Annotated[int, Range(at_least=1, at_most=10_000)]
Weight = Annotated[float, Range(at_least=0, at_most=1_000_000)]

# Folder of the head inside that of a model, and the files in it.
HEAD_FOLDER, CONFIG_FILE, WEIGHTS_FILE = "head", "head.json", "model.safetensors"
CHECKPOINT = "checkpoint.safetensors"  # Name of the checkpoint in the work folder
HEAD = Group("head", "Widths of the layers over sentence vectors.")
OPTIMIZATION = Group("optimization", "How steps are made.")
PENALTIES = Group("penalties", "What holds parameters back (equation 2).")


@dataclass(frozen=True)
class SuperviseConfig(Settings):
    """A task, the use of an encoder for it, and the training of both (arXiv:1511.08198, section 4.4).

    Attributes:
        task: Similarity (SICK-R), entailment (SICK-E), sentiment in two or in five classes (SST2, SST5), similarity of
            the STS benchmark, of its captions or of the rest (ParaNMT-50M, table 16).
        way: How the encoder is trained. `scratch`: from random words, or those of `vectors`; `initialised`: from the
            encoder of `init_from`; `regularised`: likewise, and pulled back to its weights; `fixed`: its vectors do
            not change. By default regularised with `init_from`, else scratch.
        projection: Way `fixed`: dimensions of a learned projection of the vectors (table 6: 1200 and 2400).
        hidden: Width of the sigmoid layer; by default 50, SICK-E 150, SST 300.
        epochs: Passes over the training items, of which the best one on the development items is kept; by default 10,
            way `fixed` 20 (table 6).
        batch_size: Number of items of a batch.
        optimizer: How steps are made; by default adam, SICK-E adagrad.
        learning_rate: Rate of the steps; by default 0.001 with adam, 0.05 with adagrad.
        freeze_words: Leave word embeddings as they are, and train the other weights (footnote 16).
        lambda_s: Penalty of the head: half of it times the squared norm of its parameters, biases included.
        lambda_c: Penalty of the compositional parameters, which are those of the encoder except tables, or with way
            `fixed` those of the projection: half of it times their squared norm, or with way `regularised` their
            squared distance from the values they start from.
        lambda_w: Penalty of the tables: half of it times their squared distance from their initial values; by default
            1e-5, SST 1e-6, ways `initialised` and `fixed` 0.
        seed: Seed of random weights and of the order of the items.
    """

    task: TaskName
    way: Way | None = None
    projection: Annotated[Width | None, HEAD] = None
    hidden: Annotated[Width | None, HEAD] = None
    epochs: Count | None = None
    batch_size: Annotated[Count, OPTIMIZATION] = 25
    optimizer: Annotated[Literal["adam", "adagrad"] | None, OPTIMIZATION] = None
    learning_rate: Annotated[float | None, Range(above=0, at_most=1), OPTIMIZATION] = None
    freeze_words: Annotated[bool, OPTIMIZATION] = False
    lambda_s: Annotated[Weight, PENALTIES] = 1e-6
    lambda_c: Annotated[Weight, PENALTIES] = 1e-6
    lambda_w: Annotated[Weight | None, PENALTIES] = None
    seed: Seed = 1

    def resolved(self, *, start: bool) -> SuperviseConfig:
        """Return these settings with missing ones filled in.

        Args:
            start: Whether there is an encoder to start from.

        Raises:
            InputError: The way does not fit the start, or another setting does not fit the way.
        """
        way: Way = self.way or ("regularised" if start else "scratch")
        from_scratch, fixed = way == "scratch", way == "fixed"
        unused = "`way` scratch starts without an encoder; leave out `init_from`"
        refuse(from_scratch and start, unused, option="way")
        missing = f"`way` {way} needs an encoder to start from; name one with `init_from`"
        refuse(not from_scratch and not start, missing, option="way")
        only_fixed = f"`projection` is for the way fixed, not for {way}; leave it out"
        refuse(self.projection is not None and not fixed, only_fixed, option="projection")
        twice = "`way` fixed trains no words already; leave out `freeze_words`"
        refuse(self.freeze_words and fixed, twice, option="freeze_words")
        hidden, optimizer, lambda_w = self.hidden or 50, self.optimizer or "adam", 1e-5
        if self.task == "SICK-E":
            hidden, optimizer = self.hidden or 150, self.optimizer or "adagrad"
        elif self.task in ("SST2", "SST5"):
            hidden, lambda_w = self.hidden or 300, 1e-6
        if way in ("initialised", "fixed"):
            lambda_w = 0.0
        return replace(
            self,
            way=way,
            hidden=hidden,
            epochs=self.epochs or (20 if way == "fixed" else 10),
            optimizer=optimizer,
            learning_rate=self.learning_rate or (0.001 if optimizer == "adam" else 0.05),
            lambda_w=lambda_w if self.lambda_w is None else self.lambda_w,
        )


@dataclass(frozen=True)
class Epoch:
    """A pass over the training items.

    Attributes:
        loss: Mean loss of its steps.
        development: Main score on the development items after it.
    """

    loss: float
    development: float


@dataclass(frozen=True)
class SupervisedSettings:
    """Everything that determines a model.

    Attributes:
        training: The task and how it is trained, resolved.
        encoder: The encoder before training: its settings, or the checksum of the encoder that it starts from.
        data: Checksum of the task's items.
    """

    training: SuperviseConfig
    encoder: dict[str, Any]
    data: str


@dataclass(frozen=True, kw_only=True)
class SupervisedRecord(Record):
    """The content of `supervised.json`.

    Attributes:
        settings: Everything that determines the model.
        inputs: Name of the encoder (`init_from`) or of the file of word vectors (`vectors`) that it started from.
        items: Number of items of each part of the task.
        figures: Figures of the parts `dev` and `test`: `accuracy`, or of a similarity task `pearson`, `spearman` and
            `mse`.
        epochs: The course of the run.
        best_epoch: The epoch whose weights these are, from 1.
        dimension: Size of a sentence vector.
        parameters: Number of weights that were trained; of tables, only the rows of units in the task's sentences
            count.
        unknown: Share of the training sentences' units without a row of their own, in [0, 1].
        notes: Sentences that a reader of the figures must know.
    """

    FILE: ClassVar[str] = "supervised.json"
    KIND: ClassVar[str] = "a model for a task (`paranmt supervise`)"

    settings: SupervisedSettings
    inputs: dict[str, str]
    items: dict[str, int]
    figures: dict[str, dict[str, float]]
    epochs: list[Epoch]
    best_epoch: int
    dimension: int
    parameters: int
    unknown: float
    notes: list[str]

    def table(self) -> str:
        """Return the figures as a table for a terminal, and the notes."""
        rows = figure_rows(self.figures, self.items)
        return "\n".join([text_table(["Part", "Items", *self.figures["test"]], rows), *self.notes])


def figure_rows(figures: Mapping[str, Mapping[str, float]], items: Mapping[str, int]) -> list[list[str]]:
    """Return the rows of a table of figures; correlations and accuracies are times 100, as in the paper.

    Args:
        figures: Figures of each part of the task.
        items: Number of items of each part.
    """
    return [
        [part, f"{items[part]:,}"]
        + [f"{value:.3f}" if name == "mse" else percent(value) for name, value in values.items()]
        for part, values in figures.items()
    ]
