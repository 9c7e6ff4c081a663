"""Projection: a linear layer over the average of word embeddings.

PARAGRAM-PHRASE (Wieting et al. 2016, arXiv:1511.08198), section 3, equation 3: W_p times the average, plus a bias,
without an activation. Its modules are stock ones when they are saved: `StaticEmbedding` and `Dense`.
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


def build(units: list[str], weight: np.ndarray, config: Any, family: Family) -> list[nn.Module]:  # noqa: ANN401
    """Make the modules; see `families.FamilyCode`."""
    return [WordEmbedding(units, weight), Dense(weight.shape[1], config.dimension, activation_function=nn.Identity())]


def recognise(modules: Sequence[nn.Module]) -> str | None:
    """Tell whether these are its modules."""
    if len(modules) != 2 or not isinstance(modules[0], WordEmbedding) or not is_plain(modules[1], nn.Identity):
        return None
    return "projection"


def is_plain(layer: nn.Module, *activations: type[nn.Module]) -> bool:
    """Tell whether a module is a layer with a bias over the sentence vector, with one of some activations."""
    return (
        isinstance(layer, Dense)
        and isinstance(layer.activation_function, activations)
        and bool(layer.bias)
        and not layer.use_residual
        and layer.module_input_name == layer.module_output_name == "sentence_embedding"
    )


def add_to_graph(graph: Graph, modules: Sequence[nn.Module], ids: str, mask: str) -> str:
    """Add average and linear layer to a graph; see `families.FamilyCode`."""
    layer = modules[1]
    assert isinstance(layer, Dense)
    return add_linear(graph, layer.linear, add_average(graph, modules, ids, mask))
