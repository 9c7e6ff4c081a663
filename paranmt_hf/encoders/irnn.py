"""Identity-RNN: an RNN without an activation that starts as the average of word embeddings.

PARAGRAM-PHRASE (Wieting et al. 2016, arXiv:1511.08198), section 3: W_x and W_h are identity matrices and b is zeros
before training, and the last state is divided by the number of words. Where it is regularised, these weights are
pulled towards their initial values. The module: `modules/recurrent.py`.
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
from paranmt_hf.encoders.modules.recurrent import IdentityRNN

# f(x) = alpha x + beta.
IDENTITY: dict[str, Any] = {"activations": ["Affine"], "activation_alpha": [1.0], "activation_beta": [0.0]}


def build(units: list[str], weight: np.ndarray, config: Any, family: Family) -> list[nn.Module]:  # noqa: ANN401
    """Make the modules; see `families.FamilyCode`."""
    return [word_sequence(units, weight), IdentityRNN(weight.shape[1])]


def recognise(modules: Sequence[nn.Module]) -> str | None:
    """Tell whether these are its modules."""
    return "irnn" if is_chain(modules, IdentityRNN) else None


def add_to_graph(graph: Graph, modules: Sequence[nn.Module], ids: str, mask: str) -> str:
    """Run it over each sentence and divide by the number of words; see `families.FamilyCode`."""
    words, module = modules
    assert isinstance(module, IdentityRNN)
    weights = [weight.numpy() for weight in weights_of(module)]
    return graph.node("Div", *add_last_state(graph, "RNN", words, weights, ids, mask, **IDENTITY))
