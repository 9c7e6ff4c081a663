"""The settings of Sent2Vec, its record and its card: Pagliardini, Gupta and Jaggi (2018, arXiv:1703.02507)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from paranmt_hf.encoders.config import FAMILIES
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import Results
from paranmt_hf.hub.publish import About
from paranmt_hf.training.card import encoder_card, encoder_values
from paranmt_hf.training.record import thinned
from paranmt_hf.util.markers import Advanced, Count, Group, Range, RunOnly, Seed
from paranmt_hf.util.records import Record
from paranmt_hf.util.settings import Settings, option_words

CHECKPOINT = "checkpoint.safetensors"
# The loss of a target takes the logarithm of a product of as many numbers of at most 2, which must stay finite.
MOST_NEGATIVES = 1000
MOST_BUCKETS = 2**28  # A byte for each bucket while n-grams are counted, four while they are trained
OF_NGRAMS = ("dropped_ngrams", "buckets", "min_ngram_count")  # Settings that have no effect on words alone
# Table 5: dimensions, minimum counts of words and of targets, epochs, threshold of subsampling, n-grams dropped. In
# each the rate is 0.2 and a target has 10 negatives. First words alone, then words and pairs of words.
_TABLE_5 = {
    "books": ((700, 5, 8, 13, 1e-5, 0), (700, 5, 5, 12, 5e-6, 7)),
    "wikipedia": ((600, 8, 20, 9, 1e-5, 0), (700, 8, 20, 9, 5e-6, 4)),
    "twitter": ((700, 20, 20, 3, 1e-6, 0), (700, 20, 20, 3, 1e-6, 3)),
}
# A text of fewer words gets a larger threshold, or few words are ever predicted: this, divided by the number of words.
THRESHOLD_OF_A_WORD, HIGHEST_THRESHOLD = 5000, 1e-3
_NAMES = ("dimension", "min_count", "min_target_count", "epochs", "threshold", "dropped_ngrams")
STEPS = Group("steps", "Which words are predicted, against how many others, and at which rate.")
NGRAMS = Group("ngram_settings", "How n-grams are hashed and trained.")


@dataclass(frozen=True)
class Sent2VecConfig(Settings):
    """Settings of Sent2Vec; missing ones are those of the preset, for words alone or with n-grams (table 5).

    Attributes:
        preset: Corpus of the paper whose settings are the defaults (table 5); if left out those of Wikipedia, with a
            higher threshold for a text of fewer words than theirs.
        ngrams: Number of words of the longest n-grams; 1 for words alone (section 2).
        dimension: Dimensions of a vector (table 5: 600 or 700).
        min_count: Leave out words that occur less often (table 5).
        min_target_count: Words that occur less often are in contexts, but are not predicted (table 5).
        max_words: Maximum number of words, the most frequent ones.
        epochs: Passes over the text (table 5).
        learning_rate: Rate at the beginning; it falls linearly to zero (table 5).
        threshold: t: a word of frequency f is predicted with probability sqrt(t/f) + t/f (section 2.1, table 5).
        negatives: Number of negatives of a target (table 5).
        l1: Weight of the L1 norm of the rows of contexts, targets and negatives, which makes numbers zero (version 3
            of the paper, appendix B); those of contexts are shrunk once for each sentence.
        dropped_ngrams: K: number of n-grams of each sentence that are left out at random (section 2.4, table 5).
        buckets: Number of buckets that n-grams are hashed into; only those that occur get a vector.
        min_ngram_count: Buckets that occur less often get no vector (not in the paper).
        context: What a target is predicted from: the average of the rest of its sentence (equations 2 and 3; `paper`);
            of these and a trained row in the place of the target (`placeholder`); or, as the authors' program does, of
            the n-grams over that place too (`program`). With `cbow` of words alone, of the words around it: the CBOW
            that the paper compares with (section 2.3).
        window: CBOW: the number of words on either side of a target is drawn from 1 to this.
        cut: How text is cut: lower-cased words as WORD reads them, or at blanks alone, for text that is tokenised.
        seed: Seed of the initial weights, targets, negatives and dropped n-grams.
        threads: Number of threads that train at once without locks; with more than one, equal runs differ a little.
    """

    preset: Annotated[Literal["books", "wikipedia", "twitter"] | None, RunOnly] = None
    ngrams: Annotated[int, Range(at_least=1, at_most=20)] = 1
    dimension: Annotated[int | None, Range(at_least=1, at_most=100_000)] = None
    min_count: Count | None = None
    min_target_count: Annotated[Count | None, STEPS] = None
    max_words: Annotated[Count | None, Advanced] = None
    epochs: Annotated[int | None, Range(at_least=1, at_most=1_000_000)] = None
    learning_rate: Annotated[float, Range(above=0, at_most=1), STEPS] = 0.2
    threshold: Annotated[float | None, Range(above=0, at_most=1), STEPS] = None
    negatives: Annotated[int, Range(at_least=1, at_most=MOST_NEGATIVES), STEPS] = 10
    l1: Annotated[float, Range(at_least=0, at_most=1), STEPS] = 0.0
    dropped_ngrams: Annotated[int | None, Range(at_least=0), NGRAMS] = None
    buckets: Annotated[int, Range(at_least=0, at_most=MOST_BUCKETS), NGRAMS] = 2_000_000
    min_ngram_count: Annotated[int, Range(at_least=1, at_most=255), NGRAMS] = 1
    context: Literal["paper", "placeholder", "program", "cbow"] = "paper"
    window: Annotated[int, Range(at_least=1, at_most=1_000_000), STEPS] = 5
    cut: Literal["words", "blanks"] = "words"
    seed: Seed = 1
    threads: Annotated[int, Range(at_least=1, at_most=1024)] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ngrams > 1 and self.buckets < 1:
            raise InputError(
                f"`ngrams` {self.ngrams} needs buckets that they are hashed into, and `buckets` is {self.buckets}; "
                "leave it out, or give 1 for `ngrams`",
                option="buckets",
            )
        if self.context == "cbow":
            self._check_cbow()
        elif self.window != Sent2VecConfig.window:
            raise InputError("`window` is for `context` cbow; leave it out, or choose cbow", option="window")

    def _check_cbow(self) -> None:
        """Reject settings that CBOW has not."""
        # All words are predicted.
        for name, usual in (("ngrams", {1}), ("l1", {0.0}), ("min_target_count", {None, 1})):
            if getattr(self, name) not in usual:
                raise InputError(f"`context` cbow has no `{name}`; leave it out", option=name)

    def resolved(self) -> Sent2VecConfig:
        """Fill in missing settings; without n-grams, their settings become the defaults.

        Without a preset the threshold is left to the text (`threshold_for`).
        """
        values: dict[str, Any] = dict(zip(_NAMES, self._table, strict=True))
        if self.preset is None:
            del values["threshold"]
        values = {name: value for name, value in values.items() if getattr(self, name) is None}
        if self.context == "cbow":
            values["min_target_count"] = 1
        if self.ngrams == 1:
            usual = Sent2VecConfig()
            values |= {name: getattr(usual, name) for name in OF_NGRAMS} | {"dropped_ngrams": 0}
        return replace(self, **values)

    @property
    def _table(self) -> tuple[int, int, int, int, float, int]:
        return _TABLE_5[self.preset or "wikipedia"][self.ngrams > 1]

    def threshold_for(self, tokens: int) -> float:
        """The threshold for a text of a number of tokens: the one given, or by default as high as it needs."""
        if self.threshold is not None:
            return self.threshold
        # Two digits are enough.
        return max(self._table[4], float(f"{min(THRESHOLD_OF_A_WORD / tokens, HIGHEST_THRESHOLD):.2g}"))


@dataclass
class Sent2VecHistory:
    """The course of a run: words read, targets predicted, the sum of their losses, and the time spent training.

    `losses` are the words read, and the mean loss of a target since the entry before.
    """

    losses: list[tuple[int, float]] = field(default_factory=list)
    words: int = 0
    targets: int = 0
    total: float = 0.0
    seconds: float = 0.0

    def add(self, words: int, targets: int, loss: float) -> None:
        """Add a number of words, of their targets, and the sum of their losses."""
        self.words, self.targets, self.total = self.words + words, self.targets + targets, self.total + loss
        if targets:
            self.losses = thinned([*self.losses, (self.words, loss / targets)])

    @property
    def mean(self) -> float:
        """Mean loss of all targets, the value that the authors' program shows."""
        return self.total / max(self.targets, 1)


