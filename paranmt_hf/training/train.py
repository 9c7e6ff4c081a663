"""Train an encoder: pairs in, a folder out that `SentenceTransformer` loads.

Imports of torch are inside functions, so that mistakes in options and data are reported first.
"""

from __future__ import annotations

import json
import logging
import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from paranmt_hf.corpus.reading.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.named_encoder import WithoutProgressBar
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import pearson
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.evaluation.sts_data import StsSet
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.training.card import trained_values, write_card
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.inputs import PairsAndText, TrainingRun, holds_checkpoint, holds_training, resolve_inputs
from paranmt_hf.training.pair_store import PairStore
from paranmt_hf.training.record import (
    TRAINING_FILE,
    TRAINING_PICTURE,
    History,
    Rotation,
    Trained,
    TrainingRecord,
    basis_of,
    plot_history,
    training_values,
)
from paranmt_hf.util.files import Names, listed
from paranmt_hf.util.markers import Expands, Group
from paranmt_hf.util.records import as_json, from_json, made_with
from paranmt_hf.util.run import is_free, result_folder, run
from paranmt_hf.util.settings import values_for
from paranmt_hf.util.wording import counted, perhaps
from paranmt_hf.util.work import clear, continue_with
from paranmt_hf.util.yaml_files import read_yaml

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
    from paranmt_hf.training.distributed import Processes
    from paranmt_hf.training.teacher import TeacherVectors


RECIPES = ASSETS / "recipes"
TEACHER = "teacher"  # In the work folder: the vectors of teachers
SHARED = ("seed", "device", "report_to")  # Settings of the first step that hold for the second too
# With fewer steps in an epoch, WORD trained on 475 and on 3,000 pairs agreed less with people: 1 to 3 points at 3 to 5
# steps, 3 to 7 at one; from 10 steps on, by at most 1.5 points less than with 100.
FEW_STEPS = 10
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recipe:
    """How an encoder of `model_cards/` is made, and what the user has to bring, by names of parameters.

    The first step learns a teacher's similarities; the second, empty for a recipe of one step, continues with the
    margin loss, and the result is the mean of both.
    """

    needs: Sequence[str]
    first: Mapping[str, Any]
    then: Mapping[str, Any] = field(default_factory=dict)


def recipe_names() -> list[str]:
    """Names of the recipes."""
    return sorted(path.stem for path in RECIPES.glob("*.yaml"))


def read_recipe(name: str) -> Recipe:
    """Read a recipe."""
    if name not in recipe_names():
        known = recipe_names()
        raise InputError(
            f"recipe must be one of {', '.join(known)}, was {name!r}{perhaps(name, known)}", option="recipe"
        )
    return Recipe(**read_yaml(RECIPES / f"{name}.yaml", "a recipe"))


def first_step(name: str) -> Mapping[str, Any]:
    """Settings of the first step of a recipe."""
    return read_recipe(name).first


def train(
    data: Names | None,
    out: str | Path,
    *,
    text: Names | None = None,
    columns: Mapping[str, str] | None = None,
    recipe: Annotated[str | None, Expands(first_step)] = None,
    encoder: EncoderConfig | None = None,
    config: TrainConfig | None = None,
    selection: Annotated[PairSelection | None, Group()] = None,
    development: str | Path | None = None,
    exclude: str | Path | None = None,
) -> Trained:
    """Train a sentence encoder on paraphrase pairs, as ParaNMT-50M (Wieting & Gimpel 2018, sections 4 and 5) does.

    After an interruption the same command continues from the last checkpoint; on the CPU the result has the same bytes
    as without the interruption. Under `torchrun` or `accelerate launch` all processes run the same command; rank 0
    reads the data and writes.

    Args:
        data: Corpora, Parquet files with the columns reference and translation, files of PPDB (plain or .gz), lists
            of words and their paraphrases, or datasets on the Hub. Pairs with a column label are paraphrases where it
            is 1; the others are left out.
        out: Folder of the encoder; work in progress is next to it in `<out>.work`.
        text: Sentences without paraphrases, for a `teacher` alone: text files with one on a line, Parquet, corpora.
            Of Parquet with the columns sentence and translation the teacher reads the translation.
        columns: Columns of `data` with other names: reference=sentence1,translation=sentence2,label=is_duplicate.
        recipe: The settings of an encoder of model_cards/, trained in one or two steps: lstm, trigram,
            base, small or word-trigram; other options change the first step.
        encoder: Which encoder.
        config: How it is trained.
        selection: Which pairs are used.
        development: Keep the weights that are best on these scored pairs: `sample` (40 pairs of the package), a TSV or
            Parquet file with sentence1, sentence2 and score, or a folder with STSBenchmark (its STS 2017 pairs).
        exclude: Folder with STS sets: leave out pairs with their sentences, and text that shares eight words in a row
            with one.
    """
    if recipe is not None:
        others = {"columns": columns, "development": development, "exclude": exclude, "text": text}
        return _train_recipe(recipe, data, result_folder(out), encoder, config, selection, others)
    encoder, config, selection = encoder or EncoderConfig(), config or TrainConfig(), selection or PairSelection()
    started = [encoder.init_from, config.teacher, config.second_teacher]
    sources = [Path(name).expanduser() for name in [*filter(None, started), *listed(data), *listed(text)]]
    out = result_folder(out, TrainingRecord, sources=sources)
    _check_device(config)
    if config.report_to:
        from paranmt_hf.training.reporting import reporting_callbacks

        reporting_callbacks(config.report_to, out)
    count, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    inputs = resolve_inputs(
        data,
        encoder,
        config,
        selection,
        columns=columns,
        development=development,
        exclude=exclude,
        text=text,
        processes=count,
    )
    if count > 1 and inputs.in_engine:
        from paranmt_hf.training.distributed import check_processes

        check_processes(config, count)
    return run(
        out,
        inputs.settings,
        TrainingRecord,
        lambda work, folder: _train(inputs, work, folder, out.name),
        result=Trained,
        command="train",
        holds=holds_training,
        # The vectors of teachers serve any settings.
        work_identity={"teachers": [each.revision for each in inputs.teachers]} if inputs.teachers else None,
        rank=rank if count > 1 else 0,
        barrier=partial(_barrier, inputs),
    )


