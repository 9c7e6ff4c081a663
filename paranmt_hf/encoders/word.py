"""WORD: average of word embeddings. ParaNMT-50M (Wieting & Gimpel 2018), section 4; the module: `modules/word.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import nn

from paranmt_hf.encoders.families import Family
from paranmt_hf.encoders.graph import add_average
from paranmt_hf.encoders.modules.word import WordEmbedding

add_to_graph = add_average


def build(units: list[str], weight: np.ndarray, config: Any, family: Family) -> list[nn.Module]:  # noqa: ANN401
    """Make the module; see `families.FamilyCode`."""
    return [WordEmbedding(units, weight)]


def recognise(modules: Sequence[nn.Module]) -> str | None:
    """Tell whether these are its modules."""
    return "word" if len(modules) == 1 and isinstance(modules[0], WordEmbedding) else None
