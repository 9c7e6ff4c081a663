"""The tokenizer of an encoder's units, made of components of the `tokenizers` library alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tokenizers import Tokenizer

from paranmt_hf.encoders.composition import Part
from paranmt_hf.encoders.export.trigram_tokenizer import trigram_tokenizer
from paranmt_hf.encoders.modules.word import word_tokenizer

# From the units of the rows, the first of which is the unknown one.
TOKENIZERS: dict[str, Callable[[Sequence[str]], Tokenizer]] = {
    "word": lambda units: word_tokenizer(list(units)),
    "trigram": trigram_tokenizer,
}


def tokenizer_of(part: Part) -> Tokenizer:
    """Make the tokenizer whose ids are the rows of an encoder's table."""
    return TOKENIZERS[part.family.units](part.vocabulary.units)
