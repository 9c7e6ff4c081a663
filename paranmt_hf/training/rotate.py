"""Put the dimensions of a trained averaging encoder into an order in which the first ones hold most of its cosines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from paranmt_hf.corpus.pairs import SIDES, Pairs, PairSelection
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
    training_values,
)
from paranmt_hf.util.records import as_json
from paranmt_hf.util.run import result_folder, run
from paranmt_hf.util.settings import Count, Seed, check

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

# Sentence pairs whose principal components are taken, sampled at random.
ROTATION_PAIRS = 10_000


@dataclass(frozen=True)
class RotateConfig:
    """How the dimensions of an encoder are ordered (not in the papers).

    Attributes:
        order: even: every dimension holds as much as any other; principal: principal components of the sentences of
            `data`, the largest first.
        dimension: Keep only this number of the first dimensions.
        each_part: Rotate each table of a concatenation such as WORD,TRIGRAM by itself: the files stay as small, but
            the first dimensions are then those of the first table alone.
        seed: Decides the even rotation, or which pairs are sampled.
    """

    order: Literal["even", "principal"] = "even"
    dimension: Count | None = None
    each_part: bool = False
    seed: Seed = 1

    def __post_init__(self) -> None:
        check(self)
        if self.each_part and self.dimension is not None:
            raise InputError("`dimension` with `each_part` would keep dimensions of the first table alone; give one")


def rotate_encoder(
    model: str | Path,
    out: str | Path,
    *,
    data: str | Path | Sequence[str | Path] | None = None,
    config: RotateConfig | None = None,
) -> Derived:
    """Order the dimensions of an averaging encoder, so that cutting some off costs less; its cosines stay the same.

    A concatenation becomes a sum of tables that are as wide as all of its tables together, unless `each_part` is set.

    Args:
        model: Folder or Hub id of an encoder trained on pairs; `embedded` is the one in the package.
        out: Folder of the rotated encoder; its `training.json` is that of the model, with the rotation.
        data: Sentences whose principal components are taken, as `paranmt train` takes them; for that order only.
        config: The order, and the number of dimensions.
    """
    # Torch is imported only now, so that the command's help does not need it.
    from paranmt_hf.encoders.building import trainable
    from paranmt_hf.encoders.loading import load
    from paranmt_hf.encoders.rotation import refuse_other_weights
    from paranmt_hf.encoders.saving import save

    config, located = config or RotateConfig(), locate(model)
    out = result_folder(out, DerivedRecord, sources=[located.folder])
    if kind := other_kind(located.folder):
        raise InputError(f"{located.name} is {kind}; only encoders trained on pairs are rotated")
    pairs = _pairs(config, data)
    encoder = trainable(load(located, device="cpu"))
    composition = refuse_other_weights(encoder, str(model))
    _check(config, composition.dimension, len(composition.parts) if composition.mode == "concatenate" else 1)
    values = training_values(located.folder) | {"rotated": as_json(_rotation(located, config, pairs))}
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


def _pairs(config: RotateConfig, data: str | Path | Sequence[str | Path] | None) -> Pairs | None:
    """The sentences whose components are taken."""
    if (config.order == "principal") != (data is not None):
        raise InputError(
            "`order` principal needs text whose principal components are taken: give `data`, such as the training data"
            if data is None
            else "`data` is for `order` principal; leave it out, or choose that order"
        )
    if data is None:
        return None
    sources = [data] if isinstance(data, str | Path) else list(data)
    return Pairs(sources, PairSelection(max_pairs=ROTATION_PAIRS), seed=config.seed)


def _check(config: RotateConfig, dimension: int, tables: int) -> None:
    if config.dimension is not None and config.dimension > dimension:
        raise InputError(f"`dimension` {config.dimension} is more than the {dimension} dimensions of the model")
    if config.each_part and tables == 1:
        raise InputError(
            "`each_part` is for concatenations such as WORD,TRIGRAM, which this model is not; leave it out"
        )


def _rotation(located: Model, config: RotateConfig, pairs: Pairs | None) -> Rotation:
    return Rotation(
        model=AveragedModel(located.name, located.revision),
        order=config.order,
        dimension=config.dimension,
        each_part=config.each_part,
        pairs=None if pairs is None else ROTATION_PAIRS,
        seed=config.seed,
        data=None if pairs is None else pairs.identity,
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
        widths_of,
    )

    composition = take_apart(list(encoder))
    moment = None if pairs is None else second_moment(_vectors(encoder, pairs))
    if config.each_part:
        widths = widths_of(composition)
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
    """What a rotated encoder changes in the record of the model."""
    dimension = rotated.get_embedding_dimension()
    # The development score of all dimensions is not that of fewer.
    fewer = {"development": None} if values.get("dimension") != dimension else {}
    parameters = sum(parameter.numel() for parameter in rotated.parameters())
    return {**fewer, "dimension": dimension, "parameters": parameters}
