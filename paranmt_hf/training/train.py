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
from dataclasses import dataclass, fields
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from paranmt_hf.training.recipes import check_needs, first_step, read_recipe, train_steps
from paranmt_hf.training.record import TRAINING_FILE, TrainingRecord, read_training
from paranmt_hf.training.unused_options import refuse_unused
from paranmt_hf.util.files import shown_path
from paranmt_hf.util.run import is_free, put_in_place, result_folder, work_folder
from paranmt_hf.util.settings import Advanced, Expands, RunOnly
from paranmt_hf.util.work import finished, folder_aside, keep_identity, locked, refuse_inside, remove, remove_leftover
from paranmt_hf.version import __version__

if TYPE_CHECKING:
    import torch

    from paranmt_hf.encoders.composition import Composition
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
    from paranmt_hf.training.distributed import Processes
    from paranmt_hf.training.teacher import TeacherVectors
    from paranmt_hf.training.trainer import Reading

# Says that everything is prepared, to the other processes of the trainer.
READY = "ready"


@dataclass
class Trained:
    """A trained encoder.

    Attributes:
        folder: Its folder.
        record: Settings, history and result, as in `training.json`.
        fresh: Whether this call trained it; otherwise it was there already.
    """

    folder: Path
    record: TrainingRecord
    fresh: bool

    def load(self) -> SentenceEncoder:
        """Load the encoder."""
        return load(self.folder)

    def summary(self) -> str:
        """Size, training time and scores in a few lines."""
        record, history = self.record, self.record.history
        state = "" if self.fresh else " (was trained already)"
        lines = [f"{shown_path(self.folder)}: {record.dimension} dimensions, {record.parameters:,} parameters{state}"]
        # The pairs of a text are two sentences each.
        of_text = "text" in record.settings["data"]
        seen = f"{2 * history.pairs:,} sentences" if of_text else f"{history.pairs:,} pairs"
        lines.append(f"  {seen} in {history.seconds:,.0f} s, last loss {history.losses[-1][1]:.3f}")
        if record.development is not None:
            score = f"{100 * record.development:.1f}"
            lines.append(f"  Pearson {score} on the development set, {record.settings['development']}")
            if len(history.scores) > 1:
                kept = f"step {history.best_step:,} of {history.scores[-1][0]:,}"
                lines.append(f"  the best of {len(history.scores)} scores; the weights are those of {kept}")
        return "\n".join([*lines, f"load it: paranmt_hf.load({shown_path(self.folder)!r})"])


def train(
    data: str | Path | Sequence[str | Path] | None,
    out: str | Path,
    *,
    text: str | Path | Sequence[str | Path] | None = None,
    recipe: Annotated[str | None, Expands(first_step)] = None,
    encoder: EncoderConfig | None = None,
    config: TrainConfig | None = None,
    selection: PairSelection | None = None,
    development: str | Path | None = None,
    exclude: str | Path | None = None,
    teacher_cache: Annotated[str | Path | None, Advanced, RunOnly] = None,
) -> Trained:
    """Train a sentence encoder on paraphrase pairs, as ParaNMT-50M (Wieting & Gimpel 2018, sections 4 and 5) does.

    After an interruption the same command continues from the last checkpoint; on the CPU the result has the same bytes
    as without the interruption. Under `torchrun` or `accelerate launch` all processes run the same command; rank 0
    reads the data and writes.

    Args:
        data: Releases, Parquet files with the columns reference and translation, files of PPDB (plain or .gz), lists
            of words and their paraphrases, or datasets on the Hub.
        out: Folder of the encoder; work in progress is next to it in `<out>.work`.
        text: Sentences without paraphrases, for a `teacher` alone: text files with one on a line, Parquet, releases.
        recipe: The settings of an encoder of model_cards/, trained in one or two steps: lstm, trigram, word,
            word-trigram, word-trigram-free or word-trigram-small; other options change the first step.
        encoder: Which encoder.
        config: How it is trained.
        selection: Which pairs are used.
        development: Keep the weights that are best on these scored pairs: `sample` (40 pairs of the package), a TSV or
            Parquet file with sentence1, sentence2 and score, or a folder with STSBenchmark (its STS 2017 pairs).
        exclude: Folder with STS sets: leave out pairs with their sentences, and text that shares eight words in a row
            with one.
        teacher_cache: Folder that keeps the teacher's vectors for other runs; the work folder if not given.
    """
    if recipe is not None:
        options = {"development": development, "exclude": exclude, "teacher_cache": teacher_cache, "text": text}
        return _train_recipe(recipe, data, result_folder(out), encoder, config, selection, options)
    encoder, config, selection = encoder or EncoderConfig(), config or TrainConfig(), selection or PairSelection()
    out = result_folder(out)
    count, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    if config.patience is not None and development is None:
        raise InputError("`patience` counts evaluations on a development set; name one with `development`")
    if not is_free(out):
        _read_record(out)

    def check_unused(encoder: EncoderConfig) -> None:
        given = {"development": development is not None, "teacher_cache": teacher_cache is not None}
        refuse_unused(encoder, config, **given, processes=count)

    if not encoder.init_from:
        check_unused(encoder)
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
    from paranmt_hf.training.distributed import join
    from paranmt_hf.training.prepare import prepare
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


def _train_recipe(
    name: str,
    data: str | Path | Sequence[str | Path] | None,
    out: Path,
    encoder: EncoderConfig | None,
    config: TrainConfig | None,
    selection: PairSelection | None,
    options: dict[str, Any],
) -> Trained:
    """Train an encoder as a recipe says; settings that are given replace those of its first step."""
    recipe = read_recipe(name)
    first = {name.replace("-", "_"): value for name, value in recipe.first.items()}
    kinds: tuple[type[Any], ...] = (EncoderConfig, TrainConfig, PairSelection)
    own = [{each.name: first[each.name] for each in fields(kind) if each.name in first} for kind in kinds]
    encoder, config = encoder or EncoderConfig(**own[0]), config or TrainConfig(**own[1])
    given = {"data": data, "text": options["text"], "vectors": encoder.vectors, "teacher": config.teacher}
    check_needs(recipe, given)
    settings = {"encoder": encoder, "config": config, "selection": selection or PairSelection(**own[2])}
    if not recipe.then:
        return train(data, out, **settings, **options)  # type: ignore[arg-type]
    fresh = is_free(out)
    train_steps(recipe, partial(train, data), out, **settings, **options)  # type: ignore[arg-type]
    return Trained(out, read_training(out), fresh)


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
    from paranmt_hf.training.losses import diverged

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
    from paranmt_hf.encoders.sequences import padded
    from paranmt_hf.training.cpu_engine import cpu_engine
    from paranmt_hf.training.epochs import Epochs
    from paranmt_hf.training.pair_views import DistinctSentences
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
        from paranmt_hf.training.device.engine import device_engine

        engine = device_engine(composition, config, items.pairs, teacher, loop_device, processes=processes)
        return Epochs(engine, items, work, evaluate, engine.prepare, processes).run()
    return Epochs(cpu_engine(composition, config, items.pairs, teacher), items, work, evaluate).run()


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
    from paranmt_hf.encoders.sequences import sequence_features
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
    record = TrainingRecord(
        settings=run.identity,
        inputs=run.inputs,
        pairs=store.pairs,
        history=history,
        development=development_score(model, run.development) if run.development is not None else None,
        dimension=model.get_embedding_dimension() or 0,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        versions={name: version(name) for name in ("torch", "numpy", "numba", "sentence-transformers")},
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
