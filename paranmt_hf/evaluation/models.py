"""What is evaluated: encoders by name or as objects, averages of word vectors, and measures of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.baselines import BaselineName, baseline
from paranmt_hf.evaluation.word_averages import read_averages
from paranmt_hf.evaluation.word_weights import WordWeighting
from paranmt_hf.hub.repository import locate, weights_checksum
from paranmt_hf.text.protocols import Encoder

Models = str | Path | Encoder | Sequence[str | Path | Encoder]


@dataclass(frozen=True)
class Measured:
    """A model to evaluate, which was found and is not loaded yet.

    Attributes:
        name: Its name in the results.
        load: Loads it: an encoder, or a measure of pairs.
        weights: Checksum of its weights; None for what was not loaded from files.
    """

    name: str
    load: Callable[[], Any]
    weights: str | None = None


def find_models(
    models: Models,
    *,
    baselines: Sequence[BaselineName] = (),
    vectors: Sequence[str | Path] = (),
    averages: WordWeighting | None = None,
    sentences: Callable[[], Iterable[str]] = tuple,
) -> list[Measured]:
    """Find everything before the first evaluation, whose result would be lost by a mistake in a later name.

    Args:
        models: Folders or Hub ids of encoders (`embedded` is the one that the package carries), or encoders.
        baselines: Baselines.
        vectors: Files of word vectors, or encoders whose word vectors are averaged.
        averages: How the words of these averages are weighted.
        sentences: Gives the sentences that will be encoded; only the vectors of their words are read.
    """
    given = [models] if isinstance(models, str | Path) or hasattr(models, "encode") else list(models)
    if not given and not baselines and not vectors:
        raise InputError("name a model to evaluate, a file of `vectors`, or `baselines`", option="models")
    found = [_encoder(model) for model in given]
    found += [Measured(name, partial(_same, measure)) for name in baselines for measure in [baseline(name)]]
    distinct = list(dict.fromkeys(sentences())) if vectors else []
    for title, average in read_averages(vectors, distinct, averages or WordWeighting()):
        found.append(Measured(title, partial(_same, average), average.checksum))
    return found


def _same(model: Any) -> Any:  # noqa: ANN401
    return model


def _encoder(model: str | Path | Encoder) -> Measured:
    if not isinstance(model, str | Path):
        source = getattr(model, "source", None)
        weights = weights_checksum(source.folder) if source is not None else None
        return Measured(type(model).__name__ if source is None else source.name, partial(_same, model), weights)
    found = locate(model)

    def load() -> Encoder:
        # Baselines and averages need no torch.
        from paranmt_hf.encoders.loading import load

        return load(found)

    return Measured(str(model), load, weights_checksum(found.folder))
