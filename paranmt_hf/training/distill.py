"""Distill an encoder from a teacher and text: the steps of `paranmt train` with the settings of this package's own.

The teacher reads each sentence once. Its vectors are kept in the work folder, where the steps find them.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.corpus.reading.pairs import Pairs, PairSelection
from paranmt_hf.corpus.reading.sentences import SENTENCE, TRANSLATION, SentenceSources
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.distillation import VectorsConfig, check_reduction, components
from paranmt_hf.encoders.model_folder import read_average_tables
from paranmt_hf.encoders.named_encoder import NamedEncoder, Quiet
from paranmt_hf.encoders.static_encoder import StaticEncoder
from paranmt_hf.encoders.units import count_units
from paranmt_hf.encoders.vocabulary import most_frequent
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import StsSet, is_sample, sets_of
from paranmt_hf.hub.languages import check_language
from paranmt_hf.hub.repository import Model, locate, plain_name
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.text.word_vectors import WordVectors, write_vectors
from paranmt_hf.training.card import shell_word, trained_values, write_card
from paranmt_hf.training.config import TRIGRAMS, WORDS, DistillConfig, TrainConfig
from paranmt_hf.training.inputs import Names, PairsAndText, holds_training, keys_in, listed, sentences_of, split_text
from paranmt_hf.training.likeness import NEIGHBOURS, likeness
from paranmt_hf.training.record import Distilled, DistillRecord, TrainingRecord
from paranmt_hf.training.train import read_recipe, train
from paranmt_hf.training.vectors import SAMPLE, distill_vectors
from paranmt_hf.util.files import source_name, writing
from paranmt_hf.util.machine import visible_cores
from paranmt_hf.util.progress import followed_by
from paranmt_hf.util.records import as_json, made_with
from paranmt_hf.util.run import result_folder, run
from paranmt_hf.util.settings import option_words, values_for

if TYPE_CHECKING:
    from paranmt_hf.training.teacher import TeacherVectors

BASE = "base"  # The carried encoder: the teacher if none is given, and the start for text whose words it knows
KNOWN_SHARE = 0.75  # Of the words of the text, repetitions included, that the start must know
MOST_PASSES, MOST_EPOCHS = 3_000_000, 12  # Sentences in all epochs; on little text more epochs make it less alike
# Of the starts words and trigrams: sizes if none are given, sentences in which a word is read, spread of random rows.
MOST_WORDS, MOST_PIECES, MOST_DIMENSIONS, CONTEXTS, INIT_STD = 45_000, 10_000, 384, 8, 0.02
BATCH, TEMPERATURE = 512, 0.15  # Of the lists of similarities
PER_CORE = 4_000  # Sentences a second that a core trains on, for the estimate of what is left
MARGIN_RECIPE = "word-trigram"  # Its second step is that with pairs


def distill(
    teacher: Names = (),
    *,
    out: str | Path,
    text: Names,
    columns: Sequence[str] | None = None,
    translations: Names | None = None,
    language: str | None = None,
    data: Names | None = None,
    config: DistillConfig | None = None,
    exclude: str | Path | None = None,
    evaluate: str | Path | None = None,
) -> Distilled:
    """Distill a fast averaging encoder from a large encoder and your own text.

    It learns the teacher's similarities among neighbours (`paranmt train --teacher`), starting from the carried
    encoder or from the teacher's vectors of words (`paranmt encoder vectors`); with pairs, a pass of the margin loss
    follows, and the result is the mean of both. At the end the encoder is compared with its teacher on held-out
    sentences. After an interruption the same command continues, and the result has the same bytes.

    Sizes follow from the text: three million sentences are read in at most 12 epochs; 30,000 sentences get 12 epochs,
    a million 3. An encoder to start from keeps its words and dimensions.

    Args:
        teacher: SentenceTransformer folder or Hub id; `base` if left out. The words of an averaging teacher are read
            alone, because its vectors are those of words already.
        out: Folder of the encoder; work in progress is next to it in `<out>.work`.
        text: Sentences: text files with one on a line, files with columns (docs/formats.md), releases.
        columns: Columns of `text`; by default both sides of pairs, else the one column of text.
        translations: Text files that translate `text` line by line; the teacher reads them in its place, so that its
            language may be another (Reimers & Gurevych 2020, arXiv:2004.09813).
        language: ISO 639-1 code of the language of the text, for the card; `en` if left out, and needed with
            translations.
        data: Pairs for the margin loss, as `paranmt train` takes them.
        config: How it is distilled.
        exclude: Folder with STS sets: leave out text that shares eight words in a row with one, and pairs with their
            sentences.
        evaluate: Evaluate the start and the encoder on the STS sets of a folder, or on `sample` (40 pairs of the
            package).
    """
    config, names = config or DistillConfig(), listed(teacher) or [BASE]
    if len(names) > 1:
        raise InputError("name one teacher", option="teacher")
    _check_language(language or ENGLISH, evaluate)
    start = config.encoder
    given = [*names, start, *listed(text), *listed(translations), *listed(data)]
    out = result_folder(out, DistillRecord, sources=[Path(name).expanduser() for name in given if name])
    sets = sets_of(evaluate) if evaluate is not None else []
    unwanted = sentences_of(exclude) if exclude is not None else set()
    translated = None if translations is None else listed(translations)
    sentences = PairsAndText(None, SentenceSources(listed(text), columns, translated, option="columns"), unwanted)
    if sentences.translated:
        _check_translated(config, language)
    pairs = Pairs(listed(data), PairSelection(), unwanted, seed=config.seed) if data is not None else None
    located = locate(names[0])
    # The record is published, and does not show where folders are.
    named = replace(config, start=plain_name(start)) if start is not None else config
    stated = {"language": language} if language not in (None, ENGLISH) else {}
    settings = {
        "teacher": located.revision,
        "start": locate(start).revision if start is not None else None,
        "text": sentences.identity,
        "data": pairs.identity if pairs is not None else None,
        "evaluated": {each.title: each.checksum for each in sets},
        "config": as_json(named),
        **stated,
    }
    inputs = {"teacher": plain_name(str(names[0])), "text": ", ".join(sentences.names)}
    shown = language if sentences.translated or stated else None
    command = _command(inputs["teacher"], sentences, columns, translations, data, shown, named, exclude)

    def make(work: Path, folder: Path) -> DistillRecord:
        steps = _Steps(work, str(names[0]), located, config, *_split(sentences, work, config))
        found = steps.run(folder, data, exclude, sets)
        trained = TrainingRecord.read(folder)
        said = replace(trained.settings, data=trained.settings.data | stated)
        trained = replace(trained, settings=said, inputs=trained.inputs | inputs).write(folder)
        made = made_with("torch", "numpy", "numba", "sentence-transformers")
        record = DistillRecord(settings=settings, command=command, dimension=trained.dimension, **found, **made)
        # The card shows the command.
        record.write(folder)
        write_card(folder, trained_values(out.name, folder, trained))
        return record

    # Other sets to evaluate on need no other work.
    same = {name: value for name, value in settings.items() if name != "evaluated"}
    return run(
        out,
        settings,
        DistillRecord,
        make,
        result=Distilled,
        command="distill",
        holds=_holds,
        work_identity=same,
    )


def _check_language(language: str, evaluate: str | Path | None) -> None:
    """Reject an unknown language of the text, and one that is not that of the sets to evaluate on."""
    check_language(language)
    if language != ENGLISH and evaluate is not None and is_sample(evaluate):
        raise InputError(
            f"the sentences of `evaluate` sample are English, and `language` is {language}; name a folder with STS "
            "sets of that language, or leave `evaluate` out",
            option="evaluate",
        )


def _check_translated(config: DistillConfig, language: str | None) -> None:
    """Reject settings that do not fit text with translations."""
    if language is None:
        raise InputError("say which language the text has, such as `language` de", option="language")
    if config.words or config.start == WORDS:
        raise InputError(
            "the start words needs a teacher that reads the text itself; leave out `words`, or `translations`",
            option="words" if config.words else "start",
        )


def _command(
    teacher: str,
    sentences: PairsAndText,
    columns: Sequence[str] | None,
    translations: Names | None,
    data: Names | None,
    language: str | None,
    config: DistillConfig,
    exclude: str | Path | None,
) -> str:
    """Command that made an encoder, with paths shortened to names."""
    words = [teacher, "--text", *sentences.names, *(["--columns", *columns] if columns else [])]
    for option, files in (("--translations", translations), ("--data", data)):
        words += [option, *map(source_name, listed(files))] if files is not None else []
    words += ["--language", language] if language is not None else []
    words += [*option_words(config), *(["--exclude", "STS"] if exclude is not None else [])]
    return " ".join(["paranmt distill", *map(shell_word, words), "--out FOLDER"])


def _holds(work: Path) -> bool:
    return holds_training(work) or any(work.glob("*.work/states-*")) or (work / "lists").exists()


def _split(sentences: PairsAndText, work: Path, config: DistillConfig) -> tuple[Path, pa.Table, pa.Table]:
    """Hold out some of the distinct sentences; the others are written into a file, returned with both."""
    others, held_out = split_text(sentences, config.held_out, NEIGHBOURS, config.seed)
    path = work / "text.parquet"
    with writing(path):
        pq.write_table(others, path)
    return path, others, held_out


@dataclass(frozen=True)
class _Steps:
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
        if start == WORDS and self.config.dimension:
            # Before the hours of the teacher.
            width = load(self.teacher).get_embedding_dimension() or 0
            check_reduction(len(self.sentences), width, self.config.dimension, 0)
        with followed_by(epochs * len(self.sentences) / PER_CORE / visible_cores()):
            taught = self._teach()
            encoder = self._encoder(start, counts, taught)
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
        return Path(self.config.teacher_cache or self.work / "teacher").expanduser()

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
            matrix = Quiet(encoder, 256).encode(known)
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
        return Quiet(build_for(encoder, counts, None, seed=self.config.seed), 256)

    def _dimension(self, taught: TeacherVectors) -> int:
        return self.config.dimension or min(taught.dimension, len(self.sentences), MOST_DIMENSIONS)

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


def _scores(encoder: Encoder, sets: list[StsSet]) -> dict[str, float]:
    """Pearson's r by evaluation set."""
    rows = evaluate_sts(encoder, sets, bootstrap=0).tables["Set"] if sets else []
    titles = {each.title for each in sets}
    return {row.name: row.main for row in rows if row.name in titles}
