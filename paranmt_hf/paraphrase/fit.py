"""Train the models of a paraphraser, from initial weights to the final folder."""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from paranmt_hf.corpus.parsing.trees import template_of
from paranmt_hf.corpus.translation.translator import resolve_device
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.paraphrase.card import card_values, paraphraser_card
from paranmt_hf.paraphrase.control import installed_parser, measure_control
from paranmt_hf.paraphrase.models import EncoderDecoder, ParaphraserModels, new_models, read_models
from paranmt_hf.paraphrase.record import (
    ParaphraserRecord,
    ParaphraserSettings,
    ParseGenerator,
    TrainingCourse,
)
from paranmt_hf.paraphrase.trainer import Batches, measure, train_pieces
from paranmt_hf.paraphrase.training_data import (
    MAX_TREE,
    Cut,
    PieceStore,
    PieceSummary,
    TrainingPairs,
    read_summary,
    write_pieces,
)
from paranmt_hf.training.checkpoint import read_checkpoint, set_weights, weights_of, write_checkpoint
from paranmt_hf.util.files import new_folder
from paranmt_hf.util.records import from_json, made_with
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelToTrain:
    """A model to train, and what it is trained on."""

    name: str  # What the model generates, `parses` or `paraphrases`
    network: EncoderDecoder
    # Columns in `TrainingPairs.tables`: source, target, perhaps control, and the key. Pairs with equal keys are held
    # out together.
    columns: tuple[str, ...]
    longest: int  # Maximum number of pieces of a source or target
    template_of: Callable[[str], str] | None = None  # Returns the template of a target, if targets are trees


def make_paraphraser(
    settings: ParaphraserSettings,
    inputs: dict[str, str],
    text: TrainingPairs,
    base: Model | None,
    work: Path,
    folder: Path,
    name: str,
) -> ParaphraserRecord:
    """Train the models of a paraphraser one after the other, and write them with their tokenizers and the card.

    Args:
        settings: The input and the settings that determine the result, for the record.
        inputs: Names of the inputs for the record, by `data`, `base` and `parser`. The parser of that name also
            measures control.
        text: The pairs.
        base: Files of the model to train further; None for a new model.
        work: Work folder, in which an interrupted training continues.
        folder: Folder of the result.
        name: Name of the paraphraser, for the card.

    Returns:
        The record, which is not written yet.
    """
    templates = count_templates(text) if text.controlled else {}
    # Kept now, because each further reading of the pairs counts again.
    dropped = dict(text.dropped)
    initial = work / "initial"
    if base is None and not initial.exists():
        with new_folder(initial) as aside:
            new_models(text, templates).save(aside)
    models = read_models(base or locate(initial))
    tasks = _tasks(models, text.training.max_pieces)
    main, first = tasks[-1], tasks[0]
    if main.network.positions is not None and main.network.positions < main.longest:
        raise InputError(
            f"max_pieces {main.longest} is more than the {main.network.positions} positions of {inputs['base']}",
            option="max_pieces",
        )
    summaries = {task.name: _cut(text, task, work / f"pieces-of-{task.name}") for task in tasks}
    courses = {task.name: _train(text, task, work) for task in tasks}
    models.save(folder)
    parses = None
    if text.controlled:
        parses = ParseGenerator(
            without_tree=dropped["without_tree"],
            long_trees=dropped["long_trees"],
            same_template=dropped.get("same_template", 0),
            templates=len(templates),
            tree_tokens=len(first.network.tokenizer),
            course=courses[first.name],
            control=measure_control(folder, text, installed_parser(inputs.get("parser"))),
        )
    summary = summaries[main.name]
    record = ParaphraserRecord(
        settings=settings,
        inputs=inputs,
        pairs=summary.pairs["train"],
        held_out=summary.pairs["held-out"],
        too_long=summary.too_long,
        left_out=summary.left_out,
        course=courses[main.name],
        model_type=main.network.model.config.model_type,
        parameters=models.parameters,
        pieces=len(main.network.tokenizer),
        device=resolve_device(text.training.device),
        parses=parses,
        **made_with("torch", "transformers", "tokenizers", "sacrebleu"),
    )
    card = paraphraser_card(card_values(name, record, models.templates))
    (folder / "README.md").write_text(card, encoding="utf8", newline="\n")
    return record


