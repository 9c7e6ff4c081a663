"""Averaging encoders whose rows are stored in another precision."""

from __future__ import annotations

from torch import nn

from paranmt_hf.encoders.modules.average import PRECISIONS, AverageEmbedding
from paranmt_hf.encoders.modules.combination import Combination
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.errors import InputError


def with_precision(encoder: SentenceEncoder, precision: str) -> SentenceEncoder:
    """Make an averaging encoder that is stored in another precision.

    Args:
        encoder: WORD, TRIGRAM, Sent2Vec or a combination of the first two.
        precision: `float32`, `float16`, or `int8` with a scale for each row.

    Raises:
        InputError: It is another encoder, or there is no such precision.
    """
    composition = encoder.composition
    if composition is None or not composition.is_bag:
        raise InputError(
            "only averaging encoders (WORD, TRIGRAM, their combinations, Sent2Vec) are stored in other precisions"
        )
    if precision not in PRECISIONS:
        raise InputError(f"precision must be one of {', '.join(PRECISIONS)}, was {precision!r}")
    chains: list[list[nn.Module]] = []
    for part in composition.parts:
        table = part.modules[0]
        assert isinstance(table, AverageEmbedding)
        chains.append([table.stored_as(precision), *part.modules[1:]])
    parts = chains[0] if len(chains) == 1 else [Combination(chains, composition.mode)]
    return SentenceEncoder(modules=parts, device="cpu", similarity_fn_name="cosine")
