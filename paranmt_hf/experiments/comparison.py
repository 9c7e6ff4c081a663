"""Experiments that train the same encoders on several samples of a corpus, with a record, a table and a figure.

Each trained encoder is a result of its own, so an interrupted experiment continues with the one that was training.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.release.release import read_record, release_files
from paranmt_hf.corpus.selection.filters import LengthLimit
from paranmt_hf.corpus.selection.run_filters import ReleaseRows
from paranmt_hf.corpus.statistics.draws import Sample
from paranmt_hf.corpus.statistics.sampling import numbered_pairs
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import normal_interval
from paranmt_hf.evaluation.paper_tables import mean_over_sets
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import read_scored_pairs, sets_of
from paranmt_hf.experiments.pictures import Line, draw_lines
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.train import train
from paranmt_hf.util.files import checksum, replacing
from paranmt_hf.util.markers import Count, Range
from paranmt_hf.util.optional import available
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import Record, as_json, made_with
from paranmt_hf.util.run import Result, run
from paranmt_hf.util.settings import Settings, values_for
from paranmt_hf.util.tables import markdown_table, percent
from paranmt_hf.util.wording import counted

TABLE, FIGURE = "table.md", "figure.png"
SENTENCES = ["reference", "translation", "reference_length", "translation_length"]
# Pairs of all samples that are in memory together, about a gigabyte of text; PPDB XL has three million.
MAX_SAMPLED = 4_000_000
SAMPLE_SEED = 0


@dataclass(frozen=True)
class SampleConfig(Settings):
    """Which pairs the encoders are trained on.

    Attributes:
        max_pairs: Number of pairs of a sample.
        max_length: Maximum number of word tokens on either side.
    """

    max_pairs: Annotated[int, Range(at_least=2, at_most=MAX_SAMPLED)] = MAX_SAMPLED
    max_length: Count | None = None


@dataclass(frozen=True)
class ComparedModels(Settings):
    """Encoders that are trained on each sample, and their evaluation sets.

    Attributes:
        development: Scored pairs that the encoders are measured on: a folder with STSBenchmark (its STS 2017 pairs, as
            in the papers), a TSV or Parquet file, or the word sample for the pairs of this package.
        models: Kinds of encoders.
        training: Other options of `paranmt train`, such as `dimension=100,vectors=glove.txt,epochs=2`; `max_pairs` and
            `max_length` are those of each sample.
    """

    development: str
    models: tuple[str, ...] = ("word", "trigram", "lstm")
    training: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.models)) != len(self.models):
            raise InputError(f"models must be different, were {' '.join(self.models)}", option="models")


@dataclass(frozen=True)
class Training:
    """Training and evaluation of the encoders of an experiment."""

    models: ComparedModels  # The encoders; their options replace the usual ones
    # Options of training, and of the samples, that the experiment chooses, such as `epochs`
    usual: Mapping[str, Any] = field(default_factory=dict)
    sts: Sequence[str] = ()  # STS data that the encoders are measured on too; nothing is chosen by it
    compared: str | None = None  # The option that the experiment compares, which the models may not have

    def sample(self, count: int | None = None) -> SampledPart:
        """Create an empty sample of `max_pairs`, or of a number of pairs."""
        return SampledPart(self._sampling if count is None else replace(self._sampling, max_pairs=count))

    def samples_in_memory(self, count: int, rows: int) -> int:
        """How many of several samples, of equal parts of a number of rows, are in memory together."""
        pairs = min(self._sampling.max_pairs, rows // count + 1)
        return min(count, max(1, MAX_SAMPLED // pairs))

    @property
    def _sampling(self) -> SampleConfig:
        return SampleConfig(**self._values[2])

    @property
    def _values(self) -> list[dict[str, Any]]:
        """Values of settings for encoders, training and samples."""
        values = {**self.usual, **(self.models.training or {})}
        without = ["model"] if self.compared is None else ["model", self.compared]
        return values_for([EncoderConfig, TrainConfig, SampleConfig], values, "training", without)

    def settings(self, model: str, **more: Any) -> tuple[EncoderConfig, TrainConfig]:  # noqa: ANN401
        """Return the settings of an encoder and its training; `more` are further training options."""
        encoder, training, _ = self._values
        config = EncoderConfig(model=model, **encoder)
        return config if "word" in config.kinds else replace(config, vectors=None), TrainConfig(**training, **more)

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the figures, apart from the corpus."""
        models = {model: self._identity_of(*self.settings(model)) for model in self.models.models}
        return as_json({**self._measured, "sample": self._sampling, **models})

    @property
    def _measured(self) -> dict[str, Any]:
        sts = [each.checksum for each in sets_of(self.sts)] if self.sts else []
        return {"development": read_scored_pairs(self.models.development).checksum, "sts": sts}

    def _identity_of(self, encoder: EncoderConfig, config: TrainConfig) -> list[Any]:
        vectors = Path(encoder.vectors).expanduser() if encoder.vectors else None
        if vectors is not None and not vectors.is_file():
            raise InputError(f"there is no file {vectors} of word vectors", option="training")
        return [replace(encoder, vectors=checksum(vectors) if vectors else None), config]

    def train(self, work: Path, name: str, pairs: pa.Table, **more: Any) -> list[Trial]:  # noqa: ANN401
        """Train the encoders on a sample, or find the scores of an interrupted run; `name` is that of the sample.

        `more` are options of training for this sample alone.
        """
        sample = work / "samples" / f"{_file_name(name)}.parquet"
        sample.parent.mkdir(exist_ok=True)
        with replacing(sample) as aside:
            columns = ["id", "reference", "translation"]
            pq.write_table(pairs.sort_by("id").select(columns), aside, compression="zstd")
        return [
            self._trial(work / "trials" / _file_name(f"{name}-{model}"), sample, model, **more)
            for model in self.models.models
        ]

    def _trial(self, folder: Path, sample: Path, model: str, **more: Any) -> Trial:  # noqa: ANN401
        encoder, config = self.settings(model, **more)
        development = self.models.development
        settings = self._identity_of(encoder, config)
        identity = as_json({"pairs": checksum(sample), **self._measured, "settings": settings})

        def make(inner: Path, _: Path) -> Trial:
            with _warnings_alone():
                trained = train([sample], inner / "model", encoder=encoder, config=config, development=development)
            record, mean = trained.record, None
            assert record.development is not None
            if self.sts:
                mean = mean_over_sets(evaluate_sts(load(trained.folder), sets_of(self.sts), bootstrap=0))
            return Trial(
                settings=identity,
                model=model,
                pairs=record.pairs,
                pearson=record.development,
                interval=normal_interval(record.development, len(read_scored_pairs(development).gold)),
                sts=mean,
                seconds=record.history.seconds,
                **made_with("torch"),
            )

        return run(
            folder,
            identity,
            Trial,
            make,
            result=lambda _folder, record, _fresh: record,
            command="experiment",
            holds=lambda work: any(work.glob("model*")),
        )