def count_templates(text: TrainingPairs) -> dict[str, int]:
    """Count the templates of the targets of pairs, and return up to 100,000 of them, the most frequent first."""
    counts = Counter[str]()
    for table in text.tables("read"):
        for entry in table["template"].value_counts().to_pylist():
            counts[entry["values"]] += entry["counts"]
    if not counts:
        raise InputError(
            f"nothing to train on: {text.pairs.left_out}; of the others {text.dropped['without_tree']:,} have a "
            f"sentence without a tree, {text.dropped['long_trees']:,} a tree of more than {MAX_TREE} tokens, and "
            f"{text.dropped['same_template']:,} two trees of one template (see `same_template`); check the data and "
            "the options that select them"
        )
    order = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    # Rare templates are left out: the trees of long sentences may have any shape, so large corpora have ever more.
    return dict(order[:100_000])


def _tasks(models: ParaphraserModels, longest: int) -> list[ModelToTrain]:
    """Return the models to train, in order; the last one generates sentences of at most `longest` pieces."""
    if models.parses is None:
        return [ModelToTrain("paraphrases", models.paraphrases, ("source", "target", "reference"), longest)]
    trees = ("source_parse", "target_parse", "template", "reference")
    sentences = ("source", "target", "target_parse", "reference")
    return [
        ModelToTrain("parses", models.parses, trees, MAX_TREE, template_of),
        ModelToTrain("paraphrases", models.paraphrases, sentences, longest),
    ]


def _cut(text: TrainingPairs, task: ModelToTrain, folder: Path) -> PieceSummary:
    """Encode all pairs of a task to ids of pieces in a folder, unless an earlier run did, and return their counts."""
    if (found := read_summary(folder)) is not None:
        return found
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    cuts: dict[str, Cut] = {"source": task.network.cut, "target": task.network.cut_targets}
    if task.network.controls is not None:
        cuts["control"] = task.network.cut_controls

    summary = write_pieces(
        (table.select(task.columns).columns for table in text.tables(f"cut {task.name}")),
        folder,
        cuts,
        longest=task.longest,
        held_out=text.training.held_out,
        left_out=lambda: text.pairs.left_out_by,
    )
    if summary.left_out:
        logger.info(text.pairs.left_out)
    logger.info(
        f"{counted(summary.pairs['train'], 'pair')}, {summary.pairs['held-out']:,} held out, {summary.too_long:,} too "
        "long"
    )
    return summary


def _train(text: TrainingPairs, task: ModelToTrain, work: Path) -> TrainingCourse:
    """Train a model to the end, or read the weights if an earlier run has trained it, and return the course."""
    training, network = text.training, task.network
    path = work / f"trained-{task.name}.safetensors"
    done = read_checkpoint(path)
    if done is not None:
        set_weights(network.model, done[0])
        network.model.eval()
        return from_json(TrainingCourse, done[1], path)
    folder, pieces = work / task.name, work / f"pieces-of-{task.name}"
    folder.mkdir(exist_ok=True)
    held_out = PieceStore(pieces, "held-out")
    batches = Batches(
        PieceStore(pieces, "train"), training.batch_tokens, epochs=training.epochs, seed=training.seed, pad=network.pad
    )
    measured = partial(
        measure, network, held_out, budget=training.batch_tokens, longest=task.longest, template_of=task.template_of
    )
    course = train_pieces(
        network, batches, folder, training, measured if len(held_out) else None, label=f"train {task.name}"
    )
    write_checkpoint(path, weights_of(network.model), asdict(course))
    return course
