"""Train a model on stored pairs: by an engine or by the trainer.

An engine trains models that only average rows, without word factors and in one process; the trainer trains all others.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import torch

from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.named_encoder import WithoutProgressBar
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.evaluation.correlation import pearson
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.evaluation.sts_data import StsSet
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.cpu_engine import cpu_engine
from paranmt_hf.training.device.engine import device_engine
from paranmt_hf.training.epochs import Epochs, MegaBatches
from paranmt_hf.training.losses import diverged
from paranmt_hf.training.neighbours import NeighbourBatches
from paranmt_hf.training.pair_store import PairStore
from paranmt_hf.training.processes import process_count
from paranmt_hf.training.record import History
from paranmt_hf.training.teacher_vectors import TeacherVectors
from paranmt_hf.training.trainer_run import train_with_trainer
from paranmt_hf.training.word_factors import scaled_words


def fit_encoder(
    model: SentenceEncoder,
    store: PairStore,
    config: TrainConfig,
    work: Path,
    held_out: StsSet | None = None,
    teacher: TeacherVectors | None = None,
) -> History:
    """Train a model on stored pairs; it holds the final weights afterwards.

    Args:
        model: The model, with its initial weights.
        store: The pairs.
        config: How it is trained.
        work: Folder for checkpoints.
        held_out: The development set; None for none.
        teacher: Vectors of the teacher; None without one.

    Returns:
        The course of the run.

    Raises:
        DivergedError: A loss or a weight is not finite.
    """
    composition = take_apart(model)
    evaluate = partial(development_score, model, held_out) if held_out is not None else None
    if not composition.only_tables or config.word_factors or process_count() > 1:
        with scaled_words(model[0]) if config.word_factors else nullcontext():
            history = train_with_trainer(model, composition, store, work, config, evaluate, teacher)
    else:
        device = torch.device(config.device or "cpu")
        source: MegaBatches = store
        if config.neighbours and teacher is not None:
            source = NeighbourBatches(store, config, teacher, device)
        if device.type == "cuda":
            engine = device_engine(composition, config, source.pairs, teacher, device)
            history = Epochs(engine, source, work, evaluate).run()
        else:
            history = Epochs(cpu_engine(composition, config, source.pairs, teacher), source, work, evaluate).run()
    if not all(bool(weight.isfinite().all()) for weight in model.parameters()):
        # The loss of a step is computed before its update, so a bad last update shows only in the weights.
        raise diverged(f"{history.losses[-1][0]:,}" if history.losses else "1", float("nan"))
    return history


def development_score(
    model: SentenceEncoder, held_out: StsSet, correlation: Callable[[np.ndarray, np.ndarray], float] = pearson
) -> float:
    """Compute a correlation of a model with its current weights on a development set, by default Pearson's r."""
    training = model.training
    model.eval()
    similarities = pair_similarities(WithoutProgressBar(model), held_out.left, held_out.right, held_out.name)
    model.train(training)
    return correlation(similarities.values, held_out.gold)
