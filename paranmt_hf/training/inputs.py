"""What a training run starts from: models, vectors and data, each found, hashed and read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.corpus.pairs import Pairs, PairSelection
from paranmt_hf.corpus.sentences import SentenceSources
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.scored_pairs import read_scored_pairs
from paranmt_hf.evaluation.sts_data import StsSet, read_benchmark, read_sts
from paranmt_hf.hub.repository import Model, check_name, locate, plain_name
from paranmt_hf.text.word_vectors import read_vectors
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.teacher_text import PairsAndText
from paranmt_hf.util.files import check_regular, checksum
from paranmt_hf.util.records import Identity, as_json
from paranmt_hf.util.settings import is_given

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

# Settings that name a teacher.
TEACHERS = ("teacher", "second_teacher")
# Settings that change nothing of the result.
WITHOUT_EFFECT = ("checkpoint_seconds", "report_to", "mine_over")


@dataclass(frozen=True)
class TrainingRun:
    """What a training run starts from.

    Attributes:
        encoder: The encoder's settings; what a start decides is filled in.
        config: The training's settings.
        pairs: The data.
        development: The development set, if there is one.
        start: The encoder to go on from, if there is one.
        teachers: The files of the teachers, none, one or two.
        vectors: The file of word vectors, if there is one.
    """

    encoder: EncoderConfig
    config: TrainConfig
    pairs: Pairs | PairsAndText
    development: StsSet | None = None
    start: SentenceEncoder | None = None
    teachers: Sequence[Model] = ()
    vectors: Path | None = None

    @cached_property
    def identity(self) -> Identity:
        """Everything that decides the result, as JSON values."""
        training = {name: value for name, value in asdict(self.config).items() if name not in WITHOUT_EFFECT}
        # Where each process mines in all of a mega-batch, the same comes out of any number of them.
        if self.config.mine_over == "rank":
            # Brings torch, for which mistakes do not wait.
            from paranmt_hf.training.distributed import started

            training |= {"mine_over": "rank", "processes": started()}
        if self._averages_through_trainer:
            # What the loop began the trainer cannot go on with, and their results differ.
            training["through_trainer"] = True
        return as_json(
            {
                "encoder": encoder_identity(self.encoder, self.start, self.vectors),
                "training": training | dict(zip(TEACHERS, (each.revision for each in self.teachers), strict=False)),
                "data": self.pairs.identity,
                "development": self.development.name if self.development is not None else None,
                "development_checksum": self.development.checksum if self.development is not None else None,
            }
        )

    @property
    def _averages_through_trainer(self) -> bool:
        """Whether the trainer runs a model that the loop on the GPU would run under other settings."""
        dense = any(family.dense for family in self.encoder.families)
        return not dense and self.config.needs_trainer

    @property
    def inputs(self) -> dict[str, str]:
        """Names, without their folders, of what the run started from; its identity holds only their checksums."""
        models = {"init_from": self.encoder.init_from, **{name: getattr(self.config, name) for name in TEACHERS}}
        names = {option: plain_name(name) for option, name in models.items() if name}
        if isinstance(self.pairs, PairsAndText):
            names["text"] = ", ".join(self.pairs.names)
        return names | ({"vectors": self.vectors.name} if self.vectors else {})


def resolve(
    data: str | Path | Sequence[str | Path] | None,
    encoder: EncoderConfig,
    config: TrainConfig,
    selection: PairSelection,
    *,
    development: str | Path | None = None,
    exclude: str | Path | None = None,
    text: str | Path | Sequence[str | Path] | None = None,
) -> TrainingRun:
    """Find what a run starts from; arguments as of `train`.

    Raises:
        InputError: Something is missing or does not fit together.
    """
    names = [name for name in (getattr(config, teacher) for teacher in TEACHERS) if name]
    _check_given(data, text, config, selection)
    # What is told at once goes before what reads data, and that before what brings torch.
    for name in [*names, *([encoder.init_from] if encoder.init_from else [])]:
        check_name(name)
    if encoder.vectors:
        existing(encoder.vectors)
    held_out = read_scored_pairs(development) if development is not None else None
    unwanted = sentences_of(exclude) if exclude is not None else set()
    pairs = _pairs(data, text, config, selection, unwanted)
    teachers = [locate(name) for name in names]
    encoder, start, vectors = resolve_encoder(encoder)
    return TrainingRun(encoder, config, pairs, held_out, start, teachers, vectors)


def _check_given(data: object, text: object, config: TrainConfig, selection: PairSelection) -> None:
    """Refuse data that do not go with the settings; arguments as of `train`."""
    if text is not None and config.margin_weight:
        raise InputError(
            "--text has sentences without paraphrases, of which a teacher alone tells something; give --teacher and "
            "leave --teacher-weight at 1.0, and train on pairs afterwards (--init-from)"
        )
    if data is None and text is None:
        raise InputError(
            "there is nothing to train on: give pairs with --data, or sentences with --text and a --teacher"
        )
    if data is None and selection != PairSelection():
        raise InputError("options that choose pairs need pairs; give some with --data")


def _pairs(
    data: str | Path | Sequence[str | Path] | None,
    text: str | Path | Sequence[str | Path] | None,
    config: TrainConfig,
    selection: PairSelection,
    unwanted: set[str],
) -> Pairs | PairsAndText:
    """Find the pairs and the sentences without a paraphrase."""
    pairs = None
    if data is not None:
        sources = [data] if isinstance(data, str | Path) else list(data)
        pairs = Pairs(sources, selection, unwanted, seed=config.seed, errors_apart=config.error_negatives > 0)
    if text is None:
        assert pairs is not None
        return pairs
    files = [text] if isinstance(text, str | Path) else list(text)
    return PairsAndText(pairs, SentenceSources(files), unwanted)


def resolve_encoder(encoder: EncoderConfig) -> tuple[EncoderConfig, SentenceEncoder | None, Path | None]:
    """Find what an encoder starts from.

    Args:
        encoder: Its settings.

    Returns:
        The settings with what was left open filled in, the encoder to go on from and the file of word vectors; one of
        these two at most.

    Raises:
        InputError: Something is missing or does not fit together.
    """
    if encoder.init_from:
        from paranmt_hf.encoders.building import trainable

        start = trainable(load(encoder.init_from, device="cpu"))
        return _resolved(encoder, start), start, None
    vectors = existing(encoder.vectors) if encoder.vectors else None
    width = read_vectors(vectors, limit=1).matrix.shape[1] if vectors is not None else None
    return encoder.resolved(width), None, vectors


def encoder_identity(encoder: EncoderConfig, start: SentenceEncoder | None, vectors: Path | None) -> dict[str, Any]:
    """Everything that decides an encoder before its training, as JSON values; arguments as of `resolve_encoder`."""
    if start is not None:
        return {"model": encoder.model, "init_from": start.source.revision if start.source is not None else None}
    return {**asdict(encoder), "vectors": f"sha256:{checksum(vectors)}" if vectors else None}


def _resolved(encoder: EncoderConfig, start: SentenceEncoder) -> EncoderConfig:
    """Fill in what a start decides.

    Raises:
        InputError: The settings ask for another encoder than the start is.
    """
    from paranmt_hf.encoders.composition import take_apart

    name = take_apart(list(start)).name
    given = {entry.name for entry in fields(encoder) if is_given(encoder, entry.name)} - {"init_from"}
    if given - {"model"} or encoder.model not in (EncoderConfig().model, name, name.replace(",", "-")):
        raise InputError(
            f"{encoder.init_from} is a model {name!r} with its own vocabulary and dimensions; leave out "
            f"{', '.join(sorted('--' + option.replace('_', '-') for option in given))}"
        )
    return replace(encoder, model=name)


def existing(path: str) -> Path:
    """Find a file of word vectors."""
    check_regular(Path(path).expanduser())
    if not Path(path).expanduser().is_file():
        raise InputError(f"--vectors {path}: no such file; expected a text file of word vectors")
    return Path(path).expanduser()


def sentences_of(folder: str | Path) -> set[str]:
    """Every sentence of the STS sets in a folder, the benchmark's training part included."""
    sets = list(read_sts(Path(folder)))
    for benchmark in (Path(folder), Path(folder) / "STSBenchmark"):
        if (benchmark / "sts-train.csv").exists():
            sets.append(read_benchmark(benchmark, split="train"))
    return {sentence for part in sets for sentence in [*part.left, *part.right]}


def holds_training(work: Path) -> bool:
    """Tell whether a work folder holds what took long to make: a checkpoint, vectors of a teacher."""
    return any(work.glob("**/checkpoint*")) or any(work.glob("teacher/**/part-*"))
