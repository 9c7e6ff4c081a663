"""The steps of a distillation: the teacher's vectors, the start, the lists of similarities, and pairs."""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.pairs import PairSelection
from paranmt_hf.corpus.reading.sentences import SENTENCE, TRANSLATION
from paranmt_hf.distillation.likeness import likeness
from paranmt_hf.distillation.reduction import VectorsConfig, check_reduction, components
from paranmt_hf.distillation.vectors import SAMPLE, distill_vectors
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.loading import read_average_tables
from paranmt_hf.encoders.named_encoder import NamedEncoder, WithoutProgressBar
from paranmt_hf.encoders.static_encoder import StaticEncoder
from paranmt_hf.encoders.units import count_units
from paranmt_hf.encoders.vocabulary import most_frequent
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import StsSet
from paranmt_hf.hub.repository import Model, locate, plain_name
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.word_vectors import WordVectors, write_vectors
from paranmt_hf.training.config import TRIGRAMS, WORDS, DistillConfig, TrainConfig
from paranmt_hf.training.inputs import keys_in, resolve_encoder
from paranmt_hf.training.train import TEACHER, read_recipe, train
from paranmt_hf.util.files import Names
from paranmt_hf.util.machine import visible_cores
from paranmt_hf.util.progress import followed_by
from paranmt_hf.util.settings import values_for
from paranmt_hf.util.wording import counted

if TYPE_CHECKING:
    from paranmt_hf.training.teacher import TeacherVectors

logger = logging.getLogger(__name__)
BASE = "base"  # The carried encoder: the teacher if none is given, and the start for text whose words it knows
KNOWN_SHARE = 0.75  # Of the words of the text, repetitions included, that the start must know
MOST_PASSES, MOST_EPOCHS = 3_000_000, 12  # Sentences in all epochs; on little text more epochs make it less alike
# Of the starts words and trigrams: sizes if none are given, sentences in which a word is read, spread of random rows.
MOST_WORDS, MOST_PIECES, MOST_DIMENSIONS, CONTEXTS, INIT_STD = 45_000, 10_000, 384, 8, 0.02
BATCH, TEMPERATURE = 512, 0.15  # Of the lists of similarities
PER_CORE = 4_000  # Sentences a second that a core trains on, for the estimate of what is left
MARGIN_RECIPE = "word-trigram"  # Its second step is that with pairs