@contextmanager
def _warnings_alone() -> Iterator[None]:
    """Silence what training says of each encoder, but for its warnings and its progress."""
    log = logging.getLogger("paranmt_hf.training")
    before = log.level
    log.setLevel(logging.WARNING)
    try:
        yield
    finally:
        log.setLevel(before)


def _file_name(text: str) -> str:
    """Convert a name to a valid file name."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Trial(Record):
    """One encoder trained on one sample."""

    FILE: ClassVar[str] = "trial.json"
    KIND: ClassVar[str] = "an encoder of an experiment (`paranmt experiment`)"

    model: str
    pairs: int
    pearson: float  # Pearson's r on the development set, in [-1, 1]
    interval: tuple[float, float]  # Its 95 % interval, by the number of pairs of the development set
    sts: float | None  # Mean Pearson's r over the STS sets, in [-1, 1], if they were measured
    seconds: float  # Time of training


@dataclass(frozen=True)
class ComparedSample:
    """A part of a corpus, and the encoders trained on its sample."""

    group: str  # What it is a part by, such as `para_score`; empty for a source
    name: str  # Its name, such as the number of a fold
    rows: int
    left: int  # Number of its rows within the length limit, of which the sample is
    low: float | None  # Lowest score of all its rows, if it is a part by a score
    high: float | None  # Highest score
    trials: list[Trial]

    @property
    def pairs(self) -> int:
        """Number of pairs in the sample."""
        return self.trials[0].pairs

    @property
    def mean(self) -> float:
        """Mean Pearson's r of the encoders on the development set."""
        return float(np.mean([trial.pearson for trial in self.trials]))

    @property
    def interval(self) -> tuple[float, float]:
        """Mean of the ends of their 95 % intervals, which is that of the mean of encoders that err alike."""
        low, high = np.mean([trial.interval for trial in self.trials], axis=0).tolist()
        return low, high

    @property
    def sts(self) -> float | None:
        """Mean over the encoders of the mean over the STS sets; None if these were not evaluated."""
        found = [trial.sts for trial in self.trials if trial.sts is not None]
        return float(np.mean(found)) if found else None

    @property
    def cells(self) -> list[str]:
        """Pearson's r of each encoder and their mean, times 100."""
        return [*(percent(trial.pearson) for trial in self.trials), percent(self.mean)]


