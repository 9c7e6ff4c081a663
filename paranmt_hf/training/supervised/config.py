"""The settings of a supervised run, and its record `supervised.json`.

Where the paper tuned a value and does not print it, the default is that of its authors' program
(github.com/jwieting/iclr2016, `demo.sh`): the word model on SICK, the LSTM on SST.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.util.records import Record
from paranmt_hf.util.settings import check, is_given, seed_setting, setting
from paranmt_hf.util.tables import percent, text_table

Task = Literal["SICK-R", "SICK-E", "SST2", "SST5"]
Way = Literal["scratch", "initialised", "regularised", "fixed"]
Optimizer = Literal["adam", "adagrad"]
MOST = 1_000_000
LARGEST_RATE = 1

HIDDEN: dict[Task, int] = {"SICK-R": 50, "SICK-E": 150, "SST2": 300, "SST5": 300}
OPTIMIZER: dict[Task, Optimizer] = {"SICK-R": "adam", "SICK-E": "adagrad", "SST2": "adam", "SST5": "adam"}
LEARNING_RATE: dict[Optimizer, float] = {"adam": 0.001, "adagrad": 0.05}
LAMBDA_W: dict[Task, float] = {"SICK-R": 1e-5, "SICK-E": 1e-5, "SST2": 1e-6, "SST5": 1e-6}
EPOCHS, EPOCHS_FIXED = 10, 20


@dataclass(frozen=True)
class SuperviseConfig:
    """A task, how an encoder is used for it, and how both are trained (arXiv:1511.08198, section 4.4)."""

    task: Task = setting(
        help="similarity (SICK-R), entailment (SICK-E), sentiment in two or in five classes (SST2, SST5)"
    )
    way: Way | None = setting(
        None,
        "scratch: random words or those of --vectors; initialised: the encoder of --init-from is trained further; "
        "regularised: it is also pulled back to its weights; fixed: its vectors stay (default: regularised with "
        "--init-from, else scratch)",
    )
    projection: int | None = setting(
        None,
        "fixed: dimensions of a learned projection of the vectors; table 6 has 1200 and 2400",
        at_least=1,
        at_most=MOST,
    )
    hidden: int | None = setting(
        None, "width of the sigmoid layer (default: 50, SICK-E 150, SST 300)", at_least=1, at_most=MOST
    )
    epochs: int | None = setting(
        None,
        f"passes over the training items; the best one on the development items is kept (default: {EPOCHS}, fixed "
        f"{EPOCHS_FIXED} as in table 6)",
        at_least=1,
        at_most=MOST,
    )
    batch_size: int = setting(25, "items of a batch", at_least=1, at_most=MOST)
    optimizer: Optimizer | None = setting(None, "how steps are made (default: adam, SICK-E adagrad)")
    learning_rate: float | None = setting(
        None, "rate of the steps (default: adam 0.001, adagrad 0.05)", above=0, at_most=LARGEST_RATE
    )
    lambda_s: float = setting(
        1e-6, "half of it weighs the squared norm of the head's parameters, biases included", at_least=0, at_most=MOST
    )
    lambda_c: float = setting(
        1e-6,
        "half of it weighs compositional parameters (those beside the tables; of fixed, the projection): their "
        "squared norm, of regularised their squared distance from the encoder's",
        at_least=0,
        at_most=MOST,
    )
    lambda_w: float | None = setting(
        None,
        "half of it weighs the squared distance of the tables from where they began (default: 1e-05, SST 1e-06, of "
        "initialised 0)",
        at_least=0,
        at_most=MOST,
    )
    seed: int = seed_setting(1, "decides random weights and the order of the items")

    def __post_init__(self) -> None:
        check(self)

    def resolved(self, *, start: bool) -> SuperviseConfig:
        """Fill in what was left open.

        Args:
            start: Whether there is an encoder to start from.
        """
        way: Way = self.way or ("regularised" if start else "scratch")
        if (way == "scratch") == start:
            raise InputError(
                "--way scratch begins without an encoder; leave out --init-from, or choose another way"
                if start
                else f"--way {way} needs an encoder to begin with; name one with --init-from"
            )
        self._refuse_unused(way)
        optimizer = self.optimizer or OPTIMIZER[self.task]
        lambda_w = 0.0 if way in ("initialised", "fixed") else LAMBDA_W[self.task]
        return replace(
            self,
            way=way,
            hidden=self.hidden or HIDDEN[self.task],
            epochs=self.epochs or (EPOCHS_FIXED if way == "fixed" else EPOCHS),
            optimizer=optimizer,
            learning_rate=self.learning_rate or LEARNING_RATE[optimizer],
            lambda_w=lambda_w if self.lambda_w is None else self.lambda_w,
        )

    def _refuse_unused(self, way: Way) -> None:
        """Refuse what would change nothing."""
        fixed = way == "fixed"
        for name, matters, purpose in (
            ("projection", fixed, "--way fixed"),
            ("lambda_w", not fixed, "ways that train the words"),
            (
                "lambda_c",
                not fixed or self.projection is not None,
                "compositional parameters; --way fixed has none but --projection",
            ),
        ):
            if is_given(self, name) and not matters:
                raise InputError(
                    f"--{name.replace('_', '-')} would change nothing here: it is for {purpose}; leave it out"
                )


@dataclass(frozen=True)
class Epoch:
    """One pass over the training items: the mean loss of its steps, and what it reached on the development items."""

    loss: float
    development: float


@dataclass(frozen=True)
class SupervisedSettings:
    """What determines a model.

    Attributes:
        training: The task and how it is trained, resolved.
        encoder: The encoder before training: its settings, or the checksum of the one that it begins with.
        data: Checksum of the task's items.
    """

    training: SuperviseConfig
    encoder: dict[str, Any]
    data: str


@dataclass(frozen=True, kw_only=True)
class SupervisedRecord(Record):
    """The content of `supervised.json`.

    Attributes:
        settings: What determines the model.
        inputs: Names of the encoder or of the file of word vectors that it began with.
        items: Number of items of each part.
        figures: Figures of `dev` and `test`: `accuracy`, or of SICK-R `pearson`, `spearman` and `mse`.
        epochs: The course of the run.
        best_epoch: The epoch whose weights these are, from 1.
        dimension: Size of a sentence vector.
        parameters: Number of weights that were trained, those of tables only where the task's sentences have rows.
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

    def __post_init__(self) -> None:
        names = self.figures.get("test", {}).keys()
        if not names or any(part not in self.items or names - own.keys() for part, own in self.figures.items()):
            raise InputError("it has no 'figures.test', or a part lacks its number of 'items' or one of these figures")

    def text(self) -> str:
        """Write the figures as a table for a terminal; correlations and accuracies times 100, as in the paper."""
        names = list(self.figures["test"])
        rows = [
            (
                part,
                f"{self.items[part]:,}",
                *(f"{own[name]:.3f}" if name == "mse" else percent(own[name]) for name in names),
            )
            for part, own in self.figures.items()
        ]
        return "\n".join([text_table(("Part", "Items", *names), rows), *self.notes])
