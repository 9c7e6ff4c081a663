"""Training for a supervised task: its items, the encoder, the head, and their scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
import torch

from paranmt_hf.encoders.building import trainable
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.encoders.units import UnitCounter, lookup
from paranmt_hf.errors import DivergedError, InputError
from paranmt_hf.evaluation.correlation import pearson, spearman
from paranmt_hf.evaluation.transfer_data import TaskPart, TransferTask
from paranmt_hf.evaluation.transfer_heads import target_distributions
from paranmt_hf.hub.repository import plain_name
from paranmt_hf.supervised.config import CHECKPOINT, SuperviseConfig, SupervisedRecord, SupervisedSettings
from paranmt_hf.supervised.data import CLASSES, VALUES, measure_of, read_task
from paranmt_hf.supervised.fitting import (
    FixedVectors,
    Items,
    TrainedEncoder,
    VectorSource,
    fit_head,
    probabilities,
)
from paranmt_hf.supervised.model import KIND, HeadConfig, SupervisedModel, new_head
from paranmt_hf.text.tokens import Bags, WordTokenizer
from paranmt_hf.training.inputs import encoder_identity, resolve_encoder
from paranmt_hf.training.prepare import build_for
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.records import as_json, made_with


@dataclass(frozen=True)
class TaskSetup:
    """The inputs of a run.

    Attributes:
        config: The settings, resolved.
        task: The task's items.
        encoder: The encoder's settings, resolved.
        start: The encoder to start from, if there is one.
        vectors: The file of word vectors, if there is one.
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
        """Names of the inputs, without folders."""
        start = {"init_from": plain_name(self.encoder.init_from)} if self.encoder.init_from else {}
        return start | ({"vectors": self.vectors.name} if self.vectors else {})


def resolve_task(data: str | Path, config: SuperviseConfig, encoder: EncoderConfig) -> TaskSetup:
    """Read the items of a task, and find the initial encoder."""
    config = config.resolved(start=encoder.init_from is not None)
    task = read_task(data, config.task)
    _check_labels(task)
    encoder, start, vectors = resolve_encoder(encoder)
    return TaskSetup(config, task, encoder, start, vectors)


def _check_labels(task: TransferTask) -> None:
    """Reject items from which nothing can be learned or measured."""
    for name, part in task.parts.items():
        if len(np.unique(part.labels)) < 2:
            raise InputError(
                f"all {len(part):,} {name} items of {task.name} have one label; expected at least two different ones "
                f"in {task.files[list(task.parts).index(name)]}"
            )


def train_task(setup: TaskSetup, work: Path) -> tuple[SupervisedModel, SupervisedRecord]:
    """Train the head, and the encoder below it, with checkpoints in `work`; returns the model and its record."""
    config, task = setup.config, setup.task
    texts = list(dict.fromkeys(text for part in task.parts.values() for side in part.sides for text in side))
    row_of = {text: row for row, text in enumerate(texts)}
    items = {name: _items(task.name, part, row_of) for name, part in task.parts.items()}
    encoder = trainable(setup.start or new_encoder(setup))
    bags = _cut(encoder, texts)
    unknown = _unknown_share(bags, items["train"], setup)
    head = new_head(_head_config(config, encoder, len(task.parts["train"].sides)), config.seed)
    source: VectorSource
    if config.way == "fixed":
        source = FixedVectors(_encode(encoder, texts, task.name))
    else:
        source = TrainedEncoder(encoder, take_apart(encoder).parts, bags, freeze_words=config.freeze_words)
    trained = sum(weights.numel() for weights in chain(source.tables, *source.dense, head.parameters()))

    try:
        labels = task.parts["dev"].labels
        epochs = fit_head(
            source,
            head,
            items["train"],
            items["dev"],
            config,
            lambda shares: _figures(task.name, shares, labels, "dev")[measure_of(task.name)],
            work,
        )
        figures = {
            name: _figures(task.name, probabilities(source, head, items[name]), task.parts[name].labels, name)
            for name in ("dev", "test")
        }
    except DivergedError:
        # It is of no use, and must not keep a run with another rate from the folder.
        (work / CHECKPOINT).unlink(missing_ok=True)
        raise
    if isinstance(source, TrainedEncoder):
        source.put_back()
    model = SupervisedModel(encoder, head.eval())
    record = SupervisedRecord(
        settings=setup.settings,
        inputs=setup.inputs,
        items={name: len(part) for name, part in task.parts.items()},
        figures=figures,
        epochs=epochs,
        best_epoch=1 + int(np.argmax([epoch.development for epoch in epochs])),
        dimension=model.head.config.dimension,
        parameters=trained,
        unknown=unknown,
        notes=list(task.notes),
        **made_with("torch", "numpy", "sentence-transformers"),
    )
    return model, record


