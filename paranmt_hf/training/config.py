"""The settings of a training run, each with its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from paranmt_hf.errors import InputError
from paranmt_hf.util.settings import check, seed_setting, setting

Negatives = Literal["max", "mix", "rand"]
# Above every number of pairs, batches or passes that means something: a slip of the keyboard is refused.
MOST = 1_000_000
# A step of Adam moves every weight by as much as this.
LARGEST_RATE = 1
# Cosines differ by no more.
LARGEST_MARGIN = 2


@dataclass(frozen=True)
class TrainConfig:
    """How an encoder is trained; the defaults are ParaNMT-50M's (Wieting & Gimpel 2018, section 5.2) unless said."""

    margin: float = setting(
        0.4,
        "margin of the loss (ParaNMT-50M, section 4; arXiv:1511.08198, equation 1)",
        above=0,
        at_most=LARGEST_MARGIN,
    )
    batch_size: int = setting(100, "pairs of a mini-batch (section 5.2)", at_least=1, at_most=MOST)
    mega_batch: int = setting(40, "M: mini-batches of a mega-batch (section 4; table 6)", at_least=1, at_most=MOST)
    optimizer: Literal["adam", "adagrad"] = setting(
        "adam", "adam (section 5.2); arXiv:1511.08198, section 4.2, tries both, AdaGrad at rates of 0.05 and less"
    )
    learning_rate: float = setting(0.001, "rate of the optimiser (section 5.2)", above=0, at_most=LARGEST_RATE)
    clip: float | None = setting(
        None,
        "largest norm of a step's gradient over all weights; arXiv:1511.08198 clips at 1 (default: no limit)",
        above=0,
    )
    freeze_words: bool = setting(
        False, "leave word embeddings as given, and train what stands beside them (arXiv:1511.08198, section 4.2)"
    )
    decay: bool = setting(False, "lower the rate linearly to zero (not in the paper)")
    epochs: int = setting(5, "passes over the pairs (section 5.2)", at_least=1, at_most=MOST)
    scrambling: float = setting(
        0.3,
        "share of sentences whose words are shuffled, models that read words in order only (section 5.2)",
        at_least=0,
        at_most=1,
    )
    negatives: Negatives = setting(
        "max",
        "negative of a sentence: the most similar, half of them random, or all (arXiv:1511.08198, section 3.1.1)",
    )
    error_negatives: float = setting(
        0.0,
        "leave out pairs that differ in a number or a negation (columns number_mismatch and negation_mismatch), and "
        "let this share of the other pairs of their references have such a translation as negative where it is more "
        "similar; averaging models on the CPU (not in the papers)",
        at_least=0,
        at_most=1,
    )
    one_sided: bool = setting(
        False,
        "only the reference gets a negative, which is another reference (ParaNMT-50M as printed); else both sides do "
        "(arXiv:1511.08198, equation 1)",
    )
    mining_precision: Literal["float32", "int8"] | None = setting(
        None,
        "numbers of which similarities are products when negatives are mined; averaging models on the CPU (default: "
        "int8 where the processor is measured to be faster with it)",
    )
    lambda_w: float = setting(
        0.0,
        "weight of the squared distance of embeddings from the initial ones (arXiv:1511.08198, equation 1)",
        at_least=0,
        at_most=MOST,
    )
    lambda_c: float = setting(
        0.0,
        "weight of the squared norm of compositional parameters (arXiv:1511.08198, equation 1)",
        at_least=0,
        at_most=MOST,
    )
    teacher: str | None = setting(
        None, "SentenceTransformer folder or Hub id whose similarities are learned too (not in the papers)"
    )
    teacher_weight: float = setting(
        1.0, "share of the teacher's term in the loss; with 1.0 there is no margin loss", above=0, at_most=1
    )
    second_teacher: str | None = setting(
        None, "another teacher: the mean of both teachers' cosines is learned, each divided by its standard deviation"
    )
    teacher_loss: Literal["squares", "listwise"] = setting(
        "squares",
        "how cosines are compared with the teacher's: their squared difference, or the cross-entropy of the softmax "
        "over the other sentences of the mini-batch (not in the papers)",
    )
    temperature: float = setting(0.05, "of the softmax of the listwise loss", at_least=0.001, at_most=10)
    weigh_similar: bool = setting(
        False, "in the teacher's term a pair weighs the teacher's cosine (0 if negative) + 0.05 (not in the papers)"
    )
    neighbours: bool = setting(
        False,
        "mini-batches of pairs that the teacher finds similar; averaging models (not in the papers)",
    )
    seed: int = seed_setting(1, "decides the order of pairs, scrambling, random negatives")
    patience: int | None = setting(
        None, "stop after so many evaluations without a better development score", at_least=1
    )
    evaluations: int = setting(1, "evaluations on the development set in each epoch", at_least=1, at_most=MOST)
    checkpoint_seconds: float = setting(
        60.0, "time between two checkpoints; the result does not depend on it", at_least=0, changes_result=False
    )
    device: Literal["cpu", "cuda"] | None = setting(
        None, "where to train; averaging models choose the CPU, others a GPU if there is one"
    )
    precision: Literal["float32", "bf16", "fp16"] = setting(
        "float32", "mixed precision of the trainer (LSTM models, GPUs)"
    )
    mine_over: Literal["all", "rank"] | None = setting(
        None,
        "several processes: mine negatives among the mega-batches of all, or in its own part (default: averaging "
        "models on GPUs all, the trainer its own)",
        changes_result=False,
    )
    report_to: str | None = setting(
        None, "where the trainer reports to: tensorboard, trackio, wandb", changes_result=False
    )

    def __post_init__(self) -> None:
        check(self)
        if self.margin_weight > 0 and self.mega_pairs < 2 and self.mine_over != "all":
            raise InputError(
                "--batch-size 1 with --mega-batch 1 leaves one pair to a mega-batch, where it can have no negative; "
                "raise one of them"
            )
        for name in ("second_teacher", "weigh_similar", "neighbours"):
            if getattr(self, name) and not self.teacher:
                flag = f"--{name.replace('_', '-')}"
                raise InputError(f"{flag} is about a teacher's similarities; name one with --teacher")
        if self.second_teacher is not None and self.second_teacher == self.teacher:
            raise InputError("--second-teacher is the --teacher again; name another, or leave it out")
        if self.weigh_similar and self.teacher_loss == "listwise":
            raise InputError("--weigh-similar is for --teacher-loss squares; the listwise loss weighs by itself")

    @property
    def margin_weight(self) -> float:
        """Share of the margin loss."""
        return 1 - self.teacher_weight if self.teacher else 1.0

    @property
    def mega_pairs(self) -> int:
        """Pairs of a mega-batch."""
        return self.batch_size * self.mega_batch

    @property
    def needs_trainer(self) -> bool:
        """Whether averaging models too run through the trainer: on a GPU, for what the loop there does not do."""
        return self.device == "cuda" and (self.precision != "float32" or self.report_to is not None)
