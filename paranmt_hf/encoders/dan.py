"""DAN: one or two layers with an activation over the average of word embeddings.

PARAGRAM-PHRASE (Wieting et al. 2016, arXiv:1511.08198), section 3, after Iyyer et al. 2015: each layer is f(W v + b).
Its modules are stock ones when they are saved: `StaticEmbedding` and a `Dense` for each layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sentence_transformers.base.modules import Dense
from torch import nn

from paranmt_hf.encoders.families import Family
from paranmt_hf.encoders.graph import Graph, add_average, add_linear
from paranmt_hf.encoders.modules.word import WordEmbedding
from paranmt_hf.encoders.projection import is_plain

ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}
# Their names in a graph.
OPERATORS = {nn.Tanh: "Tanh", nn.ReLU: "Relu"}


def build(units: list[str], weight: np.ndarray, config: Any, family: Family) -> list[nn.Module]:  # noqa: ANN401
    """Make the modules; see `families.FamilyCode`."""
    widths = [weight.shape[1], *[config.dimension] * config.layers]
    layers = [
        Dense(width, after, activation_function=ACTIVATIONS[config.activation]())
        for width, after in zip(widths, widths[1:], strict=False)
    ]
    return [WordEmbedding(units, weight), *layers]


def recognise(modules: Sequence[nn.Module]) -> str | None:
    """Tell whether these are its modules."""
    if not 2 <= len(modules) <= 3 or not isinstance(modules[0], WordEmbedding):
        return None
    return "dan" if all(is_plain(layer, *OPERATORS) for layer in modules[1:]) else None


def add_to_graph(graph: Graph, modules: Sequence[nn.Module], ids: str, mask: str) -> str:
    """Add average and layers to a graph; see `families.FamilyCode`."""
    vectors = add_average(graph, modules, ids, mask)
    for layer in modules[1:]:
        assert isinstance(layer, Dense)
        vectors = graph.node(OPERATORS[type(layer.activation_function)], add_linear(graph, layer.linear, vectors))
    return vectors
