"""Settings of paraphrasers: which model is trained, how it is trained, and how it searches for paraphrases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from paranmt_hf.corpus.translation.translator import MAX_TOKENS, Beams, check_device
from paranmt_hf.errors import InputError
from paranmt_hf.util.markers import Advanced, Cosine, Count, Group, PythonOnly, Range, RunOnly, Seed, Share
from paranmt_hf.util.settings import Settings, is_given, values_for
from paranmt_hf.util.typed import named_values
from paranmt_hf.util.wording import perhaps

ARCHITECTURE = Group("architecture", "Size of a new model.")
OPTIMIZATION = Group("optimization", "Learning rate, loss, number format, and how often is measured and saved.")
DECODING = Group("decoding", "How paraphrases are found.")

Width = Annotated[int, Range(at_least=1, at_most=MAX_TOKENS)]
Dropout = Annotated[float, Range(at_least=0, at_most=0.99)]


@dataclass(frozen=True)
class ParaphraserConfig(Settings):
    """The encoder-decoder to train; the default is that of ParaNMT-50M, section 6, which does not give its sizes.

    Attributes:
        model: `lstm`: a bidirectional LSTM encoder and a two-layer LSTM decoder with bilinear attention (ParaNMT-50M,
            section 6). `controlled`: a network whose paraphrases have the requested syntax (Iyyer et al. 2018, section
            3); it is trained on the result of `paranmt parse`.
        base: Folder or Hub id of an encoder-decoder of transformers that is trained further, in place of a new model.
        pieces: Maximum number of pieces of the byte-level BPE vocabulary, which is trained on the data.
        embedding: Dimension of the vector of a piece.
        hidden: Dimension of encoder and decoder states, an even number.
        dropout: Share of values that are dropped in training.
        tree_hidden: Dimension of the states of the parse generator, an even number (`controlled`).
        same_template: Also train on pairs whose two trees have the same template, from which the network does not
            learn to change the syntax (`controlled`).
    """

    model: Literal["lstm", "controlled"] = "lstm"
    base: str | None = None
    pieces: Annotated[int, Range(at_least=300, at_most=1_000_000), ARCHITECTURE] = 16_000
    embedding: Annotated[Width, ARCHITECTURE] = 300
    hidden: Annotated[Width, ARCHITECTURE] = 512
    dropout: Annotated[Dropout, ARCHITECTURE] = 0.2
    tree_hidden: Annotated[Width, ARCHITECTURE] = 256
    same_template: Annotated[bool, ARCHITECTURE] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hidden", "tree_hidden"):
            if getattr(self, name) % 2:
                raise InputError(
                    f"{name} is shared by two directions of the encoder and must be even, was {getattr(self, name)}",
                    option=name,
                )
        if self.base is not None and (
            given := [name for name in self.__dataclass_fields__ if name != "base" and is_given(self, name)]
        ):
            named = ", ".join(f"`{name}`" for name in given)
            raise InputError(f"base {self.base} has its own shape and pieces; leave out {named}", option="base")


@dataclass(frozen=True)
class ParaphraserTraining(Settings):
    """How a paraphraser is trained on pairs.

    Attributes:
        direction: What the model learns to generate: the reference, which a person wrote; the translation; or each
            side from the other.
        epochs: Number of passes over the pairs.
        max_steps: Stop after this number of steps (default: after all epochs).
        batch_tokens: Maximum size of a batch: number of pairs times pieces of the longest sentence.
        max_pieces: Leave out pairs with a sentence of more pieces, the end piece included.
        learning_rate: Highest learning rate of Adam (default: 0.001, with `base` 0.0001).
        warmup: Number of steps in which the learning rate rises, at most a tenth of all steps; then it falls linearly
            to zero.
        label_smoothing: Probability that a target spreads evenly over all pieces.
        held_out: Share of the references whose pairs are not trained on, but used to measure the model.
        evaluations: Number of times that loss, perplexity and BLEU on held-out pairs are measured.
        noise: Share of the pairs whose source is replaced in training by their target with noise, so that the model
            learns to bring noisy input into a standard form (ParaNMT-50M, table 11).
        precision: Number format of a step; `auto` is bf16 on a GPU that has it, else fp32.
        device: `cpu` or `cuda` (default: `cuda` if there is a GPU).
        report_to: Service to which losses and held-out figures are reported: tensorboard (a folder in `<out>.runs`),
            trackio, wandb.
        seed: Seed of initial weights, order and dropout.
        checkpoint_seconds: Seconds between two checkpoints.
    """

    direction: Literal["to-reference", "to-translation", "both"] = "to-reference"
    epochs: Count = 5
    max_steps: Count | None = None
    batch_tokens: Annotated[int, Range(at_least=1, at_most=10_000_000)] = 4096
    max_pieces: Annotated[int, Range(at_least=2, at_most=MAX_TOKENS)] = 80
    learning_rate: Annotated[float, Range(above=0, at_most=1e30)] | None = None
    warmup: Annotated[int, Range(at_least=0), OPTIMIZATION] = 200
    label_smoothing: Annotated[Dropout, PythonOnly] = 0.1
    held_out: Annotated[float, Range(at_least=0, at_most=0.9)] = 0.01
    evaluations: Annotated[Count, OPTIMIZATION] = 5
    noise: Annotated[Share, Advanced] = 0.0
    precision: Annotated[Literal["auto", "fp32", "bf16", "fp16"], OPTIMIZATION] = "auto"
    device: Literal["cpu", "cuda"] | None = None
    report_to: Annotated[str | None, RunOnly, Advanced] = None
    seed: Seed = 1
    checkpoint_seconds: Annotated[float, Range(at_least=0), RunOnly, OPTIMIZATION] = 600


@dataclass(frozen=True)
class ParaphraseConfig(Settings):
    """How a paraphraser searches, and which paraphrases it keeps.

    Attributes:
        n: Maximum number of paraphrases of each sentence, all different.
        beams: Number of beams, at least `n`; 1 takes the most probable piece at each step.
        groups: Number of groups of beams. A group is discouraged from pieces that earlier groups have at the same
            position (Vijayakumar et al. 2016, diverse beam search).
        diversity: Amount by which the log-probability of such a piece is lowered.
        sample: Sample pieces by their probability, in place of beams.
        temperature: Temperature of sampling; below 1, probable pieces become more probable.
        top_p: Sample from the smallest set of most probable pieces that together reach this probability.
        max_length: Maximum number of pieces of a sentence, the end piece included. A longer sentence gets no
            paraphrase but a note, and no paraphrase is longer.
        min_score: Keep paraphrases of at least this paraphrase score (default: 0.5 in files of paraphrases; -1 keeps
            all).
        max_overlap: Keep paraphrases with at most this trigram overlap with their sentence.
        same_meaning: Keep only paraphrases that differ in no number, negation, name, opposite and the like (English;
            docs/same-meaning.md).
        max_mutual_overlap: Of two paraphrases of a sentence with a higher trigram overlap, keep only the more probable
            one.
        keep_copies: Keep paraphrases that have the letters and digits of their sentence, case aside; they are left out
            by default.
        has_template: With a controlled network: keep only paraphrases that the parser finds to have the requested
            template; more beams find more of them (default: yes, unless the parser is a file of trees, which cannot
            parse new sentences).
        trees: With `has_template`: number of the most probable trees, of each template, after which paraphrases are
            generated.
        order: Which paraphrases of a sentence come first: the most probable ones (`probability`), or, of all that are
            found, those of the highest paraphrase score (`score`).
        batch_tokens: Maximum size of a batch: number of sentences times pieces of the longest one (default: 800 on a
            CPU, 8192 on a GPU).
        device: `cpu`, `cuda` or `cuda:N` (default: `cuda` if there is a GPU).
        dtype: Number format; `auto` is float32 on a CPU, float16 on a GPU.
        seed: Seed of samples; in an evaluation, also of the choice of sentences and of their noise.
    """

    n: Beams = 1
    beams: Annotated[Beams, DECODING] = 4
    groups: Annotated[Beams, DECODING] = 1
    diversity: Annotated[float, Range(at_least=0), DECODING] = 0.5
    sample: Annotated[bool, DECODING] = False
    temperature: Annotated[float, Range(above=0), DECODING] = 1.0
    top_p: Annotated[float, Range(above=0, at_most=1), DECODING] = 1.0
    max_length: Annotated[int, Range(at_least=2, at_most=MAX_TOKENS), DECODING] = 80
    min_score: Cosine | None = None
    max_overlap: Share | None = None
    same_meaning: bool = False
    max_mutual_overlap: Annotated[Share | None, DECODING] = None
    keep_copies: Annotated[bool, DECODING] = False
    has_template: Annotated[bool | None, DECODING] = None
    trees: Annotated[Beams, DECODING] = 4
    order: Annotated[Literal["probability", "score"], DECODING] = "probability"
    batch_tokens: Annotated[int | None, Range(at_least=1, at_most=10_000_000), RunOnly, PythonOnly] = None
    device: Annotated[str | None, RunOnly] = None
    dtype: Annotated[Literal["auto", "float32", "float16", "bfloat16"], PythonOnly] = "auto"
    seed: Annotated[Seed, DECODING] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_device(self.device)
        if self.sample and self.groups > 1:
            raise InputError(
                "give either `sample` or `groups`: groups are of beams, of which sampling has none", option="sample"
            )

    def for_files(self) -> ParaphraseConfig:
        """Return the settings with a minimum score of 0.5, the default of files, unless one is set."""
        # A paraphrase with a score below 0.5 usually has another meaning.
        return replace(self, min_score=0.5) if self.min_score is None else self

    @property
    def chooses(self) -> bool:
        """Whether limits or scores select the paraphrases, so that more than `n` candidates are needed."""
        limits = (self.min_score, self.max_overlap, self.max_mutual_overlap)
        chooses = self.order == "score" or self.same_meaning or bool(self.has_template)
        return chooses or any(limit is not None for limit in limits)

    @property
    def scored_for(self) -> str | None:
        """Name of the setting that needs paraphrase scores, for errors; None if no setting does."""
        if self.min_score is not None:
            return "min_score"
        return "order score" if self.order == "score" else None

    @property
    def width(self) -> int:
        """Number of beams: at least `beams` and `n`, and a multiple of the number of groups."""
        beams = max(self.beams, self.n)
        return -(-beams // self.groups) * self.groups


@dataclass(frozen=True)
class Decoding:
    """A way to search for paraphrases, as the user named it."""

    name: str  # Name as the user gave it, such as `beams=8,groups=4`
    settings: dict[str, Any]  # The settings in the name
    config: ParaphraseConfig  # All settings


def read_decodings(names: Sequence[str], base: ParaphraseConfig) -> list[Decoding]:
    """Read decodings such as `beams=8,groups=4`, `greedy` or `sample`.

    Settings that a name does not mention are those of `base`. Raises `InputError` for two equal names, unknown
    settings, and settings that must be the same for all decodings.
    """
    if len(set(names)) < len(names):
        raise InputError(f"decodings must be different, were {' '.join(names)}", option="compare")
    short: dict[str, dict[str, Any]] = {"greedy": {"beams": 1, "n": 1}, "sample": {"sample": True}}
    # These settings must be the same for all decodings of an evaluation.
    common = ("device", "dtype", "batch_tokens", "seed", "max_length")
    found = []
    for name in names:
        values: dict[str, Any] = {}
        for part in name.split(","):
            own = short.get(part) or named_values(part)
            if own is None:
                raise InputError(
                    f"{name!r}: expected NAME=VALUE with commas between, such as beams=4, found {part!r}"
                    f"{perhaps(part, list(short))}",
                    option="compare",
                )
            values |= own
        try:
            (settings,) = values_for([ParaphraseConfig], values, "compare", without=common)
            found.append(Decoding(name, settings, replace(base, **settings)))
        except InputError as error:
            raise InputError(f"{name}: {error}", option="compare") from None
    return found
