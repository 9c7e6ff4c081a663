"""Train an encoder on pairs: `paranmt train` writes a folder that `SentenceTransformer` loads.

Torch is imported inside functions, so that mistakes in options and data are reported before that.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from paranmt_hf.corpus.reading.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.training.card import trained_values, write_model_card
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.inputs import TrainingInputs, find_inputs, holds_checkpoint, holds_training
from paranmt_hf.training.pair_store import PairStore
from paranmt_hf.training.processes import check_same, wait_for_all
from paranmt_hf.training.recipe import first_step, read_recipe
from paranmt_hf.training.record import TRAINING_PICTURE, History, Trained, TrainingRecord, plot_history
from paranmt_hf.training.text import PairsAndText
from paranmt_hf.util.files import Names, listed
from paranmt_hf.util.markers import Expands, Group
from paranmt_hf.util.processes import is_rank_0
from paranmt_hf.util.records import as_json, made_with
from paranmt_hf.util.run import is_free, result_folder, run
from paranmt_hf.util.settings import values_for
from paranmt_hf.util.wording import counted, in_a_row
from paranmt_hf.util.work import clear, continue_with

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

TEACHER = "teacher"  # Name of the folder of the teachers' vectors in the work folder
logger = logging.getLogger(__name__)


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
    options: dict[str, Any] = {"columns": columns, "development": development, "exclude": exclude, "text": text}
    if recipe is not None:
        return _train_recipe(recipe, data, result_folder(out), encoder, config, selection, options)
    encoder, config = encoder or EncoderConfig(), config or TrainConfig()
    models = [name for name in (encoder.init_from, *(config.teacher or ())) if name]
    sources = [Path(name).expanduser() for name in [*models, *listed(data), *listed(text)]]
    out = result_folder(out, TrainingRecord, sources=sources)
    if config.report_to:
        from paranmt_hf.training.reporting import reporting_callbacks

        reporting_callbacks(config.report_to, out)
    inputs = find_inputs(data, encoder, config, selection or PairSelection(), **options)
    # The vectors of teachers are useful under other settings too.
    shared_work = {"teachers": [teacher.identity for teacher in inputs.teachers]} if inputs.teachers else None
    return run(
        out,
        inputs.settings,
        TrainingRecord,
        lambda work, folder: _make(inputs, work, folder, out.name),
        result=Trained,
        command="train",
        holds=holds_training,
        work_identity=shared_work,
        rank=0 if is_rank_0() else 1,
        barrier=partial(wait_for_all, config.device),
    )


def _train_recipe(
    name: str,
    data: Names | None,
    out: Path,
    encoder: EncoderConfig | None,
    config: TrainConfig | None,
    selection: PairSelection | None,
    options: Mapping[str, Any],
) -> Trained:
    """Train an encoder by a recipe; arguments as in `train`, `name` is the recipe.

    Given settings replace those of the first step. If there are two steps, their encoders stay in `<out>.steps`, and
    the result is the mean of both.
    """
    recipe = read_recipe(name)
    values = values_for([EncoderConfig, TrainConfig, PairSelection], recipe.first, "recipe")
    encoder, config = encoder or EncoderConfig(**values[0]), config or TrainConfig(**values[1])
    selection = selection or PairSelection(**values[2])
    given = {"data": data, "text": options["text"], "vectors": encoder.vectors, "teacher": config.teacher}
    if missing := [need for need in recipe.needs if not given.get(need)]:
        hint = "; `paranmt encoder vectors` makes vectors" if "vectors" in missing else ""
        needs = in_a_row(f"`{need}`" for need in missing)
        raise InputError(f"recipe {name} needs {needs}{hint}", option=missing[0])
    if not recipe.then:
        return train(data, out, encoder=encoder, config=config, selection=selection, **options)
    steps = out.with_name(f"{out.name}.steps")
    first, second = steps / "1-teacher", steps / "2-margin"
    # Check as early as possible, before hours of work, whether the result can be written.
    result_folder(out, TrainingRecord)
    fresh = is_free(out)
    if not fresh and [part.name for part in TrainingRecord.read(out).mean_of or []] != [first.name, second.name]:
        raise InputError(f"{out} is not an encoder of this recipe; choose another path", option="out", path=out)
    train(data, first, encoder=encoder, config=config, selection=selection, **options)
    encoder, margin, selection = recipe.margin_step(first, config, selection)
    # The second step has a margin loss, which cannot use text.
    train(data, second, encoder=encoder, config=margin, selection=selection, **{**options, "text": None})
    from paranmt_hf.training.average import average_encoders

    if is_rank_0():
        # If the mean is there already, this finds it; a mean of other encoders is refused.
        average_encoders([first, second], out)
    wait_for_all(config.device)
    return Trained(out, TrainingRecord.read(out), fresh)


def _make(inputs: TrainingInputs, work: Path, folder: Path, name: str) -> TrainingRecord:
    """Prepare a training and train; rank 0 writes the encoder with its card and its picture.

    Args:
        inputs: The inputs of the run.
        work: The work folder.
        folder: Folder of the encoder.
        name: Name of the encoder, for its card.
    """
    from paranmt_hf.encoders.saving import save
    from paranmt_hf.training.fit import development_score, fit_encoder
    from paranmt_hf.training.prepare import prepare_training

    device, development = inputs.config.device, inputs.development
    check_same(json.dumps(as_json(inputs.settings), sort_keys=True), device)
    if not is_rank_0():
        # The others wait here until rank 0 has prepared everything and calls `wait_for_all` below. Then they read what
        # it prepared.
        wait_for_all(device)
    elif inputs.teachers:
        continue_with(work, inputs.settings, keep={TEACHER}, holds=holds_checkpoint)
    model, store, teacher = prepare_training(inputs, work, work / TEACHER)
    if is_rank_0():
        wait_for_all(device)
        _warn_of_few_steps(store.pairs, inputs.config)
    # A continued run measures the start again. The model still has its initial weights: `fit_encoder` reads the
    # checkpoint.
    start = None if development is None else development_score(model, development)
    history = fit_encoder(model, store, inputs.config, work, development, teacher)
    history.start = start
    if not history.losses:
        if is_rank_0():
            clear(work)
        raise InputError(
            f"nothing was learned: none of the {store.pairs:,} pairs has a negative, for all sentences of its "
            "mega-batch are copies or paraphrases of each other; give more data or larger mega-batches"
        )
    score = None if development is None else development_score(model, development)
    record = _record(inputs, model, store, history, score)
    if is_rank_0():
        save(model, folder)
        plot_history(history, folder / TRAINING_PICTURE, inputs.encoder.model)
        write_model_card(folder, name, trained_values(record, folder))
    return record


def _record(
    inputs: TrainingInputs, model: SentenceEncoder, store: PairStore, history: History, score: float | None
) -> TrainingRecord:
    """Make the record of a trained encoder.

    Args:
        inputs: The inputs of the run.
        model: The encoder.
        store: The pairs.
        history: The course of the run.
        score: Score on the development set; None without one.
    """
    return TrainingRecord(
        settings=inputs.settings,
        inputs=inputs.names,
        pairs=store.pairs,
        sentences=store.sentences if isinstance(inputs.pairs, PairsAndText) else None,
        left_out=store.left_out,
        history=history,
        development=score,
        dimension=model.get_embedding_dimension() or 0,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        **made_with("torch", "numpy", "numba", "sentence-transformers"),
    )


def _warn_of_few_steps(pairs: int, config: TrainConfig) -> None:
    """Warn if mini-batches are so large that an epoch has less than ten steps, and smaller ones would help."""
    from paranmt_hf.training.optimizers import steps_of

    # Measured with WORD on 475 and on 3,000 pairs, as the correlation with people's scores compared to 100 steps in an
    # epoch: 3 to 7 points less with one step, 1 to 3 points less with 3 to 5 steps, and at most 1.5 points less from
    # 10 steps on.
    steps, smaller = steps_of(pairs, config), pairs // 10
    if smaller and steps < 10:
        logger.warning(
            f"warning: an epoch of {pairs:,} pairs has only {counted(steps, 'step')} of `batch_size` "
            f"{config.batch_size:,}; with more steps an encoder learns more, such as with `batch_size` {smaller:,}"
        )