@dataclass(frozen=True)
class Sent2VecSettings:
    """Everything that determines a model: resolved settings, and the identity of each source, with checksums."""

    sent2vec: Sent2VecConfig
    data: list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Sent2VecRecord(Record):
    """The content of the `sent2vec.json` of an encoder."""

    FILE: ClassVar[str] = "sent2vec.json"
    KIND: ClassVar[str] = "an encoder trained on sentences (`paranmt train-sent2vec`)"

    settings: Sent2VecSettings
    sources: list[str]  # Names of what was read, without folders
    datasets: list[str]  # Ids of datasets on the Hub among them
    sentences: int  # Number of sentences with at least two known words
    words: int  # Number of words with a vector
    ngrams: int  # Number of buckets of n-grams with a vector
    known: int  # Number of known words in these sentences
    threshold: float  # t of the subsampling
    course: Sent2VecHistory
    dimension: int
    parameters: int  # Number of weights of the model, without the output vectors


def sent2vec_values(
    name: str, folder: Path, training: Sent2VecRecord, about: About | None = None, results: Sequence[Results] = ()
) -> dict[str, Any]:
    """Collect the values of the card; see `encoder_values`."""
    record = training.to_json()
    record["course"] = {"targets": training.course.targets}
    return encoder_values(
        "sent2vec",
        name,
        folder,
        record,
        about,
        results,
        commands=[_command(training)],
        datasets=training.datasets,
        languages=[],
        limits=FAMILIES["sent2vec" if training.ngrams else "word"].limits,
        mean_loss=training.course.mean,
    )


def write_sent2vec_card(folder: Path, name: str, training: Sent2VecRecord) -> None:
    """Write the card of an encoder into its folder, before evaluation and publication."""
    card = encoder_card(sent2vec_values(name, folder, training))
    (folder / "README.md").write_text(card, encoding="utf8", newline="\n")


def _command(training: Sent2VecRecord) -> str:
    words = ["paranmt train-sent2vec", *(shlex.quote(" ".join(name.split())) for name in training.sources)]
    columns = [str(source.get("columns", {}).get("sentence", "")) for source in training.settings.data]
    if columns and all(columns) and set(columns) != {"reference", "translation"}:
        words += ["--columns", *map(shlex.quote, dict.fromkeys(columns))]
    config = training.settings.sent2vec
    usual = replace(Sent2VecConfig(ngrams=config.ngrams).resolved(), ngrams=1)
    return " ".join([*words, *option_words(config, usual), "--out FOLDER"])
