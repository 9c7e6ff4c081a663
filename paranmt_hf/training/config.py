"""The settings of training, each with its source, and of distillation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from paranmt_hf.errors import refuse
from paranmt_hf.util.markers import Advanced, AlsoWrites, Count, Group, PythonOnly, Range, RunOnly, Seed, Share
from paranmt_hf.util.settings import Settings

Negatives = Literal["max", "mix", "rand"]
# Larger numbers of steps or pairs would need more memory than any machine has.
Size = Annotated[int, Range(at_least=1, at_most=1_000_000)]
Strength = Annotated[float, Range(at_least=0, at_most=1_000_000)]
OPTIMIZATION = Group("optimization", "How a gradient becomes a step, and what weights are pulled towards.")
MINING = Group("mining", "How negatives are chosen.")
TEACHING = Group("teaching", "How the similarities of a `teacher` are learned.")


@dataclass(frozen=True)
class TrainConfig(Settings):
    """How an encoder is trained; the defaults are those of ParaNMT-50M (Wieting & Gimpel 2018, section 5.2).

    Attributes:
        margin: Margin of the loss (ParaNMT-50M, section 4; arXiv:1511.08198, equation 1).
        batch_size: Pairs of a mini-batch (section 5.2).
        mega_batch: M, the mini-batches of a mega-batch (section 4, table 6).
        learning_rate: Rate of the optimizer (section 5.2).
        epochs: Passes over the pairs (section 5.2).
        optimizer: Adam (section 5.2); arXiv:1511.08198, section 4.2, tries AdaGrad too, at rates of 0.05 and less.
        decay: Lower the rate linearly to zero (not in the papers).
        clip: Largest norm of a step's gradient over all weights; arXiv:1511.08198 clips at 1; no limit if not given.
        freeze_words: Leave word embeddings as they are, and train the other weights (arXiv:1511.08198, section 4.2).
        word_factors: Train one factor for each word, by which its vector is multiplied, and nothing else; model word
            (arXiv:1511.08198, footnote 24).
        lambda_w: Weight of the squared distance of embeddings from the initial ones (arXiv:1511.08198, equation 1).
        lambda_c: Weight of the squared norm of compositional parameters (arXiv:1511.08198, equation 1), of an
            identity-RNN of their squared distance from the initial ones (section 3).
        scrambling: Share of sentences whose words are shuffled, for models that read words in order (section 5.2).
        negatives: Negative of a sentence: the most similar one (max), a random one for half of them (mix), or for all
            (rand; arXiv:1511.08198, section 3.1.1).
        one_sided: Only the reference gets a negative, another reference (ParaNMT-50M as printed), instead of both
            sides (arXiv:1511.08198, equation 1).
        mining_precision: Precision of the similarities when negatives are mined; averaging models on the CPU; if not
            given, int8 if the processor has instructions for it.
        teacher: Teachers whose similarities are learned too (not in the papers): SentenceTransformer folders or Hub
            ids, or functions, as FILE.py:NAME or MODULE:NAME, that take a list of texts and return their vectors.
            Of several, the mean of their cosines is learned, each divided by its standard deviation.
        teacher_weight: Share of the teacher's term in the loss; at 1.0 there is no margin loss.
        teacher_prompt: Text in front of each sentence that a teacher reads, such as "query: ", one for each teacher;
            the default prompt of a model if not given.
        teacher_loss: How cosines are compared with the teacher's (not in the papers): by their squared difference
            (squares), by that times the teacher's cosine, 0 if negative, plus 0.05 (weighted), or by the cross-entropy
            of the softmax over the other sentences of the mini-batch (listwise).
        temperature: Temperature of the softmax of the listwise loss.
        neighbours: Mini-batches of pairs that the teacher finds similar; averaging models (not in the papers).
        teacher_cache: Folder that keeps the teacher's vectors for other runs; the work folder if not given.
        seed: Decides the order of pairs, scrambling and random negatives.
        evaluations: Evaluations on the development set in each epoch.
        patience: Stop after this number of evaluations without a better development score.
        device: Where to train; if not given, averaging models choose the CPU, others a GPU if there is one.
        precision: Precision in which a teacher encodes, and in which a GPU trains LSTM models; averaging models are
            trained in float32.
        report_to: Where losses and development scores are reported to: tensorboard (files in `<out>.runs`, those of a
            recipe in `<out>.steps`), trackio, wandb.
    """

    margin: Annotated[float, Range(above=0, at_most=2)] = 0.4
    batch_size: Size = 100
    mega_batch: Size = 40
    learning_rate: Annotated[float, Range(above=0, at_most=1)] = 0.001
    epochs: Size = 5
    optimizer: Annotated[Literal["adam", "adagrad"], OPTIMIZATION, Advanced] = "adam"
    decay: Annotated[bool, OPTIMIZATION, Advanced] = False
    clip: Annotated[float | None, Range(above=0), OPTIMIZATION, Advanced] = None
    freeze_words: Annotated[bool, OPTIMIZATION, Advanced] = False
    word_factors: Annotated[bool, OPTIMIZATION, Advanced] = False
    lambda_w: Annotated[Strength, OPTIMIZATION, Advanced] = 0.0
    lambda_c: Annotated[Strength, OPTIMIZATION, Advanced] = 0.0
    scrambling: Annotated[Share, Advanced] = 0.3
    negatives: Annotated[Negatives, MINING, Advanced] = "max"
    one_sided: Annotated[bool, MINING, Advanced] = False
    mining_precision: Annotated[Literal["float32", "int8"] | None, PythonOnly] = None
    teacher: tuple[str, ...] | None = None
    teacher_weight: Annotated[float, Range(above=0, at_most=1), TEACHING, Advanced] = 1.0
    teacher_prompt: Annotated[tuple[str, ...] | None, PythonOnly] = None
    teacher_loss: Annotated[Literal["squares", "weighted", "listwise"], TEACHING, Advanced] = "squares"
    temperature: Annotated[float, Range(at_least=0.001, at_most=10), TEACHING, Advanced] = 0.05
    neighbours: Annotated[bool, TEACHING, Advanced] = False
    teacher_cache: Annotated[str | None, TEACHING, Advanced, RunOnly, AlsoWrites] = None
    seed: Seed = 1
    evaluations: Annotated[Size, Advanced] = 1
    patience: Annotated[Count | None, Advanced] = None
    device: Literal["cpu", "cuda"] | None = None
    precision: Annotated[Literal["float32", "bf16", "fp16"], Advanced] = "float32"
    report_to: Annotated[str | None, Advanced, RunOnly] = None

    def __post_init__(self) -> None:
        for name in ("teacher", "teacher_prompt"):
            if isinstance(value := getattr(self, name), str):
                object.__setattr__(self, name, (value,))
        super().__post_init__()
        refuse(
            self.margin_weight > 0 and self.mega_pairs < 2,
            "`batch_size` 1 with `mega_batch` 1 leaves one pair to a mega-batch, and no negative; raise one",
        )
        for name in ("teacher_prompt", "neighbours"):
            alone = getattr(self, name) and not self.teacher
            refuse(alone, f"`{name}` is about a teacher's similarities; name one with `teacher`", option=name)
        refuse(
            self.word_factors and (self.freeze_words or self.lambda_w or self.lambda_c),
            "`word_factors` trains neither vectors nor other weights; leave out `freeze_words`, `lambda_w` and "
            "`lambda_c`",
            option="word_factors",
        )

    @property
    def margin_weight(self) -> float:
        """Weight of the margin loss in the loss, from 0 to 1."""
        return 1 - self.teacher_weight if self.teacher else 1.0

    @property
    def mega_pairs(self) -> int:
        """Number of pairs of a mega-batch."""
        return self.batch_size * self.mega_batch
