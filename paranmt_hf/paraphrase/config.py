"""The settings of paraphrasers: what is trained, how, and how it is asked for paraphrases."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Literal

from paranmt_hf.errors import InputError
from paranmt_hf.util.settings import check, is_given, seed_setting, setting

# Memory and time grow with these, and no paraphrase of a sentence gains from more.
MOST_BEAMS, MOST_PIECES, MOST = 200, 10_000, 1_000_000
RATES = {"lstm": 1e-3, "base": 1e-4}


@dataclass(frozen=True)
class ParaphraserConfig:
    """Which encoder-decoder; the default is that of ParaNMT-50M, section 6, which leaves its sizes open."""

    model: Literal["lstm"] = setting(
        "lstm", "bidirectional LSTM encoder, two-layer LSTM decoder, bilinear attention (ParaNMT-50M, section 6)"
    )
    base: str | None = setting(
        None, "folder or Hub id of an encoder-decoder of transformers that is trained on, in place of --model"
    )
    pieces: int = setting(
        16_000, "most pieces of the byte-level BPE vocabulary, made of the data", at_least=300, at_most=MOST
    )
    embedding: int = setting(300, "width of a piece's vector", at_least=1, at_most=MOST_PIECES)
    hidden: int = setting(512, "width of encoder and decoder states, an even number", at_least=2, at_most=MOST_PIECES)
    encoder_layers: int = setting(1, "layers of the encoder", at_least=1, at_most=100)
    decoder_layers: int = setting(2, "layers of the decoder (section 6: two)", at_least=1, at_most=100)
    dropout: float = setting(0.2, "share of values that are dropped in training", at_least=0, at_most=0.99)
    untied: bool = setting(False, "give the output layer weights of its own, not those of the embeddings")

    def __post_init__(self) -> None:
        check(self)
        if self.hidden % 2:
            raise InputError(f"hidden is shared by two directions of the encoder and must be even, was {self.hidden}")
        if self.base is not None:
            shape = [name for name in self.__dataclass_fields__ if name != "base" and is_given(self, name)]
            if shape:
                raise InputError(
                    f"base {self.base} has its own shape and pieces; leave out "
                    f"{', '.join('--' + name.replace('_', '-') for name in shape)}"
                )


@dataclass(frozen=True)
class ParaphraserTraining:
    """How an encoder-decoder is trained on pairs."""

    direction: Literal["to-reference", "to-translation", "both"] = setting(
        "to-reference", "what is generated: the reference, which a person wrote; the translation; or each of the other"
    )
    epochs: int = setting(5, "passes over the pairs", at_least=1, at_most=MOST)
    max_steps: int | None = setting(None, "stop after so many steps (default: after all epochs)", at_least=1)
    batch_tokens: int = setting(
        4096, "size of a batch: pairs times pieces of the longest sentence", at_least=1, at_most=10_000_000
    )
    max_pieces: int = setting(
        80, "leave out pairs with a sentence of more pieces, end included", at_least=2, at_most=MOST_PIECES
    )
    learning_rate: float | None = setting(
        None, "highest rate of Adam (default: 0.001, of --base 0.0001)", above=0, at_most=1e30
    )
    warmup: int = setting(
        200, "steps in which the rate rises, at most a tenth of all of them", at_least=0, at_most=MOST
    )
    schedule: Literal["linear", "cosine", "inverse-sqrt", "constant"] = setting(
        "linear", "how the rate falls afterwards: to --last-rate in a line or half a cosine, or with the root of steps"
    )
    last_rate: float = setting(
        0.0, "where the rate ends, as a part of --learning-rate; it never falls lower", at_least=0, at_most=1
    )
    clip: float = setting(1.0, "largest norm of a step's gradient", above=0)
    label_smoothing: float = setting(
        0.1, "probability that a target spreads evenly over all pieces", at_least=0, at_most=0.99
    )
    held_out: float = setting(
        0.01, "share of the references that is not trained on but measured", at_least=0, at_most=0.9
    )
    measured_pairs: int = setting(500, "most held-out pairs that are measured", at_least=1, at_most=MOST)
    evaluations: int = setting(
        5, "how often loss, perplexity and BLEU of held-out pairs are measured", at_least=1, at_most=MOST
    )
    noise: float = setting(
        0.0,
        "share of the pairs whose source is, in training, their own target with noise, so that noisy input is brought "
        "into a standard form (ParaNMT-50M, table 11)",
        at_least=0,
        at_most=1,
    )
    precision: Literal["auto", "fp32", "bf16", "fp16"] = setting(
        "auto", "numbers of a step; auto is bf16 on a GPU that has it, else fp32"
    )
    device: Literal["cpu", "cuda"] | None = setting(None, "cpu or cuda (default: cuda if there is one)")
    report_to: str | None = setting(None, "where the trainer reports to: tensorboard, trackio, wandb")
    seed: int = seed_setting(1, "decides initial weights, order and dropout")
    checkpoint_seconds: float = setting(600, "seconds between two checkpoints", at_least=0)

    def __post_init__(self) -> None:
        check(self)
        if self.schedule == "constant" and self.last_rate:
            raise InputError("last_rate is where a rate ends that falls, and a constant one does not; leave it out")

    def rate(self, step: int, steps: int) -> float:
        """Give the rate of a step, as a part of `learning_rate`.

        Args:
            step: The step, from 0.
            steps: All steps of the run.
        """
        warmup = min(self.warmup, steps // 10)
        if step < warmup:
            return step / warmup
        if self.schedule == "constant":
            return 1.0
        if self.schedule == "inverse-sqrt":
            return max(self.last_rate, math.sqrt(max(1, warmup) / max(1, warmup, step)))
        left = max(0.0, (steps - step) / max(1, steps - warmup))
        if self.schedule == "cosine":
            left = (1 - math.cos(math.pi * left)) / 2
        return self.last_rate + (1 - self.last_rate) * left

    def resolved(self, model: str) -> ParaphraserTraining:
        """The same with what was left open filled in; `model` is `lstm` or `base`."""
        return replace(self, learning_rate=self.learning_rate or RATES[model])


@dataclass(frozen=True)
class ParaphraseConfig:
    """How a paraphraser searches."""

    n: int = setting(1, "paraphrases of each sentence, all different", at_least=1, at_most=MOST_BEAMS)
    beams: int = setting(
        4,
        "beams; at least as many as paraphrases are taken. 1 takes the most probable piece at each step",
        at_least=1,
        at_most=MOST_BEAMS,
    )
    groups: int = setting(
        1,
        "groups of beams, each kept from the pieces that those before it have at the same place (Vijayakumar et al. "
        "2016, diverse beam search)",
        at_least=1,
        at_most=MOST_BEAMS,
    )
    diversity: float = setting(
        0.5, "what a piece that a group before has at the same place loses of its log-probability", at_least=0
    )
    sample: bool = setting(False, "draw pieces by their probability, in place of beams")
    temperature: float = setting(1.0, "with --sample: below 1 the probable becomes more probable", above=0)
    top_p: float = setting(
        1.0, "with --sample: of the most probable pieces only so many as have this probability", above=0, at_most=1
    )
    max_length: int = setting(
        80,
        "most pieces of a sentence, end included; a longer one is marked, and no paraphrase gets longer",
        at_least=2,
        at_most=MOST_PIECES,
    )
    min_score: float | None = setting(
        None, "keep paraphrases of at least this paraphrase score", at_least=-1, at_most=1
    )
    max_overlap: float | None = setting(
        None, "keep paraphrases that share at most this part of word trigrams with the sentence", at_least=0, at_most=1
    )
    max_mutual_overlap: float | None = setting(
        None, "the same between paraphrases of a sentence: the more probable stays", at_least=0, at_most=1
    )
    keep_copies: bool = setting(
        False,
        "keep paraphrases that have the letters and digits of their sentence, case aside; else they are left out",
    )
    order: Literal["probability", "score"] = setting(
        "probability",
        "which paraphrases of a sentence come first: the most probable, or, of all that the beams find, those of the "
        "highest paraphrase score",
    )
    batch_tokens: int | None = setting(
        None,
        "batch size: sentences times pieces of the longest (default: 800 on a CPU, 8192 on a GPU)",
        at_least=1,
        at_most=10_000_000,
    )
    device: str | None = setting(None, "cpu, cuda or cuda:N (default: cuda if there is one)")
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = setting(
        "auto", "numbers; auto is float32 on a CPU, float16 on a GPU"
    )
    seed: int = seed_setting(1, "decides what --sample draws")

    def __post_init__(self) -> None:
        check(self)
        if self.device is not None and not re.fullmatch(r"cpu|cuda(:\d+)?", self.device):
            raise InputError(f"device must be cpu, cuda or cuda:N, was {self.device!r}")
        if self.sample and self.groups > 1:
            raise InputError("give either sample or groups: groups are of beams, of which sampling has none")
        if not self.sample and (is_given(self, "temperature") or is_given(self, "top_p")):
            raise InputError("temperature and top_p change nothing of beams; add sample, or leave them out")
        if self.groups == 1 and is_given(self, "diversity"):
            raise InputError("diversity changes nothing of one group; add groups, or leave it out")

    @property
    def chooses(self) -> bool:
        """Whether some of what is found may be left out, so that all of it is looked at."""
        limits = (self.min_score, self.max_overlap, self.max_mutual_overlap)
        return self.order == "score" or any(limit is not None for limit in limits)

    @property
    def scored_for(self) -> str | None:
        """The setting that nothing can be done about without paraphrase scores; None where there is no such one."""
        if self.min_score is not None:
            return "min_score"
        return "order score" if self.order == "score" else None

    @property
    def width(self) -> int:
        """Number of beams that are followed: at least as many as paraphrases, equally many in each group."""
        beams = max(self.beams, self.n)
        return beams if self.groups == 1 else -(-beams // self.groups) * self.groups
