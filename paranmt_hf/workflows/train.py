"""Train an encoder: pairs in, a folder out that `SentenceTransformer` loads."""

from __future__ import annotations

import json
import logging
import os
import platform
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError

from paranmt_hf import __version__
from paranmt_hf.corpus.pairs import SIDES, Pairs, SelectionConfig
from paranmt_hf.encoders.building import (
    EncoderConfig,
    Part,
    build_encoder,
    choose_vocabularies,
    parts_of,
    trainable,
)
from paranmt_hf.encoders.loading import SentenceEncoder, load, save
from paranmt_hf.encoders.modules.lstm import padded, sequence_features
from paranmt_hf.encoders.vocabulary import Kind, count_units, lookup, most_frequent
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import pearson
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.evaluation.sts_data import StsSet, development_set
from paranmt_hf.hub.repository import locate
from paranmt_hf.training.averaging import AveragingTrainer, Table
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.history import History, plot_history
from paranmt_hf.training.loop import Loop, learning_rates
from paranmt_hf.training.pair_store import PairStore, write_pairs
from paranmt_hf.training.rowwise import RowwiseAdam
from paranmt_hf.training.teacher import TeacherVectors, teach
from paranmt_hf.util.work import locked
from paranmt_hf.vectors import WordVectors, read_vectors
from paranmt_hf.workflows.support.training_identity import (
    RECORD,
    existing,
    finished,
    inputs_of,
    keep_settings,
    sentences_of,
    settings_of,
    settled,
)
from paranmt_hf.workflows.support.unused_options import refuse_unused

logger = logging.getLogger(__name__)
# Says that everything is prepared, to the other processes of `accelerate launch`.
READY = "ready"


@dataclass
class Trained:
    """A trained encoder.

    Attributes:
        folder: Where it is.
        record: Settings, course and result, as in `training.json`.
        fresh: Whether this call trained it; it may have been there already.
    """

    folder: Path
    record: dict[str, Any]
    fresh: bool

    def load(self) -> SentenceEncoder:
        """Load the encoder."""
        return load(self.folder)


def train(
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    encoder: EncoderConfig | None = None,
    config: TrainConfig | None = None,
    selection: SelectionConfig | None = None,
    development: str | Path | None = None,
    exclude: str | Path | None = None,
    teacher_cache: str | Path | None = None,
) -> Trained:
    """Train an encoder on paraphrase pairs, as ParaNMT-50M (Wieting & Gimpel 2018, sections 4 and 5) does.

    Killed at any moment and called again it goes on from the last checkpoint; on the CPU it ends with the same bytes.
    Under `accelerate launch` or `torchrun` all processes call it alike; the first one reads the data and writes.

    Args:
        data: One or more releases, Parquet files with `reference` and `translation`, or datasets on the Hub.
        out: Folder of the encoder; work in progress lies beside it in `<out>.work`.
        encoder: Which encoder.
        config: How it is trained.
        selection: Which pairs are used.
        development: Folder with the STS benchmark; its 250 pairs of STS 2017 track 5 decide which weights are kept.
        exclude: Folder with STS sets; pairs with one of their sentences are left out of the training data.
        teacher_cache: Folder that keeps the teacher's vectors for other runs; the work folder if left out.

    Raises:
        InputError: Something in the data, the settings or the folders has to be put right first.
    """
    encoder, config, selection = encoder or EncoderConfig(), config or TrainConfig(), selection or SelectionConfig()
    out = Path(out).expanduser().resolve()
    sources = [data] if isinstance(data, str | Path) else list(data)
    held_out = development_set(Path(development)) if development is not None else None
    pairs = Pairs(sources, selection, sentences_of(exclude) if exclude is not None else ())
    if encoder.start:
        encoder = settled(encoder)
    refuse_unused(
        encoder,
        config,
        development=held_out is not None,
        teacher_cache=teacher_cache is not None,
        processes=int(os.environ.get("WORLD_SIZE", "1")),
    )
    settings = settings_of(encoder, config, pairs, held_out)
    work = out.with_name(f"{out.name}.work")
    if (record := finished(out, settings)) is not None:
        # A kill may have come between the last rename and the removal.
        if work.exists():
            with suppress(InputError), locked(work):
                shutil.rmtree(work, ignore_errors=True)
        return Trained(out, record, fresh=False)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out}: cannot make its folder: {error.strerror}; choose another place") from None
    if config.patience is not None and held_out is None:
        raise InputError("--patience counts evaluations on a development set; name one with --development")
    first = int(os.environ.get("RANK", "0")) == 0 or int(os.environ.get("WORLD_SIZE", "1")) == 1
    if not first:
        _wait_for(work / READY)
    with locked(work) if first else nullcontext():
        keep_settings(work / "settings.json", settings)
        model = _initial(work / "initial", encoder, pairs, config.seed)
        store = _store(work / "pairs", model, pairs)
        teacher = _teach(config, pairs, Path(teacher_cache or work / "teacher")) if config.teacher else None
        (work / READY).touch()
        history = fit(model, store, config, work, held_out, teacher)
        if not first:
            _wait_for(out / RECORD)
            return Trained(out, json.loads((out / RECORD).read_text(encoding="utf8")), fresh=True)
        if not history.losses:
            raise InputError(
                f"nothing was learned: none of the {store.pairs:,} pairs has a negative, for all their sentences are "
                f"copies or paraphrases of each other; delete {work} and give more data"
            )
        record = _write(model, work / "model", settings, history, store, held_out, inputs_of(encoder, config))
        if out.exists():
            out.rmdir()
        (work / "model").rename(out)
        shutil.rmtree(work)
    return Trained(out, record, fresh=True)