def _train_recipe(
    name: str,
    data: Names | None,
    out: Path,
    encoder: EncoderConfig | None,
    config: TrainConfig | None,
    selection: PairSelection | None,
    others: Mapping[str, Any],
) -> Trained:
    """Train an encoder from a recipe; arguments as in `train`.

    Settings that are given replace those of the first step. The encoders of two steps stay in `<out>.steps`, and the
    result is their mean.
    """
    recipe = read_recipe(name)
    own = values_for([EncoderConfig, TrainConfig, PairSelection], recipe.first, "recipe")
    encoder, config = encoder or EncoderConfig(**own[0]), config or TrainConfig(**own[1])
    selection = selection or PairSelection(**own[2])
    given = {"data": data, "text": others["text"], "vectors": encoder.vectors, "teacher": config.teacher}
    if missing := [f"`{need}`" for need in recipe.needs if not given.get(need)]:
        needs = " and ".join(filter(None, [", ".join(missing[:-1]), missing[-1]]))
        hint = "; `paranmt encoder vectors` makes vectors" if "`vectors`" in missing else ""
        raise InputError(f"recipe {name} needs {needs}{hint}", option=missing[0].strip("`"))
    if not recipe.then:
        return train(data, out, encoder=encoder, config=config, selection=selection, **others)
    first, second = (out.with_name(f"{out.name}.steps") / step for step in ("1-teacher", "2-margin"))
    # Checked before hours of work, as far as possible.
    result_folder(out, TrainingRecord)
    fresh = is_free(out)
    if not fresh and [part.name for part in TrainingRecord.read(out).mean_of or []] != [first.name, second.name]:
        raise InputError(f"{out} is not an encoder of this recipe; choose another path", option="out", path=out)
    train(data, first, encoder=encoder, config=config, selection=selection, **others)
    then = values_for([TrainConfig, PairSelection], recipe.then, "recipe")
    margin = TrainConfig(**{option: getattr(config, option) for option in SHARED}, **then[0])
    further = selection if selection.max_pairs or selection.first_pairs else replace(selection, **then[1])
    start = EncoderConfig(init_from=str(first))
    # Text is for a teacher alone.
    train(data, second, encoder=start, config=margin, selection=further, **{**others, "text": None})
    from paranmt_hf.training.derived import average_encoders
    from paranmt_hf.training.distributed import barrier

    if os.environ.get("RANK", "0") == "0":
        # Finds a mean that is there, and refuses that of others.
        average_encoders([first, second], out)
    barrier(config.device)
    return Trained(out, TrainingRecord.read(out), fresh)


def _barrier(inputs: TrainingRun) -> None:
    """Wait until rank 0 has renamed the encoder."""
    from paranmt_hf.training.distributed import barrier

    barrier(inputs.config.device)