@dataclass(frozen=True, kw_only=True)
class ComparisonRecord(Record):
    """The content of `experiment.json`: what was compared."""

    FILE: ClassVar[str] = "experiment.json"
    KIND: ClassVar[str] = "an experiment (`paranmt experiment`)"

    samples: list[ComparedSample]

    @property
    def models(self) -> list[str]:
        """Kinds of the encoders."""
        return [trial.model for trial in self.samples[0].trials]

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        """Write a table in Markdown whose last columns are the encoders and their mean."""
        return markdown_table([*header, *self.models, "mean"], rows)


class Comparison(Result[ComparisonRecord]):
    """An experiment that compares samples, in a folder with a table and a figure."""

    def summary(self) -> str:
        """The table, in Markdown."""
        return f"{(self.folder / TABLE).read_text(encoding='utf8')}\n{self.folder}: figures and settings"


def compare_samples(
    out: str | Path,
    identity: Mapping[str, Any],
    samples: Callable[[Path], Iterable[ComparedSample]],
    write: Callable[[ComparisonRecord], Sequence[str]],
    lines: Callable[[ComparisonRecord], Sequence[Line]] | None = None,
    *,
    total: int | None = None,
    **axes: Any,  # noqa: ANN401
) -> Comparison:
    """Run an experiment, continue an interrupted one, or find the finished one, which `identity` determines.

    `samples` trains the encoders on each sample, given the folder of the work in progress; `write` gives the
    paragraphs of the table, `lines` the lines of the figure, drawn if matplotlib (extra `plots`) is installed, with
    labels and scales of its `axes`. `total` is the number of samples, if known before they are read.
    """

    def make(work: Path, folder: Path) -> ComparisonRecord:
        done: list[ComparedSample] = []
        with Progress("samples", total, every=0, unit="samples") as progress:
            for sample in samples(work):
                done.append(sample)
                progress.advance_to(len(done), f"{sample.group} {sample.name}: {percent(sample.mean)}".strip())
        record = ComparisonRecord(settings=as_json(identity), samples=done, **made_with("torch"))
        (folder / TABLE).write_text("\n\n".join(write(record)) + "\n", encoding="utf8", newline="\n")
        if lines is not None and available("matplotlib"):
            draw_lines(lines(record), folder / FIGURE, **axes)
        return record

    def holds(work: Path) -> bool:
        return any(work.glob("trials/*"))

    return run(out, identity, ComparisonRecord, make, result=Comparison, command="experiment", holds=holds)


class SampledPart:
    """A part of a corpus, counted and sampled while its rows are read."""

    def __init__(self, config: SampleConfig) -> None:
        self.rows, self.sample, self.low, self.high = 0, Sample(config.max_pairs, SAMPLE_SEED), np.inf, -np.inf
        self._limit = LengthLimit(None, config.max_length) if config.max_length is not None else None

    def add(self, table: pa.Table, scores: np.ndarray | None = None) -> pa.Table:
        """Add rows with the columns of `SENTENCES`, and their scores [row], if any; returns the pairs left."""
        self.rows += table.num_rows
        if scores is not None and len(scores):
            self.low, self.high = min(self.low, float(scores.min())), max(self.high, float(scores.max()))
        if self._limit is not None and table.num_rows:
            table = table.filter(pa.array(self._limit.judge(table).kept))
        pairs = numbered_pairs(table)
        self.sample.add(pairs)
        return pairs

    def check(self, what: str) -> None:
        """Reject a part of fewer than two pairs."""
        if self.sample.seen < 2:
            raise InputError(
                f"{what} has {counted(self.sample.seen, 'pair')} left of {self.rows:,}, too few to train on; allow a "
                "larger `max_length`, or leave it out"
            )

    def compared(self, group: str, name: str, trials: list[Trial]) -> ComparedSample:
        """The part with the encoders trained on its sample."""
        low, high = (self.low, self.high) if self.low <= self.high else (None, None)
        return ComparedSample(group, name, self.rows, self.sample.seen, low, high, trials)


class Source(ReleaseRows):
    """The rows of a corpus."""

    def __init__(self, release: str | Path) -> None:
        self.folder = Path(release)
        super().__init__(release_files(self.folder))

    @property
    def checksums(self) -> dict[str, Any]:
        """Checksums of its files."""
        return dict(read_record(self.folder, ["default"]).configs["default"].files)

    def read(self, label: str, *columns: str) -> Iterator[pa.Table]:
        """Read the columns of `SENTENCES` and others of all rows, with a progress bar."""
        with Progress(label, self.rows, unit="pairs") as progress:
            for place, table in self.tables([*SENTENCES, *columns]):
                yield table
                progress.advance_to(place + table.num_rows)