def _items(task: str, part: TaskPart, row_of: Mapping[str, int]) -> Items:
    sentences = np.array([[row_of[text] for text in side] for side in part.sides], np.int64)
    if task in VALUES:
        targets = target_distributions(part.labels, VALUES[task])
    else:
        targets = np.eye(len(CLASSES[task]), dtype=np.float32)[part.labels]
    return Items(sentences, torch.from_numpy(targets))


def new_encoder(setup: TaskSetup) -> SentenceEncoder:
    """Build an encoder with the vocabulary of the training items, and of the word vectors if there are any."""
    counter = UnitCounter(setup.encoder.kinds)
    for side in setup.task.parts["train"].sides:
        counter.add(WordTokenizer().tables(side)[0])
    return build_for(setup.encoder, counter.result(), setup.vectors, seed=setup.config.seed)


def _cut(encoder: SentenceEncoder, texts: list[str]) -> dict[str, Bags]:
    """Units of all sentences as rows of each vocabulary, by the name of its lookup."""
    (table,) = WordTokenizer().tables(texts)
    vocabularies = {part.unit_kind: part.vocabulary for part in take_apart(encoder).parts}
    return {name: lookup(vocabulary).bags(table) for name, vocabulary in vocabularies.items()}


def _unknown_share(bags: Mapping[str, Bags], train: Items, setup: TaskSetup) -> float:
    """Share of the training sentences' units that no encoder knows."""
    bags_of_train = [bag.take(np.unique(train.sentences)) for bag in bags.values()]
    known, units = sum(int(bag.known.sum()) for bag in bags_of_train), sum(len(bag.rows) for bag in bags_of_train)
    if not known:
        name = setup.inputs.get("init_from", setup.encoder.model)
        raise InputError(
            f"{name} knows none of the words of {setup.task.name}; choose an encoder of their language, or `way` "
            "scratch"
        )
    return 1 - known / units


def _head_config(config: SuperviseConfig, encoder: SentenceEncoder, sides: int) -> HeadConfig:
    assert config.hidden is not None
    return HeadConfig(
        task=config.task,
        classes=list(CLASSES[config.task]),
        values=list(map(float, VALUES[config.task])) if config.task in VALUES else None,
        sides=sides,
        dimension=encoder.get_embedding_dimension() or 0,
        projection=config.projection,
        hidden=config.hidden,
        kind=KIND,
    )


def _encode(encoder: SentenceEncoder, texts: list[str], task: str) -> torch.Tensor:
    """Vectors of all sentences [sentence, dimension]."""
    with Progress(f"{task}: encoding", len(texts), least=1.0) as progress:
        vectors = torch.from_numpy(np.asarray(encoder.encode(texts, show_progress_bar=False), np.float32))
        progress.advance_to(len(texts))
    return vectors


def _figures(task: str, shares: np.ndarray, labels: np.ndarray, part: str) -> dict[str, float]:
    """Scores of probabilities [item, class] against labels [item]; that of `measure_of` selects the epoch."""
    if task not in VALUES:
        return {"accuracy": float(np.mean(shares.argmax(axis=1) == labels))}
    scores = shares @ np.array(VALUES[task])
    try:
        return {
            "pearson": pearson(scores, labels),
            "spearman": spearman(scores, labels),
            "mse": float(np.mean((scores - labels) ** 2)),
        }
    except InputError as error:
        where = f"{task}, {part} items (first: predictions, second: gold scores)"
        raise DivergedError(f"{where}: {error}; lower `learning_rate`") from None