@dataclass(frozen=True)
class DistillSteps:
    """The steps of a distillation in its work folder."""

    work: Path
    name: str  # Of the teacher, as it was given: the steps must find the same revision
    teacher: Model
    config: DistillConfig
    text: Path
    sentences: pa.Table  # The column `sentence`, and `translation` if the teacher reads translations
    held_out: pa.Table

    def run(self, folder: Path, data: Names | None, exclude: str | Path | None, sets: list[StsSet]) -> dict[str, Any]:
        """Fill the folder of the encoder; returns what the record says of it."""
        from paranmt_hf.encoders.loading import load

        counts = count_units(self.sentences[SENTENCE].chunks, ["word"])["word"]
        start, epochs = self._start(counts), self._epochs
        # Before the hours of the teacher.
        if start not in (WORDS, TRIGRAMS):
            check_start(start)
        if start == WORDS and self.config.dimension:
            width = load(self.teacher).get_embedding_dimension() or 0
            check_reduction(len(self.sentences), width, self.config.dimension, 0)
        with followed_by(epochs * len(self.sentences) / PER_CORE / visible_cores()):
            taught = self._teach()
            encoder = self._encoder(start, counts, taught)
        self._warn_of_few_dimensions(start, taught)
        before = self._before(start, encoder)
        # What cannot be evaluated is refused before training.
        scores = {"start": _scores(before, sets)}
        last = self.work / "lists"
        train(None, last, text=[self.text], encoder=encoder, config=self._lists)
        if data is not None:
            last = self._with_pairs(last, data, exclude)
        shutil.copytree(last, folder, dirs_exist_ok=True)
        after = NamedEncoder(str(folder)).load()
        alike = None
        if len(self.held_out):
            teacher, unseen = taught.of(keys_in(self.held_out)).numpy(), self.held_out[SENTENCE].to_pylist()
            models = {"start": before, "encoder": after}
            alike = {name: likeness(each.encode(unseen), teacher) for name, each in models.items()}
        return {
            "start": start if start in (WORDS, TRIGRAMS, BASE) else plain_name(start),
            "likeness": alike,
            "sentences": len(self.sentences),
            "held_out": len(self.held_out),
            "epochs": epochs,
            "scores": scores | {"encoder": _scores(after, sets)},
        }

    @property
    def _translated(self) -> bool:
        """Whether the teacher reads translations of the text."""
        return TRANSLATION in self.sentences.column_names

    @property
    def _epochs(self) -> int:
        return self.config.epochs or max(1, min(MOST_EPOCHS, MOST_PASSES // len(self.sentences)))

    @property
    def _cache(self) -> Path:
        return Path(self.config.teacher_cache or self.work / TEACHER).expanduser()

    @property
    def _lists(self) -> TrainConfig:
        """Settings of the step that learns the teacher's lists: those of this package's own encoders."""
        return TrainConfig(
            # Half of its sentences; an epoch has ten steps or more.
            batch_size=max(1, min(BATCH, len(self.sentences) // 20)),
            learning_rate=0.001,
            precision="bf16",
            seed=self.config.seed,
            teacher=self.name,
            teacher_cache=str(self._cache),
            teacher_loss="listwise",
            temperature=TEMPERATURE,
            neighbours=True,
            epochs=self._epochs,
            decay=True,
        )

    def _start(self, counts: Counter[str]) -> str:
        """What training starts from; see `DistillConfig.start`."""
        if self.config.start is not None:
            return self.config.start
        if self._translated:
            return TRIGRAMS
        if self.config.words or self.config.dimension or StaticEncoder.read(self.teacher) is not None:
            return WORDS
        (tables, _) = read_average_tables(locate(BASE)) or ([], "")
        known = sum(count for word, count in counts.items() if word in tables[0].vocabulary.row_of)
        return BASE if known >= KNOWN_SHARE * counts.total() else WORDS

    def _teach(self) -> TeacherVectors:
        """The teacher's vectors of all sentences."""
        from paranmt_hf.training.teacher import teacher_vectors

        parts = (self.sentences, self.held_out)
        keyed = [(keys_in(part), part[part.column_names[-1]]) for part in parts if len(part)]
        return teacher_vectors(self.teacher, keyed, self._cache, device=None, precision="bf16")

    def _words(self, counts: Counter[str], taught: TeacherVectors) -> EncoderConfig:
        """Write the vectors of words to start from."""
        from transformers import PreTrainedTokenizerFast

        from paranmt_hf.encoders.loading import load
        from paranmt_hf.training.teacher import fast_in_bf16

        config, path, encoder = self.config, self.work / "vectors.txt", load(self.teacher)
        words, width = config.words or MOST_WORDS, taught.dimension
        dimension = self._dimension(taught)
        if isinstance(getattr(encoder, "tokenizer", None), PreTrainedTokenizerFast):
            reading = VectorsConfig(
                words=words,
                contexts=CONTEXTS,
                dimension=dimension if dimension < width else None,
                precision="bf16" if fast_in_bf16(encoder.device.type) else "float32",
            )
            distill_vectors(self.name, path, text=[self.text], config=reading)
        else:
            known = most_frequent("word", counts, words).units[1:]
            matrix = WithoutProgressBar(encoder, 256).encode(known)
            if dimension < width:
                sample = keys_in(self.sentences[:SAMPLE])
                matrix = matrix @ components(taught.of(sample).numpy(), dimension)
            write_vectors(path, WordVectors(known, np.asarray(matrix, np.float32)))
        pieces = min(MOST_PIECES, len(counts) // 4)
        return EncoderConfig(words=words, pieces=pieces, dimension=dimension, vectors=str(path), init_std=INIT_STD)

    def _encoder(self, start: str, counts: Counter[str], taught: TeacherVectors) -> EncoderConfig:
        """Settings of the encoder that training starts from."""
        if start == WORDS:
            return self._words(counts, taught)
        if start == TRIGRAMS:
            return EncoderConfig(model="trigram", dimension=self._dimension(taught), init_std=INIT_STD)
        return EncoderConfig(init_from=start)

    def _before(self, start: str, encoder: EncoderConfig) -> Encoder:
        """The encoder that training starts from."""
        from paranmt_hf.training.prepare import build_for

        if start != TRIGRAMS:
            return NamedEncoder(encoder.init_from or str(encoder.vectors)).load()
        counts = count_units(self.sentences[SENTENCE].chunks, ["trigram"])
        return WithoutProgressBar(build_for(encoder, counts, None, seed=self.config.seed), 256)

    def _dimension(self, taught: TeacherVectors) -> int:
        return self.config.dimension or min(taught.dimension, len(self.sentences), MOST_DIMENSIONS)

    def _warn_of_few_dimensions(self, start: str, taught: TeacherVectors) -> None:
        """Warn if the encoder has fewer dimensions because there are few sentences."""
        most, dimension = min(taught.dimension, MOST_DIMENSIONS), self._dimension(taught)
        if start in (WORDS, TRIGRAMS) and self.config.dimension is None and dimension < most:
            logger.warning(
                f"warning: {counted(len(self.sentences), 'sentence')} for training allow no more than "
                f"{counted(dimension, 'dimension')}, of {most} with more text; such an encoder is of little use"
            )

    def _with_pairs(self, first: Path, data: Names, exclude: str | Path | None) -> Path:
        """Continue on pairs as the recipe does; returns the folder of the mean of both."""
        from paranmt_hf.training.derived import average_encoders

        values = values_for([TrainConfig, PairSelection], read_recipe(MARGIN_RECIPE).then, "recipe")
        margin, mean = self.work / "margin", self.work / "mean"
        config, selection = TrainConfig(**values[0], seed=self.config.seed), PairSelection(**values[1])
        start = EncoderConfig(init_from=str(first))
        train(data, margin, encoder=start, config=config, selection=selection, exclude=exclude)
        average_encoders([first, margin], mean)
        return mean


def check_start(name: str) -> None:
    """Reject an encoder that is not an average, which alone learns among neighbours."""
    try:
        encoder, _, _ = resolve_encoder(EncoderConfig(init_from=name))
    except InputError as error:
        raise InputError(f"{name}: {error}", option="start", path=error.path) from None
    if any(family.layers for family in encoder.families):
        raise InputError(
            f"{name} is a model {encoder.model!r}, and distillation starts from an average of words or trigrams; name "
            "such an encoder, or leave `start` out",
            option="start",
        )


def _scores(encoder: Encoder, sets: list[StsSet]) -> dict[str, float]:
    """Pearson's r by evaluation set."""
    rows = evaluate_sts(encoder, sets, bootstrap=0).tables["Set"] if sets else []
    titles = {each.title for each in sets}
    return {row.name: row.main for row in rows if row.name in titles}
