"""Average the weights of encoders that were trained from one start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.training.card import write_derived_card
from paranmt_hf.training.publish import other_kind
from paranmt_hf.training.record import TRAINING_FILE, Derived, DerivedRecord, basis_of, training_values
from paranmt_hf.util.run import result_folder, run

if TYPE_CHECKING:
    from torch import nn

    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder


def average_encoders(models: Sequence[str | Path], out: str | Path) -> Derived:
    """Average the weights of encoders that were trained from one start, in full precision.

    A model that was trained further on narrower data, averaged with its start, keeps part of its gain and recovers
    part of its loss (Wortsman et al. 2022, arXiv:2109.01903).

    Args:
        models: Folders or Hub ids of at least two encoders with equal vocabularies and dimensions; one that is named
            twice counts twice.
        out: Folder of the mean; its `training.json` is that of the last model, and names all of them.
    """
    if len(models) < 2:
        raise InputError("name at least two models to average", option="models")
    located = [locate(model) for model in models]
    out = result_folder(out, DerivedRecord, sources=[model.folder for model in located])
    for model in located:
        if kind := other_kind(model.folder):
            raise InputError(f"{model.name} is {kind}; only encoders trained on pairs from one start can be averaged")
    _refuse_other_bases(located)
    # The development score of the last model is not that of the mean.
    values = training_values(located[-1].folder) | {
        "development": None,
        "mean_of": [{"name": model.name, "revision": model.revision} for model in located],
    }
    record = DerivedRecord.from_json(values, out / TRAINING_FILE)

    def make(work: Path, folder: Path) -> DerivedRecord:
        from paranmt_hf.encoders.saving import save

        save(_mean(located), folder)
        write_derived_card(folder, out.name, values)
        return record

    return run(out, record.settings, DerivedRecord, make, result=Derived, command="encoder average")


def _mean(located: Sequence[Model]) -> SentenceEncoder:
    """Average the weights of encoders."""
    import torch

    from paranmt_hf.encoders.building import trainable

    mean = trainable(load(located[0], device="cpu"))
    sums = {name: weight.double() for name, weight in mean.state_dict().items()}
    for source in located[1:]:
        other = load(source, device="cpu")
        weights = other.state_dict()
        if _kind(other) != _kind(mean) or any(weights[key].shape != sums[key].shape for key in sums):
            raise InputError(
                f"{source.name} does not have the kind, the vocabulary and the dimensions of {located[0].name}; only "
                "models trained from one start can be averaged"
            )
        for key, weight in weights.items():
            sums[key] += weight
    mean.load_state_dict({name: (total / len(located)).to(torch.float32) for name, total in sums.items()})
    return mean


def _refuse_other_bases(models: Sequence[Model]) -> None:
    """Refuse models whose dimensions differ, because one was rotated and another was not, or differently."""
    bases = [basis_of(training_values(model.folder)) for model in models]
    if any(basis != bases[0] for basis in bases):
        name = next(model.name for model, basis in zip(models, bases, strict=True) if basis)
        raise InputError(
            f"{name} was rotated (`paranmt encoder rotate`), or trained from a rotated model, so it does not "
            "have the dimensions of the other models; average first and rotate the mean"
        )


def _kind(model: SentenceEncoder) -> tuple[str, list[list[str]], list[list[str]], list[list[Any]]]:
    """What models to be averaged must have in common, with how a BLSTM joins directions and what is pooled."""
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
