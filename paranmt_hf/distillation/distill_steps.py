"""The steps of a distillation: the teacher's vectors, the start, the lists of similarities, and training on pairs."""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.sentences import SENTENCE, TRANSLATION
from paranmt_hf.distillation.config import TRIGRAMS, WORDS, DistillConfig
from paranmt_hf.distillation.likeness import likeness
from paranmt_hf.distillation.reduction import VectorsConfig, check_reduction, components, reduce_alone
from paranmt_hf.distillation.vectors import SAMPLE, distill_vectors
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.loading import load, read_average_tables
from paranmt_hf.encoders.named_encoder import NamedEncoder, WithoutProgressBar
from paranmt_hf.encoders.static_encoder import StaticEncoder
from paranmt_hf.encoders.units import count_units
from paranmt_hf.encoders.vocabulary import most_frequent
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import StsSet
from paranmt_hf.hub.repository import Model, locate, plain_name
from paranmt_hf.text.identity import keys_of
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.word_vectors import WordVectors, write_vectors
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.inputs import resolve_encoder
from paranmt_hf.training.recipe import read_recipe
from paranmt_hf.training.text import keys_in
from paranmt_hf.training.train import TEACHER, train
from paranmt_hf.util.files import Names
from paranmt_hf.util.wording import counted

if TYPE_CHECKING:
    from paranmt_hf.training.teacher_vectors import JoinedTeachers
    from paranmt_hf.training.teachers import Teacher

logger = logging.getLogger(__name__)
MOST_WORDS = 45_000  # Maximum number of words of the start `words`, if not given
MUCH_TEXT = 100_000  # From this number of sentences on, vectors of words learn faster
# Learning rate and temperature of the lists, with much text (True) and otherwise (False).
RATES = {True: (0.003, 0.06), False: (0.001, 0.15)}
INIT_STD = 0.02  # Standard deviation of the random rows of the starts `words` and `trigrams`


