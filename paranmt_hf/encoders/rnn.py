"""RNN: h_t = f(W_x x_t + W_h h_(t-1) + b), the last state.

PARAGRAM-PHRASE (Wieting et al. 2016, arXiv:1511.08198), section 3. The module: `modules/recurrent.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import nn

from paranmt_hf.encoders.families import Family
from paranmt_hf.encoders.graph import Graph
from paranmt_hf.encoders.last_state import add_last_state, is_chain, weights_of
from paranmt_hf.encoders.modules.lstm import word_sequence
from paranmt_hf.encoders.modules.recurrent import LastStateRNN

# Their names in a graph.
OPERATORS = {"tanh": "Tanh", "relu": "Relu"}


def build(units: list[str], weight: np.ndarray, config: Any, family: Family) -> list[nn.Module]:  # noqa: ANN401
    """Make the modules; see `families.FamilyCode`."""
    return [word_sequence(units, weight), LastStateRNN(weight.shape[1], config.dimension, config.activation)]


def recognise(modules: Sequence[nn.Module]) -> str | None:
    """Tell whether these are its modules."""
    return "rnn" if is_chain(modules, LastStateRNN) else None


def add_to_graph(graph: Graph, modules: Sequence[nn.Module], ids: str, mask: str) -> str:
    """Run it over each sentence; see `families.FamilyCode`."""
    words, module = modules
    assert isinstance(module, LastStateRNN)
    weights = [weight.numpy() for weight in weights_of(module)]
    return add_last_state(graph, "RNN", words, weights, ids, mask, activations=[OPERATORS[module.activation]])[0]
