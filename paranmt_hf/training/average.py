"""Average the weights of several encoders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.training.card import trained_values, write_model_card
from paranmt_hf.training.record import AveragedModel, Mean, MeanRecord
from paranmt_hf.util.run import result_folder, run

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder


def average_encoders(models: Sequence[str | Path], out: str | Path) -> Mean:
    """Average the weights of encoders that were trained from the same initial weights, in full precision.

    A model that was trained further on narrower data, averaged with its start, keeps part of its gain and recovers
    part of its loss (Wortsman et al. 2022, arXiv:2109.01903).

    Args:
        models: Folders or Hub ids of at least two encoders trained on pairs, with equal vocabularies and dimensions;
            one that is named twice counts twice. Some may have been trained further by sentence-transformers, which
            writes no record.
        out: Folder of the mean; its `training.json` is that of the last model that has one, and names all models.
    """
    if len(models) < 2:
        raise InputError("name at least two models to average", option="models")
    located = [locate(model) for model in models]
    out = result_folder(out, MeanRecord, sources=[model.folder for model in located])
    records = []
    for model in located:
        if (model.folder / MeanRecord.FILE).is_file():
            records.append(MeanRecord.read(model.folder))
    if not records:
        raise InputError(
            f"none of the models holds {MeanRecord.FILE}; expected at least one that `paranmt train` made",
            option="models",
            path=located[-1].folder,
        )
    mean_of = [AveragedModel(model.name, model.revision) for model in located]
    # The development score of the last model is not that of the mean, and its options are not those of this command.
    record = replace(records[-1], mean_of=mean_of, development=None, options={})

    def make(work: Path, folder: Path) -> MeanRecord:
        from paranmt_hf.encoders.saving import save

        save(_mean(located), folder)
        write_model_card(folder, out.name, trained_values(record, folder))
        return record

    return run(out, record.identity, MeanRecord, make, result=Mean, command="encoder average")


def _mean(located: Sequence[Model]) -> SentenceEncoder:
    """Load encoders, and average their weights.

    Raises:
        InputError: They differ in kind, vocabulary or dimensions.
    """
    from paranmt_hf.encoders.building import trainable

    mean = trainable(load(located[0], device="cpu"))
    sums = {name: weight.double() for name, weight in mean.state_dict().items()}
    for source in located[1:]:
        other = trainable(load(source, device="cpu"))
        weights = other.state_dict()
        if _kind(other) != _kind(mean) or any(weights[name].shape != sums[name].shape for name in sums):
            raise InputError(
                f"{source.name} does not have the kind, the vocabulary and the dimensions of {located[0].name}; only "
                "models trained from one start can be averaged",
                option="models",
            )
        for name, weight in weights.items():
            sums[name] += weight
    mean.load_state_dict({name: (total / len(located)).float() for name, total in sums.items()})
    return mean


def _kind(model: SentenceEncoder) -> tuple[Any, ...]:
    """Return what averaged models must have in common: modules, activations and units, but not the values of weights.

    The modules also show how a BLSTM joins its directions, and what is pooled.
    """
    from paranmt_hf.encoders.composition import take_apart

    composition = take_apart(model)
    parts = []
    for part in composition.parts:
        modules = []
        for module in part.modules:
            activation = getattr(module, "activation_function", getattr(module, "activation", ""))
            modules.append(f"{type(module).__name__} {activation}")
        parts.append((modules, part.vocabulary.units))
    return composition.name, parts
