"""Train an encoder: pairs in, a folder out that `SentenceTransformer` loads.

What brings torch is imported where it is used: a mistake in options, names and data is told before.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paranmt_hf.corpus.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import pearson
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.evaluation.sts_data import StsSet
from paranmt_hf.training.card import write_model_card
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.derived_record import basis_of, training_values
from paranmt_hf.training.history import TRAINING_PICTURE, History, plot_history
from paranmt_hf.training.inputs import TrainingRun, holds_training, resolve
from paranmt_hf.training.pair_store import PairStore
from paranmt_hf.training.record import TRAINING_FILE, TrainingRecord, read_training
from paranmt_hf.training.unused_options import refuse_unused
from paranmt_hf.util.optional import require
from paranmt_hf.util.work import (
    finished,
    folder_aside,
    is_free,
    keep_identity,
    locked,
    put_in_place,
    refuse_inside,
    remove,
    remove_leftover,
    result_folder,
    work_folder,
)
from paranmt_hf.version import __version__

if TYPE_CHECKING:
    import torch

    from paranmt_hf.encoders.composition import Composition, Part
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
    from paranmt_hf.training.averaging import TrainedTable
    from paranmt_hf.training.processes import Processes
    from paranmt_hf.training.teacher import TeacherVectors
    from paranmt_hf.training.trainer import Reading

# Says that everything is prepared, to the other processes of the trainer.
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
    record: TrainingRecord
    fresh: bool

    def load(self) -> SentenceEncoder:
        """Load the encoder."""
        return load(self.folder)


def train(
    data: str | Path | Sequence[str | Path] | None,
    out: str | Path,
    *,
    text: str | Path | Sequence[str | Path] | None = None,
    encoder: EncoderConfig | None = None,
    config: TrainConfig | None = None,
    selection: PairSelection | None = None,
    development: str | Path | None = None,
    exclude: str | Path | None = None,
    teacher_cache: str | Path | None = None,
) -> Trained:
    """Train an encoder on paraphrase pairs, as ParaNMT-50M (Wieting & Gimpel 2018, sections 4 and 5) does.

    Killed at any moment and called again it goes on from the last checkpoint; on the CPU it ends with the same bytes.
    Under `torchrun` or `accelerate launch` all processes call it alike; the first one reads the data and writes.

    Args:
        data: None, or one or more releases, Parquet files with `reference` and `translation`, or datasets on the Hub.
        out: Folder of the encoder; work in progress lies beside it in `<out>.work`.
        text: Sentences without paraphrases, for a teacher alone: text files, Parquet, releases.
        encoder: Which encoder.
        config: How it is trained.
        selection: Which pairs are used.
        development: Scored pairs that decide which weights are kept: `sample`, a file, or a folder with the STS
            benchmark, of which its 250 pairs of STS 2017 track 5 are used; see `read_scored_pairs`.
        exclude: Folder with STS sets; pairs with one of their sentences are left out of the training data, and text
            that shares a sentence or eight words in a row with them.
        teacher_cache: Folder that keeps the teacher's vectors for other runs; the work folder if left out.

    Raises:
        InputError: Something in the data, the settings or the folders has to be put right first.
    """
    encoder, config, selection = encoder or EncoderConfig(), config or TrainConfig(), selection or PairSelection()
    out = result_folder(out)
    count, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    if config.patience is not None and development is None:
        raise InputError("--patience counts evaluations on a development set; name one with --development")
    if not is_free(out):
        _read_record(out)

    def check_unused(encoder: EncoderConfig) -> None:
        given = {"development": development is not None, "teacher_cache": teacher_cache is not None}
        refuse_unused(encoder, config, **given, processes=count)

    if not encoder.init_from:
        check_unused(encoder)
    if config.mining_precision == "int8":
        require("numba", "fast")
    _check_device(config)
    refuse_inside(out, *_folders(encoder.init_from, config.teacher, config.second_teacher, data, text))
    run = resolve(data, encoder, config, selection, development=development, exclude=exclude, text=text)
    in_loop = not any(family.dense for family in run.encoder.families) and not config.needs_trainer
    if in_loop and count > 1:
        from paranmt_hf.training.several_processes import check_processes

        check_processes(config, count)
    if encoder.init_from:
        # Which model it is its folder says.
        check_unused(run.encoder)
    work = work_folder(out)
    record = finished(out, run.identity, _read_record, lambda record: record.settings, made="trained")
    if record is not None:
        remove_leftover(out, "train")
        return Trained(out, record, fresh=False)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out}: cannot make its folder: {error.strerror}; choose another place") from None
    from paranmt_hf.training.prepare import prepare
    from paranmt_hf.training.processes import join
    from paranmt_hf.training.several_processes import own_device, wait_for, wait_until_prepared

    processes = join(own_device()) if in_loop and count > 1 else None
    first = rank == 0 or count == 1
    if not first:
        wait_until_prepared(work / READY, processes)
    with locked(work, "train", worth=holds_training) if first else nullcontext():
        keep_identity(work, run.identity, worth=holds_training, doing="training")
        if first:
            # Left by a run that was killed.
            (work / READY).unlink(missing_ok=True)
        model, store, teacher = prepare(run, work, Path(teacher_cache or work / "teacher"))
        if first:
            (work / READY).touch()
            if processes is not None:
                processes.first_tells()
        history = fit(model, store, config, work, run.development, teacher, processes=processes)
        if first and history.losses:
            record = _write(model, work / "model", run, history, store, out.name)
            put_in_place(work / "model", out)
            remove(work)
        elif first:
            remove(work)
    if not history.losses:
        raise InputError(
            f"nothing was learned: none of the {store.pairs:,} pairs has a negative, for all their sentences are "
            "copies or paraphrases of each other; give more data"
        )
    if processes is not None:
        # The first one has written the encoder.
        processes.first_tells()
    elif not first:
        wait_for(out / TRAINING_FILE)
    return Trained(out, record or _read_record(out), fresh=True)


def _folders(*given: str | Path | Sequence[str | Path] | None) -> list[Path]:
    """What is given by names, as paths; a name on the Hub is one that leads nowhere."""
    names = [[each] if isinstance(each, str | Path) else each or [] for each in given]
    return [Path(name).expanduser() for several in names for name in several]


def _read_record(folder: Path) -> TrainingRecord:
    try:
        return read_training(folder)
    except InputError as error:
        raise InputError(
            f"{folder} exists and is no encoder of this program ({error}); choose another --out or move it away"
        ) from None


def fit(
    model: SentenceEncoder,
    store: PairStore,
    config: TrainConfig,
    work: Path,
    held_out: StsSet | None = None,
    teacher: TeacherVectors | None = None,
    *,
    loop_device: torch.device | None = None,
    processes: Processes | None = None,
) -> History:
    """Train a model on stored pairs; loops of our own run averaging models, the trainer everything else.

    Args:
        model: The encoder, from `trainable`; it holds the final weights afterwards.
        store: The pairs.
        config: The settings.
        work: Folder for checkpoints.
        held_out: Development set.
        teacher: The teacher's vectors, if similarities are learned too.
        loop_device: Where the loop for GPUs runs an averaging model, instead of what the settings say; the CPU, too.
        processes: Those that train together in that loop, of which the first one gets the final weights.

    Raises:
        DivergedError: A loss, or a weight at the end, is not a number.
    """
    from paranmt_hf.training.averaging import diverged

    history = _fit(model, store, config, work, held_out, teacher, loop_device, processes)
    if (processes is None or processes.first) and not all(
        bool(weight.isfinite().all()) for weight in model.parameters()
    ):
        # What the last step did shows in no loss.
        raise diverged(f"{history.losses[-1][0]:,}" if history.losses else "1", float("nan"))
    return history


def _fit(
    model: SentenceEncoder,
    store: PairStore,
    config: TrainConfig,
    work: Path,
    held_out: StsSet | None,
    teacher: TeacherVectors | None,
    loop_device: torch.device | None,
    processes: Processes | None,
) -> History:
    import torch

    from paranmt_hf.encoders.composition import take_apart
    from paranmt_hf.encoders.modules.lstm import padded
    from paranmt_hf.training.averaging import AveragingTrainer
    from paranmt_hf.training.distinct_sentences import DistinctSentences
    from paranmt_hf.training.loop import Loop, learning_rates
    from paranmt_hf.training.several_processes import own_device

    composition = take_apart(list(model))
    _check_device(config)
    evaluate = partial(development_score, model, held_out) if held_out is not None else None
    if not composition.only_tables or config.needs_trainer:
        from paranmt_hf.training.trainer import train_with_trainer

        on_cpu = config.device == "cpu" or not torch.cuda.is_available()
        with padded(model.modules() if on_cpu else ()), _frozen(composition, config):
            return train_with_trainer(model, readings(composition), store, work, config, evaluate, teacher)
    if loop_device is None and config.device == "cuda":
        loop_device = torch.device("cuda") if processes is None else own_device()
    # Where a teacher alone is followed, who is paired with whom tells nothing.
    items = DistinctSentences(store) if config.neighbours and not config.margin_weight else store
    if loop_device is not None:
        from paranmt_hf.training.device.building import device_trainer

        trainer = device_trainer(composition, config, items.pairs, teacher, loop_device, processes=processes)
        return Loop(trainer, items, work, evaluate, trainer.prepare, processes).run()
    rates = learning_rates(items.pairs, config)
    tables = [_table(part, rates, config) for part in composition.parts]
    return Loop(AveragingTrainer(tables, composition.mode, config, teacher), items, work, evaluate).run()


def _check_device(config: TrainConfig) -> None:
    """Refuse a GPU that is not there, before the data is read."""
    if config.device != "cuda":
        return
    import torch

    if not torch.cuda.is_available():
        raise InputError("--device cuda: there is no GPU that torch can use; leave it out, or give --device cpu")


@contextmanager
def _frozen(composition: Composition, config: TrainConfig) -> Iterator[None]:
    """Keep word embeddings from being trained inside a `with` block, where the settings say so."""
    tables = [part.table for part in composition.parts if config.freeze_words and part.family.units == "word"]
    for table in tables:
        table.weight.requires_grad_(False)
    try:
        yield
    finally:
        for table in tables:
            table.weight.requires_grad_(True)


def readings(composition: Composition) -> list[Reading]:
    """Say how each part of an encoder gets its features from rows."""
    from paranmt_hf.encoders.modules.lstm import sequence_features
    from paranmt_hf.training.trainer import Reading

    return [
        Reading(
            reader=part.reader,
            # A combination hands features with the index of a part behind their names to that part.
            suffix=f"_{index}" if len(composition.parts) > 1 else "",
            features=bag_features if part.is_bag else sequence_features,
            ordered=part.family.ordered,
            table=part.table,
            weights=part.weights,
            centre=part.family.centre,
        )
        for index, part in enumerate(composition.parts)
    ]


def _table(part: Part, rates: np.ndarray, config: TrainConfig) -> TrainedTable:
    from paranmt_hf.training.averaging import TrainedTable
    from paranmt_hf.training.rowwise import ROWWISE

    weight = part.table.weight.data
    fixed = config.freeze_words and part.family.units == "word"
    initial = weight.clone() if config.lambda_w and not fixed else None
    optimizer = ROWWISE[config.optimizer](weight, rates)
    return TrainedTable(part.reader, optimizer, initial, frozen=not bool(weight[0].any()), fixed=fixed)


def bag_features(rows: np.ndarray, offsets: np.ndarray) -> dict[str, torch.Tensor]:
    """What the averaging modules read: `input_ids` [unit] and `offsets` [sentence]."""
    import torch

    return {"input_ids": torch.from_numpy(rows.astype(np.int64)), "offsets": torch.from_numpy(offsets[:-1])}


def development_score(model: SentenceEncoder, held_out: StsSet) -> float:
    """Pearson on the development set with the weights as they are now."""
    training = model.training
    model.eval()
    similarities = pair_similarities(Quiet(model), held_out.left, held_out.right, held_out.name)
    model.train(training)
    return pearson(similarities.values, held_out.gold)


class Quiet:
    """An encoder without a progress bar."""

    def __init__(self, model: SentenceEncoder) -> None:
        self._model = model

    def encode(self, sentences: list[str]) -> np.ndarray:
        """Encode sentences into vectors [sentence, dimension]."""
        return self._model.encode(sentences, batch_size=128, show_progress_bar=False)


def _write(
    model: SentenceEncoder, folder: Path, run: TrainingRun, history: History, store: PairStore, name: str
) -> TrainingRecord:
    """Write the encoder with its record, its card and, where matplotlib is there, its picture."""
    from paranmt_hf.encoders.saving import save
    from paranmt_hf.training.prepare import GO_ON, SAVING

    shutil.rmtree(folder, ignore_errors=True)
    start = run.start.source if run.start is not None else None
    compiled = ("numba",) if {*history.arithmetic.values()} - {"torch"} else ()
    record = TrainingRecord(
        settings=run.identity,
        inputs=run.inputs,
        pairs=store.pairs,
        history=history,
        development=development_score(model, run.development) if run.development is not None else None,
        dimension=model.get_embedding_dimension() or 0,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        versions={name: version(name) for name in ("torch", "numpy", "sentence-transformers", *compiled)},
        machine=platform.machine(),
        paranmt_hf=__version__,
        basis=basis_of(training_values(start)) if start is not None else None,
    )
    with folder_aside(folder, doing=SAVING, advice=GO_ON) as aside:
        save(model, aside)
        (aside / TRAINING_FILE).write_text(json.dumps(record.to_json(), indent=1), encoding="utf8")
        if history.losses:
            plot_history(history, aside / TRAINING_PICTURE, run.encoder.model)
        write_model_card(aside, name, record)
    return record
