"""The settings of a training run, each with its source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from paranmt_hf.errors import InputError

Negatives = Literal["max", "mix", "rand"]


@dataclass(frozen=True)
class TrainConfig:
    """How an encoder is trained; the defaults are ParaNMT-50M's (Wieting & Gimpel 2018, section 5.1) unless said."""

    margin: float = field(
        default=0.4, metadata={"help": "margin of the loss (ParaNMT-50M, section 4; arXiv:1511.08198, section 4)"}
    )
    batch_size: int = field(default=100, metadata={"help": "pairs of a mini-batch (section 5.1)"})
    mega_batch: int = field(default=40, metadata={"help": "M: mini-batches of a mega-batch (section 4.2; table 6)"})
    learning_rate: float = field(default=0.001, metadata={"help": "rate of Adam (section 5.1)"})
    decay: bool = field(default=False, metadata={"help": "lower the rate linearly to zero (not in the paper)"})
    epochs: int = field(default=5, metadata={"help": "passes over the pairs (section 5.1)"})
    scrambling: float = field(
        default=0.3, metadata={"help": "share of sentences whose words are shuffled, LSTM models only (section 5.1)"}
    )
    negatives: Negatives = field(
        default="max",
        metadata={"help": "negative of a sentence: the most similar, half of them random, or all random "
                  "(arXiv:1511.08198, section 4)"},
    )  # fmt: skip
    one_sided: bool = field(
        default=False,
        metadata={"help": "only the reference gets a negative, from the translations (ParaNMT-50M as printed); "
                  "else both sides do (arXiv:1511.08198, equation 2)"},
    )  # fmt: skip
    lambda_w: float = field(
        default=0.0, metadata={"help": "pull towards the initial word embeddings (arXiv:1511.08198, equation 2)"}
    )
    lambda_c: float = field(
        default=0.0, metadata={"help": "L2 penalty on compositional parameters (arXiv:1511.08198, equation 2)"}
    )
    teacher: str | None = field(
        default=None,
        metadata={
            "help": "SentenceTransformer folder or Hub id whose similarities are learned too (not in the papers)"
        },
    )
    teacher_weight: float = field(
        default=1.0, metadata={"help": "share of the teacher's term in the loss; with 1.0 there is no margin loss"}
    )
    weigh_similar: bool = field(
        default=False,
        metadata={"help": "in the teacher's term a pair weighs the teacher's cosine (0 if negative) + 0.05 "
                  "(not in the papers)"},
    )  # fmt: skip
    neighbours: bool = field(
        default=False,
        metadata={"help": "mini-batches of pairs that the teacher finds similar; averaging models on the CPU "
                  "(not in the papers)"},
    )  # fmt: skip
    seed: int = field(default=1, metadata={"help": "decides the order of pairs, scrambling, random negatives"})
    patience: int | None = field(
        default=None, metadata={"help": "stop after so many evaluations without a better development score"}
    )
    evaluations: int = field(default=1, metadata={"help": "evaluations on the development set in each epoch"})
    checkpoint_seconds: float = field(
        default=60.0, metadata={"help": "time between two checkpoints; the result does not depend on it"}
    )

    device: str | None = field(
        default=None,
        metadata={"help": "where to train; averaging models choose the CPU, others a GPU if there is one"},
    )
    precision: Literal["float32", "bf16", "fp16"] = field(
        default="float32", metadata={"help": "mixed precision of the trainer (LSTM models, GPUs)"}
    )
    gather_negatives: bool = field(
        default=False, metadata={"help": "several processes: mine among the mega-batches of all, not of each"}
    )
    report_to: str | None = field(
        default=None, metadata={"help": "where the trainer reports to: tensorboard, trackio, wandb"}
    )

    def __post_init__(self) -> None:
        for name in ("batch_size", "mega_batch", "epochs", "evaluations"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, was {getattr(self, name)}")
        for name in ("margin", "learning_rate"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"{name} must be above 0, was {getattr(self, name)}")
        for name in ("lambda_w", "lambda_c", "checkpoint_seconds"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} must not be negative, was {getattr(self, name)}")
        if self.seed < 0:
            raise InputError(f"seed must not be negative, was {self.seed}")
        if not 0 <= self.scrambling <= 1:
            raise InputError(f"scrambling is a share between 0 and 1, was {self.scrambling}")
        if not 0 < self.teacher_weight <= 1:
            raise InputError(f"teacher_weight is a share above 0 and at most 1, was {self.teacher_weight}")
        for name in ("weigh_similar", "neighbours"):
            if getattr(self, name) and not self.teacher:
                flag = f"--{name.replace('_', '-')}"
                raise InputError(f"{flag} is about a teacher's similarities; name one with --teacher")
        if self.patience is not None and self.patience < 1:
            raise InputError(f"patience must be at least 1, was {self.patience}")
        for name, allowed in (("precision", ("float32", "bf16", "fp16")), ("device", (None, "cpu", "cuda"))):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} must be one of {', '.join(map(str, allowed))}, was {getattr(self, name)!r}")
        if self.negatives not in ("max", "mix", "rand"):
            raise InputError(f"negatives must be max, mix or rand, was {self.negatives!r}")

    @property
    def margin_weight(self) -> float:
        """Share of the margin loss."""
        return 1 - self.teacher_weight if self.teacher else 1.0

    @property
    def mega_pairs(self) -> int:
        """Pairs of a mega-batch."""
        return self.batch_size * self.mega_batch
