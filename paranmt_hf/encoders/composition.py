"""Taking an encoder apart: which families' encoders it is made of, and how they are combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sentence_transformers.sentence_transformer.modules import WordEmbeddings
from torch import nn

from paranmt_hf.encoders.families import FAMILIES, Family, title_of
from paranmt_hf.encoders.modules.average import AverageEmbedding
from paranmt_hf.encoders.modules.combination import Combination
from paranmt_hf.encoders.modules.ngram import NgramEmbedding
from paranmt_hf.encoders.vocabulary import Vocabulary
from paranmt_hf.errors import InputError
from paranmt_hf.text.definitions import vocabulary_of


@dataclass(frozen=True)
class Part:
    """One of the encoders that are combined.

    Attributes:
        family: What is known of its kind.
        modules: Its modules; the first one holds the table.
    """

    family: Family
    modules: list[nn.Module]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The unit of each row of its table.

        Raises:
            InputError: Its text is cut by a tokenizer that is not of this package.
        """
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
        """Name of what looks up its rows; encoders over the same vocabulary share one."""
        return self.family.units

    @property
    def cuts_words(self) -> bool:
        """Whether its words are those of `text.py`; else text is cut at white space alone."""
        first = self.modules[0]
        return not isinstance(first, NgramEmbedding) or first.cut == "words"

    @property
    def is_bag(self) -> bool:
        """Whether it reads a sentence as a bag of units, whose rows are averaged; else it reads a sequence."""
        return isinstance(self.modules[0], AverageEmbedding)

    @property
    def table(self) -> nn.Embedding | nn.EmbeddingBag:
        """Its embeddings."""
        first = self.modules[0]
        return first.embedding if isinstance(first, AverageEmbedding) else first.emb_layer  # type: ignore[return-value]

    @property
    def weights(self) -> list[nn.Parameter]:
        """Its weights beside the embeddings: the compositional parameters."""
        return [weight for module in self.modules for weight in module.parameters() if weight is not self.table.weight]

    @property
    def dimension(self) -> int:
        """Dimensions of its sentence vector."""
        return self.modules[-1].get_embedding_dimension()  # type: ignore[operator]


@dataclass(frozen=True)
class Composition:
    """An encoder of ours, taken apart.

    Attributes:
        parts: The encoders that are combined; of a single one itself.
        mode: How: `add` or `concatenate`.
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
        """Dimensions of a sentence vector."""
        widths = [part.dimension for part in self.parts]
        return widths[0] if self.mode == "add" else sum(widths)

    @property
    def is_bag(self) -> bool:
        """Whether all parts average the rows of a sentence's units."""
        return all(part.is_bag for part in self.parts)

    @property
    def cuts_words(self) -> bool:
        """Whether the words of all parts are those of `text.py`."""
        return all(part.cuts_words for part in self.parts)

    @property
    def cuts_alike(self) -> bool:
        """Whether all parts cut text in one way, so that it can be cut once for all of them."""
        return len({part.cuts_words for part in self.parts}) == 1

    @property
    def only_tables(self) -> bool:
        """Whether there are no weights beside the tables of averages."""
        return self.is_bag and not any(part.family.dense for part in self.parts)


def composition_of(modules: Sequence[nn.Module]) -> Composition | None:
    """Take an encoder apart.

    Args:
        modules: The modules of a `SentenceTransformer`, in order.

    Returns:
        None where it is not one of this package's encoders.
    """
    chains, mode = [list(modules)], "concatenate"
    if len(modules) == 1 and isinstance(modules[0], Combination):
        chains, mode = [list(part.children()) for part in modules[0].parts], modules[0].mode
    families = [family_of(chain) for chain in chains]
    if None in families:
        return None
    return Composition([Part(family, chain) for family, chain in zip(families, chains, strict=True) if family], mode)


def family_of(modules: Sequence[nn.Module]) -> Family | None:
    """Find the family of one encoder's modules; None where they are not one of this package's encoders."""
    for family in FAMILIES.values():
        if (name := family.load_code().recognise(modules)) is not None:
            return FAMILIES[name]
    return None


def take_apart(modules: Sequence[nn.Module]) -> Composition:
    """Take an encoder apart; see `composition_of`.

    Raises:
        InputError: It is not one of this package's encoders.
    """
    composition = composition_of(modules)
    if composition is None:
        classes = ", ".join(type(module).__name__ for module in modules)
        titles = ", ".join(family.title for family in FAMILIES.values())
        raise InputError(f"expected an encoder of this package ({titles}, or a combination), found {classes}")
    return composition
