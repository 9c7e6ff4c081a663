"""Train a model for a supervised task, from the items of the task to the record of the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from paranmt_hf.encoders.building import trainable
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.encoders.units import UnitCounter, lookup
from paranmt_hf.errors import DivergedError, refuse
from paranmt_hf.evaluation.transfer_data import TaskPart, TransferTask
from paranmt_hf.evaluation.transfer_heads import target_distributions
from paranmt_hf.hub.repository import plain_name
from paranmt_hf.supervised.config import CHECKPOINT, SuperviseConfig, SupervisedRecord, SupervisedSettings
from paranmt_hf.supervised.data import CLASSES, VALUES, figures_of, measure_of, read_task
from paranmt_hf.supervised.fitting import FixedVectors, Items, Source, TrainedEncoder, fit_head, probabilities
from paranmt_hf.supervised.model import HeadConfig, SupervisedModel, new_head
from paranmt_hf.text.tokens import Bags, WordTokenizer
from paranmt_hf.training.inputs import encoder_identity, resolve_encoder
from paranmt_hf.training.prepare import build_for
from paranmt_hf.util.records import as_json, made_with


@dataclass(frozen=True)
class TaskSetup:
    """The inputs of a run.

    Attributes:
        config: The settings, resolved.
        task: The task's items.
        encoder: The encoder's settings, resolved.
        start: The encoder to start from; None for a new one.
        vectors: The file of word vectors to start from; None for none.
    """

    config: SuperviseConfig
    task: TransferTask
    encoder: EncoderConfig
    start: SentenceEncoder | None
    vectors: Path | None

    @cached_property
    def settings(self) -> SupervisedSettings:
        """Everything that determines the result."""
        encoder = as_json(encoder_identity(self.encoder, self.start, self.vectors))
        return SupervisedSettings(self.config, encoder, self.task.checksum)

    @property
    def inputs(self) -> dict[str, str]:
        """Names of the encoder or of the file of word vectors that the run starts from, without folders."""
        if self.encoder.init_from:
            return {"init_from": plain_name(self.encoder.init_from)}
        return {"vectors": self.vectors.name} if self.vectors else {}


def resolve_task(data: str | Path, config: SuperviseConfig, encoder: EncoderConfig) -> TaskSetup:
    """Read the items of a task, find the initial encoder, and fill in all settings.

    Args:
        data: Folder of the task.
        config: The task, and how it is trained.
        encoder: Settings of the encoder; its `init_from` names the one to start from, if there is one.

    Raises:
        InputError: All items of a part have the same label, or the settings do not fit together.
    """
    config = config.resolved(start=encoder.init_from is not None)
    task = read_task(data, config.task)
    for name, part in task.parts.items():
        refuse(
            len(np.unique(part.labels)) < 2,
            f"all {len(part):,} {name} items of {task.name} have one label; expected at least two different ones",
            option="data",
        )
    return TaskSetup(config, task, *resolve_encoder(encoder))


def train_task(setup: TaskSetup, work: Path) -> tuple[SupervisedModel, SupervisedRecord]:
    """Train the head, and the encoder below it, with a checkpoint in the folder `work`.

    Returns:
        The model and its record.
    """
    config, task = setup.config, setup.task
    row_of: dict[str, int] = {}
    items = {name: _items(task.name, part, row_of) for name, part in task.parts.items()}
    encoder = trainable(setup.start or new_encoder(setup))
    parts = take_apart(encoder).parts
    (table,) = WordTokenizer().tables(list(row_of))
    bags: dict[str, Bags] = {part.unit_kind: lookup(part.vocabulary).bags(table) for part in parts}
    unknown = _unknown_share(bags, items["train"], setup)
    values = VALUES.get(config.task)
    layers = HeadConfig(
        task=config.task,
        classes=list(CLASSES[config.task]),
        values=None if values is None else list(map(float, values)),
        sides=len(task.parts["train"].sides),
        dimension=encoder.get_embedding_dimension() or 0,
        projection=config.projection,
        hidden=config.hidden or 0,
    )
    head = new_head(layers, config.seed)
    source: Source
    if config.way == "fixed":
        vectors = encoder.encode(list(row_of), show_progress_bar=False)
        source = FixedVectors(torch.from_numpy(np.asarray(vectors, np.float32)))
    else:
        source = TrainedEncoder(encoder, parts, bags, freeze_words=config.freeze_words)

    def figures(name: str, shares: np.ndarray) -> dict[str, float]:
        return figures_of(task.name, shares, task.parts[name].labels)

    def measure(shares: np.ndarray) -> float:
        return figures("dev", shares)[measure_of(task.name)]

    try:
        epochs = fit_head(source, head, items["train"], items["dev"], config, measure, work)
        reached = {name: figures(name, probabilities(source, head, items[name])) for name in ("dev", "test")}
    except DivergedError:
        # The checkpoint is of no use, and would keep a run with another rate out of the work folder.
        (work / CHECKPOINT).unlink(missing_ok=True)
        raise
    record = SupervisedRecord(
        settings=setup.settings,
        inputs=setup.inputs,
        items={name: len(part) for name, part in task.parts.items()},
        figures=reached,
        epochs=epochs,
        best_epoch=1 + int(np.argmax([epoch.development for epoch in epochs])),
        dimension=head.config.dimension,
        parameters=sum(weights.numel() for weights in [*source.parameters, *head.parameters()]),
        unknown=unknown,
        notes=list(task.notes),
        **made_with("torch", "numpy", "sentence-transformers"),
    )
    if isinstance(source, TrainedEncoder):
        source.put_back()
    return SupervisedModel(encoder, head.eval()), record


def _items(task: str, part: TaskPart, row_of: dict[str, int]) -> Items:
    """Convert a part of a task to items, and number its sentences.

    Args:
        task: Name of the task.
        part: The part.
        row_of: Number of each sentence so far; new sentences are added.
    """
    sentences = [[row_of.setdefault(text, len(row_of)) for text in side] for side in part.sides]
    if task in VALUES:
        targets = target_distributions(part.labels, VALUES[task])
    else:
        targets = np.eye(len(CLASSES[task]), dtype=np.float32)[part.labels]
    return Items(np.array(sentences, np.int64), torch.from_numpy(targets))


def new_encoder(setup: TaskSetup) -> SentenceEncoder:
    """Build an encoder with the vocabulary of the training items, and of the word vectors if there are any."""
    counter = UnitCounter(setup.encoder.kinds)
    for side in setup.task.parts["train"].sides:
        counter.add(WordTokenizer().tables(side)[0])
    return build_for(setup.encoder, counter.result(), setup.vectors, seed=setup.config.seed)


def _unknown_share(bags: Mapping[str, Bags], train: Items, setup: TaskSetup) -> float:
    """Compute the share of the training sentences' units that have no row of their own.

    Raises:
        InputError: No unit of them has one.
    """
    known = units = 0
    for bag in bags.values():
        used = bag.take(np.unique(train.sentences))
        known += int(used.known.sum())
        units += len(used.rows)
    name = setup.inputs.get("init_from", setup.encoder.model)
    refuse(
        not known,
        f"{name} knows none of the words of {setup.task.name}; choose an encoder of their language, or `way` scratch",
    )
    return 1 - known / units