def _wait_for(path: Path) -> None:
    """Let the other processes of `accelerate launch` wait until the first one has written something."""
    while not path.exists():
        time.sleep(0.1)


def _initial(folder: Path, config: EncoderConfig, pairs: Pairs, seed: int) -> SentenceEncoder:
    """The encoder before training; made once, so that going on does not count the corpus again."""
    if folder.exists():
        return trainable(load(folder, device="cpu"))
    if config.start:
        model = load(config.start, device="cpu")
    else:
        logger.info("counting the words of the training data")
        columns = (table[side] for table in pairs.batches() for side in SIDES)
        if config.vectors is not None:
            # A file that is none shows before the corpus is read.
            read_vectors(existing(config.vectors), limit=1)
        counts = count_units(columns, config.kinds)
        if not any(counts.values()):
            raise InputError(f"nothing to train on: {pairs.left_out}; look at the data and at the options that choose")
        vectors = _vectors(config, counts)
        model = build_encoder(config, choose_vocabularies(config, counts, vectors), vectors=vectors, seed=seed)
    aside = folder.with_name("initial.tmp")
    shutil.rmtree(aside, ignore_errors=True)
    with _room_for(aside):
        save(model, aside)
    aside.rename(folder)
    return trainable(load(folder, device="cpu"))


