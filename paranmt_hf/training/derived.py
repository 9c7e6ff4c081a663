"""Encoders made from others: the mean of several, and one with rotated dimensions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paranmt_hf.corpus.reading.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.training.card import write_derived_card
from paranmt_hf.training.publish import other_kind
from paranmt_hf.training.record import (
    TRAINING_FILE,
    AveragedModel,
    Derived,
    DerivedRecord,
    Rotation,
    basis_of,
    training_values,
)
from paranmt_hf.util.files import listed
from paranmt_hf.util.markers import Count, Seed
from paranmt_hf.util.records import as_json
from paranmt_hf.util.run import result_folder, run
from paranmt_hf.util.settings import Settings

if TYPE_CHECKING:
    from torch import nn

    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

ROTATION_PAIRS = 10_000  # Sentence pairs whose principal components are taken, sampled at random


def average_encoders(models: Sequence[str | Path], out: str | Path) -> Derived:
    """Average the weights of encoders that were trained from the same initial weights, in full precision.

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
    bases = [basis_of(training_values(model.folder)) for model in located]
    if any(basis != bases[0] for basis in bases):
        name = next(model.name for model, basis in zip(located, bases, strict=True) if basis)
        raise InputError(
            f"{name} was rotated (`paranmt encoder rotate`), or trained from a rotated model, so it does not "
            "have the dimensions of the other models; average first and rotate the mean"
        )
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
        other = trainable(load(source, device="cpu"))
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


def _kind(model: SentenceEncoder) -> tuple[Any, ...]:
    """What averaged models must have in common, including how a BLSTM joins directions and pooling."""
    from paranmt_hf.encoders.composition import take_apart

    composition = take_apart(model)
    parts = []
    for part in composition.parts:
        ngrams = part.vocabulary.ngrams
        hashed = None if ngrams is None else (ngrams.order, ngrams.buckets, ngrams.hashes.tobytes(), part.cut)
        parts.append(([_described(module) for module in part.modules], part.vocabulary.units, hashed))
    return composition.name, parts


def _described(module: nn.Module) -> str:
    """Name of a module's class, and its activation if it has one."""
    activation = getattr(module, "activation_function", getattr(module, "activation", ""))
    return f"{type(module).__name__} {activation}"


@dataclass(frozen=True)
class RotateConfig(Settings):
    """How the dimensions of an encoder are ordered (not in the papers).

    Attributes:
        dimension: Keep only this number of the first dimensions.
        each_part: Rotate each table of a concatenation such as WORD,TRIGRAM by itself: the files stay as small, but
            the first dimensions are then those of the first table alone.
        seed: Decides the even rotation, or which pairs are sampled.
    """

    dimension: Count | None = None
    each_part: bool = False
    seed: Seed = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.each_part and self.dimension is not None:
            raise InputError(
                "`dimension` with `each_part` would keep dimensions of the first table alone; give one of them",
                option="dimension",
            )


def rotate_encoder(
    model: str | Path,
    out: str | Path,
    *,
    data: str | Path | Sequence[str | Path] | None = None,
    config: RotateConfig | None = None,
) -> Derived:
    """Order the dimensions of an averaging encoder, so that cutting some off costs less; its cosines stay the same.

    Every dimension then holds as much as any other, or, with `data`, the first ones hold most. A concatenation becomes
    a sum of tables that are as wide as all of its tables together, unless `each_part` is set.

    Args:
        model: Folder or Hub id of an encoder trained on pairs; `small` and `base` are those of the package.
        out: Folder of the rotated encoder; its `training.json` is that of the model, with the rotation.
        data: Sentences whose principal components become the dimensions, the largest first; as `paranmt train` takes
            them.
        config: Which dimensions are kept, and whether tables are rotated by themselves.
    """
    # Torch is imported only now, so that the command's help does not need it.
    from paranmt_hf.encoders.building import trainable
    from paranmt_hf.encoders.rotation import refuse_other_weights
    from paranmt_hf.encoders.saving import save

    config, located = config or RotateConfig(), locate(model)
    out = result_folder(out, DerivedRecord, sources=[located.folder])
    if kind := other_kind(located.folder):
        raise InputError(f"{located.name} is {kind}; only encoders trained on pairs are rotated")
    pairs = Pairs(listed(data), PairSelection(max_pairs=ROTATION_PAIRS), seed=config.seed) if data else None
    encoder = trainable(load(located, device="cpu"))
    composition = refuse_other_weights(encoder, str(model))
    _check(config, composition.dimension, len(composition.parts) if composition.mode == "concatenate" else 1)
    rotation = Rotation(
        model=AveragedModel(located.name, located.revision),
        order="even" if pairs is None else "principal",
        dimension=config.dimension,
        each_part=config.each_part,
        pairs=None if pairs is None else ROTATION_PAIRS,
        seed=config.seed,
        data=None if pairs is None else pairs.identity,
    )
    values = training_values(located.folder) | {"rotated": as_json(rotation)}
    # The rotation that it was trained in is not the last one.
    values.pop("basis", None)

    def make(work: Path, folder: Path) -> DerivedRecord:
        rotated = _rotate(encoder, config, pairs)
        final = values | _changed(values, rotated)
        save(rotated, folder)
        write_derived_card(folder, out.name, final)
        return DerivedRecord.from_json(final, folder / TRAINING_FILE)

    identity = DerivedRecord.from_json(values, out / TRAINING_FILE).settings
    return run(out, identity, DerivedRecord, make, result=Derived, command="encoder rotate")


def _check(config: RotateConfig, dimension: int, tables: int) -> None:
    if config.dimension is not None and config.dimension > dimension:
        raise InputError(f"`dimension` {config.dimension} is more than the {dimension} dimensions of the model")
    if config.each_part and tables == 1:
        raise InputError(
            "`each_part` is for concatenations such as WORD,TRIGRAM, which this model is not; leave it out"
        )


def _rotate(encoder: SentenceEncoder, config: RotateConfig, pairs: Pairs | None) -> SentenceEncoder:
    from paranmt_hf.encoders.composition import take_apart
    from paranmt_hf.encoders.rotation import (
        blocks,
        even_rotation,
        principal_rotation,
        rotate_parts,
        rotate_together,
        second_moment,
    )

    composition = take_apart(encoder)
    moment = None if pairs is None else second_moment(_vectors(encoder, pairs))
    if config.each_part:
        widths = [part.dimension for part in composition.parts]
        if moment is not None:
            return rotate_parts(encoder, [principal_rotation(block) for block in blocks(moment, widths)])
        return rotate_parts(encoder, [even_rotation(width, config.seed) for width in widths])
    rotation = even_rotation(composition.dimension, config.seed) if moment is None else principal_rotation(moment)
    return rotate_together(encoder, rotation[:, : config.dimension])


def _vectors(encoder: SentenceEncoder, pairs: Pairs) -> Iterator[np.ndarray]:
    """Whole vectors of the sentences of pairs, batch by batch."""
    width = encoder.composition.dimension if encoder.composition is not None else None
    for table in pairs.batches():
        for side in SIDES:
            yield encoder.encode(table[side].to_pylist(), show_progress_bar=False, truncate_dim=width)


def _changed(values: Mapping[str, Any], rotated: SentenceEncoder) -> dict[str, Any]:
    """The changes of a rotated encoder in the record of its model."""
    dimension = rotated.get_embedding_dimension()
    # The development score of all dimensions is not that of fewer.
    fewer = {"development": None} if values.get("dimension") != dimension else {}
    parameters = sum(parameter.numel() for parameter in rotated.parameters())
    return {**fewer, "dimension": dimension, "parameters": parameters}