def _train(inputs: TrainingRun, work: Path, folder: Path, name: str) -> TrainingRecord:
    """Prepare and train; rank 0 writes the encoder with its card and its figure."""
    from paranmt_hf.encoders.saving import save
    from paranmt_hf.training.distributed import join_started
    from paranmt_hf.training.prepare import prepare_training

    processes = join_started(inputs.config.device)
    first = processes is None or processes.first
    if processes is not None:
        identity = json.dumps(as_json(inputs.settings), sort_keys=True)
        processes.check_same("settings and data", zlib.crc32(identity.encode()))
        if not first:
            processes.broadcast()
    if first and inputs.teachers:
        continue_with(work, inputs.settings, keep={TEACHER}, holds=holds_checkpoint)
    model, store, teacher = prepare_training(inputs, work, work / TEACHER)
    if processes is not None and first:
        processes.broadcast()
    if first:
        _warn_of_few_steps(store.pairs, inputs.config)
    together = processes if inputs.in_engine else None
    # A continued run measures it again: the weights of its checkpoint are read later.
    start = development_score(model, inputs.development) if inputs.development and first else None
    history = fit_encoder(model, store, inputs.config, work, inputs.development, teacher, together)
    history.start = start
    if not history.losses:
        if first:
            clear(work)
        raise InputError(
            f"nothing was learned: none of the {store.pairs:,} pairs has a negative, for all sentences of its "
            "mega-batch are copies or paraphrases of each other; give more data or larger mega-batches"
        )
    source = inputs.start.source if inputs.start is not None else None
    basis = basis_of(training_values(source.folder)) if source is not None else None
    record = TrainingRecord(
        settings=inputs.settings,
        inputs=inputs.inputs,
        pairs=store.pairs,
        sentences=store.sentences if isinstance(inputs.pairs, PairsAndText) else None,
        left_out=store.left_out,
        history=history,
        development=development_score(model, inputs.development) if inputs.development and first else None,
        dimension=model.get_embedding_dimension() or 0,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        basis=None if basis is None else from_json(Rotation, basis, TRAINING_FILE),
        **made_with("torch", "numpy", "numba", "sentence-transformers"),
    )
    if first:
        save(model, folder)
        plot_history(history, folder / TRAINING_PICTURE, inputs.encoder.model)
        write_card(folder, trained_values(name, folder, record))
    return record


def _warn_of_few_steps(pairs: int, config: TrainConfig) -> None:
    """Warn if mini-batches are so large that an epoch has only some steps, where smaller ones would help."""
    from paranmt_hf.training.optimizers import steps_of

    steps, smaller = steps_of(pairs, config), pairs // FEW_STEPS
    if smaller and steps < FEW_STEPS:
        logger.warning(
            f"warning: an epoch of {pairs:,} pairs has only {counted(steps, 'step')} of `batch_size` "
            f"{config.batch_size:,}; with more steps an encoder learns more, such as with `batch_size` {smaller:,}"
        )


def fit_encoder(
    model: SentenceEncoder,
    store: PairStore,
    config: TrainConfig,
    work: Path,
    held_out: StsSet | None = None,
    teacher: TeacherVectors | None = None,
    processes: Processes | None = None,
) -> History:
    """Train a model on stored pairs: averaging models with an engine, all others with the trainer.

    The model, from `trainable`, holds the final weights afterwards. `work` gets checkpoints; `held_out` is the
    development set. Of several processes that train together in the engine for GPUs, rank 0 gets the final weights.
    """
    import torch

    from paranmt_hf.encoders.composition import take_apart
    from paranmt_hf.training.cpu_engine import cpu_engine
    from paranmt_hf.training.distributed import own_device
    from paranmt_hf.training.epochs import Epochs
    from paranmt_hf.training.losses import diverged
    from paranmt_hf.training.pair_views import DistinctSentences

    _check_device(config)
    composition = take_apart(model)
    evaluate = partial(development_score, model, held_out) if held_out is not None else None
    # A teacher alone does not need to know which sentences are pairs.
    items = DistinctSentences(store) if config.neighbours and not config.margin_weight else store
    if not composition.only_tables or config.word_factors:
        from paranmt_hf.training.trainer_run import train_with_trainer
        from paranmt_hf.training.word_factors import scaled_words

        with scaled_words(model[0]) if config.word_factors else nullcontext():
            history = train_with_trainer(model, composition.parts, store, work, config, evaluate, teacher)
    elif config.device == "cuda":
        from paranmt_hf.training.device.engine import device_engine

        device = own_device() if processes is not None else torch.device("cuda")
        engine = device_engine(composition, config, items.pairs, teacher, device, processes=processes)
        history = Epochs(engine, items, work, evaluate, engine.prepare, processes).run()
    else:
        history = Epochs(cpu_engine(composition, config, items.pairs, teacher), items, work, evaluate).run()
    first = processes is None or processes.first
    if first and not all(bool(weight.isfinite().all()) for weight in model.parameters()):
        # The last step is in no loss.
        raise diverged(f"{history.losses[-1][0]:,}" if history.losses else "1", float("nan"))
    return history


def _check_device(config: TrainConfig) -> None:
    """Reject a missing GPU before the data are read."""
    if config.device != "cuda":
        return
    import torch

    if not torch.cuda.is_available():
        raise InputError("`device` cuda: there is no GPU that torch can use; leave it out, or choose cpu")


def development_score(model: SentenceEncoder, held_out: StsSet) -> float:
    """Pearson on the development set with the current weights."""
    training = model.training
    model.eval()
    similarities = pair_similarities(WithoutProgressBar(model), held_out.left, held_out.right, held_out.name)
    model.train(training)
    return pearson(similarities.values, held_out.gold)