@contextmanager
def _room_for(folder: Path) -> Iterator[None]:
    """Tell what keeps an encoder from being written."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error).split("\n")[0]
        raise InputError(
            f"cannot save the encoder to {folder}: {reason}; make room and run the same command again, which goes on "
            "from what is kept in the folder above"
        ) from None


def _vectors(config: EncoderConfig, counts: Mapping[Kind, Counter[str]]) -> WordVectors | None:
    """Read the vectors of the words to come: those of the text wherever they stand, others from the beginning."""
    if config.vectors is None or "word" not in config.kinds:
        return None
    own = most_frequent("word", counts["word"], config.words, minimum=config.minimum)
    return read_vectors(existing(config.vectors), limit=config.words, wanted=own.units)


def _store(folder: Path, model: SentenceEncoder, pairs: Pairs) -> PairStore:
    """Pairs as rows, read from the corpus once."""
    if (folder / "pairs.json").exists():
        return PairStore(folder)
    parts, _ = parts_of(model)
    vocabularies = {part.reader: part.vocabulary for part in parts}
    columns = (
        (table["reference"].combine_chunks(), table["translation"].combine_chunks()) for table in pairs.batches()
    )
    readers = {name: lookup(vocabulary) for name, vocabulary in vocabularies.items()}
    store = write_pairs(columns, folder, readers, {name: len(known) for name, known in vocabularies.items()})
    for count, reason in (
        (pairs.unselected, "outside the chosen ranges"),
        (pairs.contaminated, "with a sentence of the excluded sets"),
        (store.left_out, "without a known word on a side"),
    ):
        if count:
            logger.info(f"left out: {count:,} pairs {reason}")
    logger.info(f"training on {store.pairs:,} pairs")
    return store


def _teach(config: TrainConfig, pairs: Pairs, folder: Path) -> TeacherVectors:
    """Let the teacher encode every sentence of the pairs."""
    assert config.teacher is not None
    teacher = load(config.teacher, device=config.device)

    def encode(sentences: list[str]) -> np.ndarray:
        # Rounding to bfloat16 changes a teacher's cosines far less than the student can follow.
        with torch.autocast(teacher.device.type, torch.bfloat16, enabled=config.precision == "bf16"):
            vectors = teacher.encode(sentences, batch_size=128, show_progress_bar=False, convert_to_tensor=True)
        return vectors.float().cpu().numpy()

    return teach(
        (table[side] for table in pairs.batches() for side in SIDES),
        encode,
        folder,
        name=locate(config.teacher).revision,
    )


def fit(
    model: SentenceEncoder,
    store: PairStore,
    config: TrainConfig,
    work: Path,
    held_out: StsSet | None = None,
    teacher: TeacherVectors | None = None,
) -> History:
    """Train a model on stored pairs; the tight loop runs averaging models on the CPU, the trainer everything else.

    Args:
        model: The encoder, from `trainable`; it holds the final weights afterwards.
        store: The pairs.
        config: The settings.
        work: Folder for checkpoints.
        held_out: Development set.
        teacher: The teacher's vectors, if similarities are learned too.
    """
    parts, mode = parts_of(model)
    if config.device == "cuda" and not torch.cuda.is_available():
        raise InputError("there is no GPU that torch can use; leave out --device, or name the CPU")
    evaluate = partial(_development_score, model, held_out) if held_out is not None else None
    if any(part.sequence for part in parts) or config.device == "cuda":
        from paranmt_hf.training.trainer import Reading, train_with_trainer

        readings = [
            Reading(
                reader=part.reader,
                suffix=f"_{number}" if len(parts) > 1 else "",
                features=sequence_features if part.sequence else bag_features,
                ordered=part.sequence,
                table=part.table,
            )
            for number, part in enumerate(parts)
        ]
        on_cpu = config.device == "cpu" or not torch.cuda.is_available()
        with padded(model.modules() if on_cpu else ()):
            return train_with_trainer(model, readings, store, work, config, evaluate, teacher)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("averaging models are trained by one process on the CPU; give --device cuda, or start one")
    rates = learning_rates(store.pairs, config)
    trainer = AveragingTrainer([_table(part, rates, config) for part in parts], mode, config, teacher)
    return Loop(trainer, store, work, evaluate).run()


def _table(part: Part, rates: np.ndarray, config: TrainConfig) -> Table:
    weight = part.table.weight.data
    start = weight.clone() if config.lambda_w else None
    return Table(part.reader, RowwiseAdam(weight, rates), start, frozen=not bool(weight[0].any()))


def bag_features(rows: np.ndarray, offsets: np.ndarray) -> dict[str, torch.Tensor]:
    """What the averaging modules read: `input_ids` [unit] and `offsets` [sentence]."""
    return {"input_ids": torch.from_numpy(rows.astype(np.int64)), "offsets": torch.from_numpy(offsets[:-1])}


def _development_score(model: SentenceEncoder, held_out: StsSet) -> float:
    """Pearson on the development set with the weights as they are now."""
    training = model.training
    model.eval()
    model.forget_averages()
    quiet = _Quiet(model)
    found = pair_similarities(quiet, held_out.left, held_out.right, held_out.name)
    model.train(training)
    return pearson(found.values, held_out.gold)


class _Quiet:
    """An encoder without a progress bar."""

    def __init__(self, model: SentenceEncoder) -> None:
        self._model = model

    def encode(self, sentences: list[str]) -> np.ndarray:
        return self._model.encode(sentences, batch_size=128, show_progress_bar=False)


def _write(
    model: SentenceEncoder,
    folder: Path,
    settings: dict[str, Any],
    history: History,
    store: PairStore,
    held_out: StsSet | None,
    inputs: dict[str, str],
) -> dict[str, Any]:
    """Write the encoder with its record and, where matplotlib is there, its picture."""
    shutil.rmtree(folder, ignore_errors=True)
    record = {
        "settings": settings,
        "inputs": inputs,
        "pairs": store.pairs,
        "history": history.as_dict(),
        "development": _development_score(model, held_out) if held_out is not None else None,
        "dimension": model.get_embedding_dimension(),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "versions": {name: version(name) for name in ("torch", "numpy", "sentence-transformers")},
        "machine": platform.machine(),
        "paranmt_hf": __version__,
    }
    # What this call returns is what a later one reads.
    record = json.loads(json.dumps(record))
    with _room_for(folder):
        save(model, folder)
        (folder / RECORD).write_text(json.dumps(record, indent=1), encoding="utf8")
        if history.losses:
            plot_history(history, folder / "training.png", settings["encoder"]["model"])
    return record
