"""Sent2Vec: average of the embeddings of words and word n-grams. Pagliardini, Gupta and Jaggi (2018), section 2.

The module: `modules/ngram.py`; what an n-gram's bucket is: `ngrams.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import nn

from paranmt_hf.encoders.families import Family
from paranmt_hf.encoders.graph import Graph
from paranmt_hf.encoders.modules.ngram import NgramEmbedding
from paranmt_hf.errors import InputError


def build(units: list[str], weight: np.ndarray, config: Any, family: Family) -> list[nn.Module]:  # noqa: ANN401
    """Make the module; see `families.FamilyCode`. The configuration is an `NgramTable`."""
    return [NgramEmbedding(units, weight, order=config.order, buckets=config.buckets, hashes=config.hashes)]


def recognise(modules: Sequence[nn.Module]) -> str | None:
    """Tell whether these are its modules."""
    return "sent2vec" if len(modules) == 1 and isinstance(modules[0], NgramEmbedding) else None


def add_to_graph(graph: Graph, modules: Sequence[nn.Module], ids: str, mask: str) -> str:
    """Refuse to be a graph: no tokenizer of another library gives the ids of n-grams, which are hashed.

    Raises:
        InputError: Always.
    """
    raise InputError(
        "Sent2Vec cannot be exported as a graph: no tokenizer of another library hashes word n-grams; load it with "
        "sentence-transformers"
    )
