"""Average the weights of encoders that were trained from one start."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.training.card import write_model_card
from paranmt_hf.training.derived_record import DerivedEncoder, basis_of, is_made, training_values
from paranmt_hf.training.publish import other_kind
from paranmt_hf.training.record import TRAINING_FILE, TrainingRecord
from paranmt_hf.util.run import result_folder
from paranmt_hf.util.work import folder_aside, refuse_inside

if TYPE_CHECKING:
    from torch import nn

    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder


def average_encoders(models: Sequence[str | Path], out: str | Path) -> DerivedEncoder:
    """Average the weights of encoders that were trained from one start, in full precision.

    A model that was trained further on narrower data, averaged with what it started from, keeps part of what it gained
    and gets back part of what it lost (Wortsman et al. 2022, arXiv:2109.01903).

    Args:
        models: Folders or Hub ids of at least two encoders with equal vocabularies and dimensions; one that is named
            twice counts twice.
        out: Folder of the mean; its `training.json` is that of the last model, and names all of them.
    """
    import torch

    from paranmt_hf.encoders.building import trainable
    from paranmt_hf.encoders.saving import save

    out = result_folder(out)
    if len(models) < 2:
        raise InputError("name at least two models to average")
    located = [locate(model) for model in models]
    refuse_inside(out, *(model.folder for model in located))
    for model in located:
        if kind := other_kind(model.folder):
            raise InputError(f"{model.name} is {kind}; only encoders trained on pairs from one start can be averaged")
    _refuse_other_bases(located)
    identity = {"mean_of": [{"name": model.name, "revision": model.revision} for model in located]}
    if is_made(out, identity, "averaged"):
        return DerivedEncoder(out, f"the mean of {len(models)} models", fresh=False)
    mean = trainable(load(located[0], device="cpu"))
    sums = {name: weight.double() for name, weight in mean.state_dict().items()}
    for name, source in zip(models[1:], located[1:], strict=True):
        other = load(source, device="cpu")
        weights = other.state_dict()
        if _kind(other) != _kind(mean) or any(weights[key].shape != sums[key].shape for key in sums):
            raise InputError(
                f"{name} has not the kind, the vocabulary and the dimensions of {models[0]}; only models trained "
                "from one start can be averaged"
            )
        for key, weight in weights.items():
            sums[key] += weight
    mean.load_state_dict({name: (total / len(models)).to(torch.float32) for name, total in sums.items()})
    values = training_values(located[-1])
    # What the last model reached on the development set, this one does not.
    values |= identity | {"development": None}
    with folder_aside(out) as aside:
        save(mean, aside)
        (aside / TRAINING_FILE).write_text(json.dumps(values, indent=1), encoding="utf8")
        # The record of another version says too little for a card.
        with suppress(InputError):
            write_model_card(aside, out.name, TrainingRecord.from_json(values, out / TRAINING_FILE))
    return DerivedEncoder(out, f"the mean of {len(models)} models", fresh=True)


def _refuse_other_bases(models: Sequence[Model]) -> None:
    """Refuse models of which one was rotated and another was not, or otherwise: their dimensions are not the same."""
    bases = [basis_of(training_values(model)) for model in models]
    if any(basis != bases[0] for basis in bases):
        name = next(model.name for model, basis in zip(models, bases, strict=True) if basis)
        raise InputError(
            f"{name} was rotated (`paranmt encoder rotate`), or trained from what was, so its dimensions are others "
            "than those of the other models; average first and rotate the mean"
        )


def _kind(model: SentenceEncoder) -> tuple[str, list[list[str]], list[list[str]], list[list[Any]]]:
    """What models to be averaged have in common; modules tell how a BLSTM joins directions, and what is pooled."""
    from paranmt_hf.encoders.composition import take_apart

    composition = take_apart(list(model))
    modules = [[_described(module) for module in part.modules] for part in composition.parts]
    vocabularies = [part.vocabulary for part in composition.parts]
    ngrams = [
        [known.ngrams.order, known.ngrams.buckets, known.ngrams.hashes.tobytes(), part.cut]
        for known, part in zip(vocabularies, composition.parts, strict=True)
        if known.ngrams is not None
    ]
    return composition.name, modules, [known.units for known in vocabularies], ngrams


def _described(module: nn.Module) -> str:
    """Name a module's class, and its activation where it has one."""
    activation = getattr(module, "activation_function", getattr(module, "activation", ""))
    return f"{type(module).__name__} {activation}"
