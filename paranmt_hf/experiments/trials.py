"""The same encoders trained on several samples of a corpus, and measured.

Each trained encoder is a result of its own, so an interrupted experiment continues with the one that was training.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.paper_tables import mean_over_sets
from paranmt_hf.evaluation.scored_pairs import read_scored_pairs
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import read_several
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.train import train
from paranmt_hf.util.files import checksum, replacing
from paranmt_hf.util.records import Record, as_json, made_with
from paranmt_hf.util.run import run
from paranmt_hf.util.settings import check, values_for


@dataclass(frozen=True, kw_only=True)
class Trial(Record):
    """One encoder trained on one sample.

    Attributes:
        model: Kind of the encoder.
        pairs: Number of training pairs.
        pearson: Pearson's r on the development set, in [-1, 1].
        sts: Mean Pearson's r over the STS sets, in [-1, 1], if they were measured.
        seconds: Time of training.
    """

    FILE: ClassVar[str] = "trial.json"
    KIND: ClassVar[str] = "an encoder of an experiment (`paranmt experiment`)"

    model: str
    pairs: int
    pearson: float
    sts: float | None
    seconds: float


@dataclass(frozen=True)
class ComparedModels:
    """Encoders that are trained on each sample, and what they are measured on.

    Attributes:
        development: Scored pairs that the encoders are measured on: a folder with STSBenchmark (its STS 2017 pairs, as
            in the papers), a TSV or Parquet file, or the word sample for the pairs of this package.
        models: Kinds of encoders.
        training: Other options of `paranmt train`, such as `dimension=100,vectors=glove.txt`.
    """

    development: str
    models: tuple[str, ...] = ("word", "trigram", "lstm")
    training: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check(self)
        if len(set(self.models)) != len(self.models):
            raise InputError(f"models must be different, were {' '.join(self.models)}", option="models")

    def settings(self, model: str, **usual: Any) -> tuple[EncoderConfig, TrainConfig]:  # noqa: ANN401
        """Settings of an encoder and its training; those of `training` replace the `usual` ones of an experiment."""
        given = values_for((EncoderConfig, TrainConfig), self.training, "training", without=("model",))
        encoder, config = EncoderConfig(model=model, **given[0]), TrainConfig(**{**usual, **given[1]})
        return encoder if "word" in encoder.kinds else replace(encoder, vectors=None), config

    def identity(self, sts: Sequence[str] = (), **usual: Any) -> dict[str, Any]:  # noqa: ANN401
        """What determines the figures apart from the samples; arguments as of `train`."""
        measured = [each.checksum for each in read_several(sts)] if sts else []
        found: dict[str, Any] = {"development": read_scored_pairs(self.development).checksum, "sts": measured}
        for model in self.models:
            encoder, config = self.settings(model, **usual)
            vectors = Path(encoder.vectors).expanduser() if encoder.vectors else None
            if vectors is not None and not vectors.is_file():
                raise InputError(f"there is no file {vectors} of word vectors", option="training")
            found[model] = [replace(encoder, vectors=checksum(vectors) if vectors else None), config]
        return as_json(found)

    def train(
        self,
        work: Path,
        name: str,
        pairs: pa.Table,
        sts: Sequence[str] = (),
        **usual: Any,  # noqa: ANN401
    ) -> list[Trial]:
        """Train the encoders on a sample, or find the figures of an interrupted run.

        Args:
            work: Folder of the work in progress.
            name: Name of the sample.
            pairs: The sample, with the columns `id`, `reference` and `translation`.
            sts: STS data that the encoders are measured on too; nothing is chosen by it.
            usual: Settings of training that the experiment chooses, such as `epochs`.
        """
        sample = work / "samples" / f"{file_name(name)}.parquet"
        sample.parent.mkdir(exist_ok=True)
        with replacing(sample) as aside:
            columns = ["id", "reference", "translation"]
            pq.write_table(pairs.sort_by("id").select(columns), aside, compression="zstd")
        return [self._trial(work, name, sample, model, sts, usual) for model in self.models]

    def _trial(
        self, work: Path, name: str, sample: Path, model: str, sts: Sequence[str], usual: dict[str, Any]
    ) -> Trial:
        encoder, config = self.settings(model, **usual)
        identity = {"sample": checksum(sample), **replace(self, models=(model,)).identity(sts, **usual)}

        def make(inner: Path, folder: Path) -> Trial:
            trained = train([sample], inner / "model", encoder=encoder, config=config, development=self.development)
            record, mean = trained.record, None
            assert record.development is not None
            if sts:
                mean = mean_over_sets(evaluate_sts(load(trained.folder), read_several(sts), bootstrap=0))
            return Trial(
                settings=identity,
                model=model,
                pairs=record.pairs,
                pearson=record.development,
                sts=mean,
                seconds=record.history.seconds,
                **made_with("torch"),
            )

        folder = work / "trials" / file_name(f"{name}-{model}")
        return run(folder, identity, Trial, make, result=_record, command="experiment", holds=_holds_model)


def _record(folder: Path, record: Trial, fresh: bool) -> Trial:
    return record


def _holds_model(work: Path) -> bool:
    return any(work.glob("model*"))


def file_name(text: str) -> str:
    """Turn a name from data into a file name: its letters and digits, and a checksum if that is not all of it."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:60]
    return plain if plain == text else f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