@dataclass(frozen=True)
class DistillSteps:
    """The steps of a distillation in its work folder.

    Attributes:
        work: The work folder.
        teachers: The teachers.
        names: Their names as they were given; the steps must find the same revisions by them.
        config: How the encoder is distilled.
        text: The file of `sentences`.
        sentences: The text: the column `sentence`, and `translation` if the teacher reads translations.
        held_out: Sentences on which the result is compared with the teacher; columns as in `sentences`.
        own: The carried encoder of the language, the start for text whose words it knows; None if there is none.
    """

    work: Path
    teachers: Sequence[Teacher]
    names: Sequence[str]
    config: DistillConfig
    text: Path
    sentences: pa.Table
    held_out: pa.Table
    own: str | None

    def run(self, folder: Path, data: Names | None, exclude: str | Path | None, sets: list[StsSet]) -> dict[str, Any]:
        """Make the encoder.

        Args:
            folder: Folder that gets the encoder.
            data: Pairs for the margin loss; None for no such step.
            exclude: Folder with STS sets whose sentences are left out of the pairs.
            sets: STS sets to evaluate the start and the encoder on.

        Returns:
            The values of the record that this step determines, by field.
        """
        from paranmt_hf.training.average import average_encoders
        from paranmt_hf.training.teacher_vectors import joined_vectors

        counts = count_units(self.sentences[SENTENCE].chunks, ["word"])["word"]
        start = self.config.start or self._usual_start(counts)
        self._check(start)
        parts = [part for part in (self.sentences, self.held_out) if len(part)]
        keyed = [(keys_in(part), part[part.column_names[-1]]) for part in parts]
        if start == WORDS and not self._read_in_context:
            words = pa.array(self._words(counts))
            keyed.append((keys_of(words)[0], words))
        options = {"device": None, "precision": "bf16"}
        taught = joined_vectors(self.teachers, lambda: keyed, self._cache, keys=keyed[0][0], **options)
        encoder = self._encoder(start, counts, taught)
        before = self._before(start, encoder)
        # Evaluate the start before training, so that sets that cannot be evaluated are refused early.
        scores = {"start": _scores(before, sets)}
        last = self.work / "lists"
        train(None, last, text=[self.text], encoder=encoder, config=self._lists(start))
        if data is not None:
            # Continue on pairs as the recipe does, and take the mean of both.
            margin, mean = self.work / "margin", self.work / "mean"
            step = read_recipe("word-trigram").margin_step(last, TrainConfig(seed=self.config.seed))
            train(data, margin, encoder=step[0], config=step[1], selection=step[2], exclude=exclude)
            average_encoders([last, margin], mean)
            last = mean
        shutil.copytree(last, folder, dirs_exist_ok=True)
        after = NamedEncoder(str(folder)).load()
        unseen, alike = self.held_out[SENTENCE].to_pylist(), None
        if unseen:
            wanted = taught.of(keys_in(self.held_out)).numpy()
            alike = {
                "start": likeness(before.encode(unseen), wanted),
                "encoder": likeness(after.encode(unseen), wanted),
            }
        return {
            "start": plain_name(start),
            "likeness": alike,
            "sentences": len(self.sentences),
            "held_out": len(self.held_out),
            "epochs": self.epochs,
            "scores": scores | {"encoder": _scores(after, sets)},
        }

    @property
    def epochs(self) -> int:
        """Number of passes over the text: by default three million sentences in all, in 1 to 12 passes.

        More than 12 passes make the encoder less like its teacher.
        """
        return self.config.epochs or max(1, min(3_000_000 // len(self.sentences), 12))

    @property
    def _cache(self) -> Path:
        """The folder of the teacher's vectors."""
        return Path(self.config.teacher_cache or self.work / TEACHER).expanduser()

    def _lists(self, start: str) -> TrainConfig:
        """Return the settings of the step that learns the teacher's lists: those of the encoders of this package.

        With much text, vectors of words learn at a higher rate and a lower temperature, as the encoders for other
        languages than English did; with 5,000 sentences of news that was worse.
        """
        rate, temperature = RATES[start == WORDS and len(self.sentences) >= MUCH_TEXT]
        return TrainConfig(
            # Number of pairs, each of two sentences; small enough for ten steps in an epoch.
            batch_size=max(1, min(512, len(self.sentences) // 20)),
            learning_rate=rate,
            precision="bf16",
            seed=self.config.seed,
            teacher=tuple(self.names),
            teacher_prompt=self.config.teacher_prompt,
            teacher_cache=str(self._cache),
            teacher_loss="listwise",
            temperature=temperature,
            neighbours=True,
            epochs=self.epochs,
            decay=True,
        )

    def _usual_start(self, counts: Counter[str]) -> str:
        """Choose what training starts from if it is not given, as `DistillConfig.start` describes.

        Args:
            counts: How often each word occurs in the text.
        """
        if TRANSLATION in self.sentences.column_names:
            return TRIGRAMS
        if self.config.words or self.config.dimension or self._averages:
            return WORDS
        if self.own is None:
            return WORDS
        (tables, _) = read_average_tables(locate(self.own)) or ([], "")
        known = sum(count for word, count in counts.items() if word in tables[0].vocabulary.row_of)
        return self.own if known >= 0.75 * counts.total() else WORDS

    def _check(self, start: str) -> None:
        """Reject a start that does not fit the settings or the text, before the teacher reads for hours."""
        if start == WORDS and self.config.dimension:
            width = sum(teacher.open(None, "float32")[0](["a"]).shape[1] for teacher in self.teachers)
            check_reduction(len(self.sentences), width, self.config.dimension)
        if start in (WORDS, TRIGRAMS):
            return
        try:
            encoder, _, _ = resolve_encoder(EncoderConfig(init_from=start))
        except InputError as error:
            raise InputError(f"{start}: {error}", option="start", path=error.path) from None
        refuse(
            any(family.layers for family in encoder.families),
            f"{start} is a model {encoder.model!r}, and distillation starts from an average of words or trigrams; "
            "name such an encoder, or leave `start` out",
            option="start",
        )

    def _encoder(self, start: str, counts: Counter[str], taught: JoinedTeachers) -> EncoderConfig:
        """Return the settings of the encoder that training starts from.

        Args:
            start: Name of an encoder, `words` or `trigrams`.
            counts: How often each word occurs in the text.
            taught: The teacher's vectors.
        """
        if start not in (WORDS, TRIGRAMS):
            return EncoderConfig(init_from=start)
        most = min(taught.dimension, 384)
        dimension = self.config.dimension or min(most, len(self.sentences))
        if not self.config.dimension and dimension < most:
            logger.warning(
                f"warning: {counted(len(self.sentences), 'sentence')} for training allow no more than "
                f"{counted(dimension, 'dimension')}, of {most} with more text; such an encoder is of little use"
            )
        if start == TRIGRAMS:
            return EncoderConfig(model="trigram", dimension=dimension, init_std=INIT_STD)
        vectors = self._word_vectors(counts, taught, dimension)
        words, pieces = self.config.words or MOST_WORDS, min(10_000, len(counts) // 4)
        return EncoderConfig(words=words, pieces=pieces, dimension=dimension, vectors=str(vectors), init_std=INIT_STD)

    @cached_property
    def _averages(self) -> bool:
        """Whether all teachers are averaging encoders."""
        models = [teacher.source for teacher in self.teachers]
        return all(isinstance(model, Model) and StaticEncoder.read(model) is not None for model in models)

    @cached_property
    def _read_in_context(self) -> bool:
        """Whether the teachers read words in sentences: if all are models with a fast tokenizer, and no prompt."""
        from transformers import PreTrainedTokenizerFast

        models = [teacher.source for teacher in self.teachers if isinstance(teacher.source, Model)]
        fast = [isinstance(getattr(load(model), "tokenizer", None), PreTrainedTokenizerFast) for model in models]
        return len(models) == len(self.teachers) and all(fast) and self.config.teacher_prompt is None

    def _words(self, counts: Counter[str]) -> list[str]:
        """The words of the start `words`."""
        return list(most_frequent("word", counts, self.config.words or MOST_WORDS).units[1:])

    def _word_vectors(self, counts: Counter[str], taught: JoinedTeachers, dimension: int) -> Path:
        """Write the teachers' vectors of words into a file, and return its path."""
        from paranmt_hf.training.teachers import fast_in_bf16

        path = self.work / "vectors.txt"
        reduced = dimension < taught.dimension
        if self._read_in_context:
            device = load(self.teachers[0].source).device.type
            reading = VectorsConfig(
                words=self.config.words or MOST_WORDS,
                contexts=8,
                dimension=dimension if reduced else None,
                precision="bf16" if fast_in_bf16(device) else "float32",
            )
            distill_vectors(self.names, path, text=[self.text], config=reading)
            return path
        known = self._words(counts)
        keys = keys_of(pa.array(known))[0]
        if not self._averages:
            alone = [teacher.of(keys).numpy() for teacher in taught.teachers]
            write_vectors(path, reduce_alone(known, alone, dimension if reduced else None))
            return path
        # The vectors of averaging teachers are those of words, so their lengths are kept.
        matrix = np.hstack([teacher.of(keys).numpy() for teacher in taught.teachers])
        if reduced:
            sample = keys_in(self.sentences[:SAMPLE])
            rows = np.hstack([teacher.of(sample).numpy() for teacher in taught.teachers])
            matrix = matrix @ components(rows, dimension)
        write_vectors(path, WordVectors(known, matrix))
        return path

    def _before(self, start: str, encoder: EncoderConfig) -> Encoder:
        """Load or build the encoder that training starts from, with the weights it has before training."""
        from paranmt_hf.training.prepare import build_for

        if start != TRIGRAMS:
            return NamedEncoder(encoder.init_from or str(encoder.vectors)).load()
        counts = count_units(self.sentences[SENTENCE].chunks, ["trigram"])
        return WithoutProgressBar(build_for(encoder, counts, None, seed=self.config.seed), 256)


def _scores(encoder: Encoder, sets: list[StsSet]) -> dict[str, float]:
    """Compute Pearson's r of an encoder on each evaluation set, by the title of the set."""
    rows = evaluate_sts(encoder, sets, bootstrap=0).tables["Set"] if sets else []
    titles = {each.title for each in sets}
    return {row.name: row.main for row in rows if row.name in titles}
