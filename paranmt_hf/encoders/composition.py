"""Decompose an encoder into encoders of known families, and how they are combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling, WordEmbeddings
from torch import nn

from paranmt_hf.encoders.families import FAMILIES, Family, title_of
from paranmt_hf.encoders.modules.paranmt_averages import (
    AverageEmbedding,
    NgramEmbedding,
    TrigramEmbedding,
    WordEmbedding,
)
from paranmt_hf.encoders.modules.paranmt_combination import Combination
from paranmt_hf.encoders.modules.paranmt_recurrent import AverageDirections
from paranmt_hf.encoders.vocabulary import Vocabulary
from paranmt_hf.errors import InputError
from paranmt_hf.text.definitions import vocabulary_of


@dataclass(frozen=True)
class Part:
    """One of the encoders that are combined."""

    family: Family  # The family of the encoder
    modules: list[nn.Module]  # Its modules; the first holds the table

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The unit of each row of its table; raises an error if text is split by a tokenizer of another package."""
        first = self.modules[0]
        if isinstance(first, NgramEmbedding):
            return Vocabulary(self.family.units, first.units, first.ngrams)
        if isinstance(first, AverageEmbedding):
            return Vocabulary(self.family.units, first.units)
        assert isinstance(first, WordEmbeddings)
        units = vocabulary_of(first.tokenizer.tokenizer._tokenizer)
        if units is None:
            raise InputError(
                "the encoder's words come from a tokenizer that is not of this package, so it can neither be trained "
                "further nor exported here"
            )
        return Vocabulary(self.family.units, units)

    @property
    def reader(self) -> str:
        """Name of its row lookup; encoders with the same vocabulary share one."""
        return self.family.units

    @property
    def cut(self) -> str:
        """How text is split: `words` (see `text/definitions.py`) or `blanks` (at white space only)."""
        first = self.modules[0]
        return first.cut if isinstance(first, NgramEmbedding) else "words"

    @property
    def is_bag(self) -> bool:
        """Whether it averages the rows of a sentence's units; otherwise it reads them in order."""
        return isinstance(self.modules[0], AverageEmbedding)

    @property
    def table(self) -> nn.Embedding | nn.EmbeddingBag:
        """Its embeddings."""
        first = self.modules[0]
        return first.embedding if isinstance(first, AverageEmbedding) else first.emb_layer  # type: ignore[return-value]

    @property
    def weights(self) -> list[nn.Parameter]:
        """Its weights other than the embeddings: the compositional parameters."""
        return [weight for module in self.modules for weight in module.parameters() if weight is not self.table.weight]

    @property
    def dimension(self) -> int:
        """Dimensions of its sentence vector."""
        return self.modules[-1].get_embedding_dimension()  # type: ignore[operator]


@dataclass(frozen=True)
class Composition:
    """The parts of an encoder of this package."""

    parts: list[Part]  # The combined encoders; one if there is no combination
    mode: str  # How: `add` or `concatenate`

    @property
    def name(self) -> str:
        """The encoder as `EncoderConfig.model` names it, such as `word,trigram`."""
        return ("+" if self.mode == "add" else ",").join(part.family.name for part in self.parts)

    @property
    def title(self) -> str:
        """The encoder as the papers name it, such as `WORD,TRIGRAM`."""
        return title_of((part.family.name for part in self.parts), self.mode)

    @property
    def dimension(self) -> int:
        """Dimensions of a sentence vector."""
        widths = [part.dimension for part in self.parts]
        return widths[0] if self.mode == "add" else sum(widths)

    @property
    def is_bag(self) -> bool:
        """Whether all parts average the rows of a sentence's units."""
        return all(part.is_bag for part in self.parts)

    @property
    def cuts_alike(self) -> bool:
        """Whether all parts split text in the same way, so that it can be split once."""
        return len({part.cut for part in self.parts}) == 1

    @property
    def only_tables(self) -> bool:
        """Whether it only averages tables, as the engines train it."""
        return not any(part.family.dense for part in self.parts)


def composition_of(modules: Sequence[nn.Module]) -> Composition | None:
    """Decompose an encoder; None if it is not one of this package's encoders."""
    chains, mode = [list(modules)], "concatenate"
    if len(modules) == 1 and isinstance(modules[0], Combination):
        chains, mode = [list(part.children()) for part in modules[0].parts], modules[0].mode
    families = [family_of(chain) for chain in chains]
    if None in families:
        return None
    return Composition([Part(family, chain) for family, chain in zip(families, chains, strict=True) if family], mode)


def combined(chains: Sequence[Sequence[nn.Module]], mode: str) -> list[nn.Module]:
    """Join the modules of one or several encoders to those of a whole one; undone by `composition_of`."""
    return list(chains[0]) if len(chains) == 1 else [Combination(chains, mode)]


def family_of(modules: Sequence[nn.Module]) -> Family | None:
    """Find the family of one encoder's modules; None if it is not one of this package's encoders."""
    first, *rest = modules
    name = None
    if isinstance(first, NgramEmbedding):
        name = None if rest else "sent2vec"
    elif isinstance(first, TrigramEmbedding):
        name = None if rest else "trigram"
    elif isinstance(first, WordEmbedding):
        name = _average_name(rest)
    elif isinstance(first, WordEmbeddings):
        name = _sequence_name(rest)
    return None if name is None else FAMILIES[name]


def _average_name(layers: Sequence[nn.Module]) -> str | None:
    if not layers:
        return "word"
    if len(layers) == 1 and is_layer(layers[0], nn.Identity):
        return "projection"
    return "dan" if len(layers) <= 2 and all(is_layer(layer, nn.Tanh, nn.ReLU) for layer in layers) else None


def _sequence_name(modules: Sequence[nn.Module]) -> str | None:
    classes = tuple(type(module).__name__ for module in modules)
    if found := [family.name for family in FAMILIES.values() if classes and family.modules == classes]:
        return found[0]
    if not 2 <= len(modules) <= 3:
        return None
    lstm, *directions, pooling = modules
    if not isinstance(lstm, LSTM) or lstm.num_layers != 1 or lstm.dropout:
        return None
    if not isinstance(pooling, Pooling) or pooling.pooling_mode not in ("mean", "max"):
        return None
    if not all(isinstance(module, AverageDirections) for module in directions):
        return None
    return "blstm" if lstm.bidirectional else "lstm"


def is_layer(layer: nn.Module, *activations: type[nn.Module]) -> bool:
    """Whether a module is a layer with a bias over the sentence vector, and has one of the given activations."""
    return (
        isinstance(layer, Dense)
        and isinstance(layer.activation_function, activations)
        and bool(layer.bias)
        and not layer.use_residual
        and layer.module_input_name == layer.module_output_name == "sentence_embedding"
    )


def take_apart(modules: Sequence[nn.Module]) -> Composition:
    """Decompose an encoder, and reject one that is not of this package; see `composition_of`."""
    composition = composition_of(modules)
    if composition is None:
        classes = ", ".join(type(module).__name__ for module in modules)
        titles = ", ".join(family.title for family in FAMILIES.values())
        raise InputError(f"expected an encoder of this package ({titles}, or a combination), found {classes}")
    return composition
