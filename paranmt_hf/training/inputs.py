"""The inputs of a training run: models, vectors and data, each of which is found, hashed and read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.corpus.reading.pairs import Pairs, PairSelection
from paranmt_hf.corpus.reading.sentences import SentenceSources
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.evaluation.sts_data import StsSet, read_benchmark, read_scored_pairs, read_sts
from paranmt_hf.hub.repository import check_name, plain_name
from paranmt_hf.text.word_vectors import check_vectors, read_vectors
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.processes import process_count
from paranmt_hf.training.record import TrainingSettings
from paranmt_hf.training.teachers import Teacher, check_teacher, find_teachers
from paranmt_hf.training.text import PairsAndText
from paranmt_hf.util.files import Names, checksum, existing, listed
from paranmt_hf.util.settings import is_given

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder


@dataclass(frozen=True)
class TrainingInputs:
    """The inputs of a training run.

    Attributes:
        encoder: Settings of the encoder, resolved; those of the encoder to continue from are filled in.
        config: How it is trained.
        pairs: The pairs, or pairs and text.
        development: The development set; None for none.
        start: The encoder to continue from; None for none.
        teachers: The teachers.
        vectors: The file of word vectors to start from; None for none.
    """

    encoder: EncoderConfig
    config: TrainConfig
    pairs: Pairs | PairsAndText
    development: StsSet | None = None
    start: SentenceEncoder | None = None
    teachers: Sequence[Teacher] = ()
    vectors: Path | None = None

    @property
    def in_engine(self) -> bool:
        """Whether an engine for averages trains the encoder, and not the trainer."""
        dense = any(family.layers for family in self.encoder.families)
        return not dense and not self.config.word_factors and process_count() == 1

    @cached_property
    def settings(self) -> TrainingSettings:
        """Everything that determines the result."""
        development = self.development
        revisions = tuple(teacher.revision for teacher in self.teachers) or None
        return TrainingSettings(
            encoder=encoder_identity(self.encoder, self.start, self.vectors),
            training=replace(self.config, teacher=revisions),
            data=self.pairs.identity,
            development=None if development is None else development.name,
            development_checksum=None if development is None else development.checksum,
            processes=None if process_count() == 1 else process_count(),
        )

    @property
    def names(self) -> dict[str, str]:
        """Names of the inputs, without folders, by the setting that names them; the settings hold only checksums."""
        names = {"teacher": ", ".join(teacher.name for teacher in self.teachers)} if self.teachers else {}
        if self.encoder.init_from:
            names["init_from"] = plain_name(self.encoder.init_from)
        if isinstance(self.pairs, PairsAndText):
            names["text"] = ", ".join(self.pairs.names)
        if self.vectors is not None:
            names["vectors"] = self.vectors.name
        return names


def find_inputs(
    data: Names | None,
    encoder: EncoderConfig,
    config: TrainConfig,
    selection: PairSelection,
    *,
    columns: Mapping[str, str] | None = None,
    development: str | Path | None = None,
    exclude: str | Path | None = None,
    text: Names | None = None,
) -> TrainingInputs:
    """Find and check the inputs of a run; arguments as in `train`.

    Quick checks come before the data is read, and reading before torch is imported.

    Raises:
        InputError: An input is missing or damaged, or does not fit the settings.
    """
    teachers = config.teacher or ()
    _check_given(data, text, columns, config, selection)
    for name in teachers:
        check_teacher(name)
    if encoder.init_from:
        check_name(encoder.init_from)
    if encoder.vectors:
        check_vectors(vectors_file(encoder.vectors))
    held_out = read_scored_pairs(development) if development is not None else None
    unwanted = sentences_of(exclude) if exclude is not None else set()
    of_pairs = None
    if data is not None:
        of_pairs = Pairs(listed(data), selection, unwanted, columns=columns, seed=config.seed)
    pairs = of_pairs if text is None else PairsAndText(of_pairs, SentenceSources(listed(text), option=None), unwanted)
    assert pairs is not None
    found = find_teachers(teachers, config.teacher_prompt)
    encoder, start, vectors = resolve_encoder(encoder)
    inputs = TrainingInputs(encoder, config, pairs, held_out, start, found, vectors)
    other = config.word_factors and encoder.model != "word"
    refuse(other, f"`word_factors` is for the model word, not for {encoder.model}", option="word_factors")
    other = config.neighbours and not inputs.in_engine
    refuse(other, "`neighbours` is for averaging models, trained by one process", option="neighbours")
    return inputs


def _check_given(data: object, text: object, columns: object, config: TrainConfig, selection: PairSelection) -> None:
    """Reject data that do not fit the settings, and a GPU that is not there; arguments as in `train`."""
    refuse(
        text is not None and config.margin_weight,
        "`text` has sentences without paraphrases, which only a teacher helps to learn from; give `teacher`, leave "
        "`teacher_weight` at 1.0, and train on pairs afterwards (`init_from`)",
        option="text",
    )
    refuse(
        data is None and text is None,
        "there is nothing to train on: give pairs as `data`, or sentences as `text` with a `teacher`",
    )
    refuse(data is None and columns, "`columns` are those of pairs; give some as `data`", option="columns")
    chosen = data is None and selection != PairSelection()
    refuse(chosen, "options that choose pairs need pairs; give some as `data`", option="data")
    if config.device == "cuda":
        import torch

        missing = not torch.cuda.is_available()
        refuse(
            missing, "`device` cuda: there is no GPU that torch can use; leave it out, or choose cpu", option="device"
        )


def resolve_encoder(encoder: EncoderConfig) -> tuple[EncoderConfig, SentenceEncoder | None, Path | None]:
    """Find the encoder to continue from, or the file of word vectors to start from.

    Returns:
        The settings, resolved; the encoder to continue from; and the file of word vectors. At most one of the latter
        two is not None.
    """
    if encoder.init_from:
        from paranmt_hf.encoders.building import trainable

        start = trainable(load(encoder.init_from, device="cpu"))
        return _resolved(encoder, start), start, None
    vectors = vectors_file(encoder.vectors) if encoder.vectors else None
    width = read_vectors(vectors, limit=1).matrix.shape[1] if vectors is not None else None
    return encoder.resolved(width), None, vectors


def encoder_identity(encoder: EncoderConfig, start: SentenceEncoder | None, vectors: Path | None) -> EncoderConfig:
    """Replace names in the settings of an encoder by checksums; arguments as returned by `resolve_encoder`."""
    if start is not None:
        revision = start.source.revision if start.source is not None else None
        return EncoderConfig(model=encoder.model, init_from=revision)
    return replace(encoder, vectors=f"sha256:{checksum(vectors)}" if vectors else None)


def _resolved(encoder: EncoderConfig, start: SentenceEncoder) -> EncoderConfig:
    """Fill in the model from the encoder to continue from, and reject settings that this encoder has already."""
    from paranmt_hf.encoders.composition import take_apart

    name = take_apart(start).name
    given = {entry.name for entry in fields(encoder) if is_given(encoder, entry.name)} - {"init_from"}
    if given - {"model"} or encoder.model not in (EncoderConfig().model, name, name.replace(",", "-")):
        raise InputError(
            f"{encoder.init_from} is a model {name!r} with its own vocabulary and dimensions; leave out "
            f"{', '.join(f'`{name}`' for name in sorted(given))}",
            option="init_from",
        )
    return replace(encoder, model=name)


def vectors_file(path: str) -> Path:
    """Return the path of a file of word vectors, which must exist."""
    (file,) = existing([Path(path).expanduser()])
    return file


def sentences_of(folder: str | Path) -> set[str]:
    """Return every sentence of the STS sets in a folder, including the benchmark's training part."""
    folder = Path(folder).expanduser()
    sets = list(read_sts(folder))
    for benchmark in (folder, folder / "STSBenchmark"):
        if (benchmark / "sts-train.csv").exists():
            sets.append(read_benchmark(benchmark, split="train"))
    return set().union(*(part.sentences for part in sets))


def holds_training(work: Path) -> bool:
    """Whether a work folder holds results that took long: a checkpoint, or vectors of a teacher."""
    return holds_checkpoint(work) or any(work.glob("teacher/**/part-*"))


def holds_checkpoint(work: Path) -> bool:
    """Whether a work folder holds a checkpoint."""
    return any(work.glob("**/checkpoint*"))
