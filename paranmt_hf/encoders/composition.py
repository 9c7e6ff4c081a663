"""Find the parts of an encoder, each of a known family, and how they are combined."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling, WordEmbeddings
from torch import nn

from paranmt_hf.encoders.config import FAMILIES, Family, UnitKind, title_of
from paranmt_hf.encoders.modules.paranmt_averages import AverageEmbedding, NgramEmbedding
from paranmt_hf.encoders.modules.paranmt_combination import Combination
from paranmt_hf.encoders.vocabulary import Vocabulary
from paranmt_hf.errors import InputError
from paranmt_hf.text.definitions import vocabulary_of


@dataclass(frozen=True)
class Part:
    """One encoder of a combination, or an encoder alone.

    Attributes:
        family: Kind of the encoder.
        modules: Its modules; the first holds the table.
    """

    family: Family
    modules: list[nn.Module]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The unit of each row of its table.

        Raises:
            InputError: A tokenizer of another package splits the text.
        """
        first = self.modules[0]
        if isinstance(first, NgramEmbedding):
            return Vocabulary(self.unit_kind, first.units, first.ngrams)
        if isinstance(first, AverageEmbedding):
            return Vocabulary(self.unit_kind, first.units)
        units = vocabulary_of(first.tokenizer.tokenizer._tokenizer)  # type: ignore[union-attr, arg-type]
        if units is None:
            raise InputError(
                "the encoder's words come from a tokenizer that is not of this package, so it can neither be trained "
                "further nor exported here"
            )
        return Vocabulary(self.unit_kind, units)

    @property
    def unit_kind(self) -> UnitKind:
        """Kind of the units that its table has rows for; parts of the same kind in one encoder share a vocabulary."""
        return self.family.units

    @property
    def cut(self) -> str:
        """How text is split: `words` (see `text/definitions.py`) or `blanks` (at white space only)."""
        return getattr(self.modules[0], "cut", "words")

    @property
    def table(self) -> nn.Embedding | nn.EmbeddingBag:
        """The module that holds the vectors of the units."""
        first = self.modules[0]
        return first.embedding if isinstance(first, AverageEmbedding) else first.emb_layer  # type: ignore[return-value]

    @property
    def weights(self) -> list[nn.Parameter]:
        """All weights except the table: the compositional parameters."""
        return [weight for module in self.modules[1:] for weight in module.parameters()]

    @property
    def dimension(self) -> int:
        """Number of dimensions of the vector of this part."""
        return self.modules[-1].get_embedding_dimension()  # type: ignore[operator]


@dataclass(frozen=True)
class Composition:
    """The parts of an encoder, and how their vectors are combined.

    Attributes:
        parts: The combined encoders; a single one if there is no combination.
        mode: How they are combined: `add` or `concatenate`.
    """

    parts: list[Part]
    mode: str

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
        """Number of dimensions of a sentence vector."""
        widths = [part.dimension for part in self.parts]
        return widths[0] if self.mode == "add" else sum(widths)

    @property
    def is_bag(self) -> bool:
        """Whether every part averages the rows of a sentence's units, in whatever order; layers may follow."""
        return not any(part.family.ordered for part in self.parts)

    @property
    def only_tables(self) -> bool:
        """Whether all weights are in the tables; engines can train such encoders (`training/fit.py`)."""
        return all(part.family.layers is None for part in self.parts)


def composition_of(modules: Iterable[nn.Module]) -> Composition | None:
    """Find the parts of an encoder from its modules; None if it is not an encoder of this package."""
    chains = [list(modules)]
    mode = "concatenate"
    (first, *others) = chains[0]
    if isinstance(first, Combination) and not others:
        chains = [list(part.children()) for part in first.parts]
        mode = first.mode
    parts = []
    for chain in chains:
        family = family_of(chain)
        if family is None:
            return None
        parts.append(Part(family, chain))
    return Composition(parts, mode)


def take_apart(modules: Iterable[nn.Module]) -> Composition:
    """Find the parts of an encoder from its modules.

    Raises:
        InputError: It is not an encoder of this package.
    """
    modules = list(modules)
    composition = composition_of(modules)
    if composition is None:
        classes = ", ".join(type(module).__name__ for module in modules)
        titles = ", ".join(family.title for family in FAMILIES.values())
        raise InputError(f"expected an encoder of this package ({titles}, or a combination), found {classes}")
    return composition


def combined(chains: Sequence[Sequence[nn.Module]], mode: str) -> list[nn.Module]:
    """Join the modules of each part to the modules of one encoder; `composition_of` undoes this.

    Args:
        chains: Modules of each part, in order.
        mode: How several parts are combined: `add` or `concatenate`.
    """
    return list(chains[0]) if len(chains) == 1 else [Combination(chains, mode)]


def family_of(modules: Sequence[nn.Module]) -> Family | None:
    """Find the family of a part from its modules; None if it is not a part of an encoder of this package."""
    if not isinstance(modules[0], AverageEmbedding | WordEmbeddings):
        return None
    description = " ".join(map(described, modules))
    for family in FAMILIES.values():
        if re.fullmatch(family.modules, description):
            return family
    return None


def described(module: nn.Module) -> str:
    """Describe a module by a word, for the regular expression `Family.modules`.

    The word is the class of the module. For a stock module one setting follows, such as `Dense-Tanh`: the activation
    of a layer, the number of directions of an LSTM, or what is pooled. A stock module with other unusual settings gets
    the ending `-other`, which no family has.
    """
    if isinstance(module, Dense):
        plain = module.module_input_name == module.module_output_name == "sentence_embedding"
        if not plain or not module.bias or module.use_residual:
            return "Dense-other"
        return f"Dense-{type(module.activation_function).__name__}"
    if isinstance(module, LSTM):
        if module.num_layers != 1 or module.dropout:
            return "LSTM-other"
        return f"LSTM-{1 + module.bidirectional}"
    if isinstance(module, Pooling):
        return f"{type(module).__name__}-{module.pooling_mode}"
    return type(module).__name__
