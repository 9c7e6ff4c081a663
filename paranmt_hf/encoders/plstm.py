"""LSTM with peepholes (Gers et al. 2002), with or without its output gate, the last state.

PARAGRAM-PHRASE (Wieting et al. 2016, arXiv:1511.08198), section 3. The module: `modules/recurrent.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from paranmt_hf.encoders.families import Family
from paranmt_hf.encoders.graph import Graph
from paranmt_hf.encoders.last_state import add_last_state, is_chain, weights_of
from paranmt_hf.encoders.modules.lstm import word_sequence
from paranmt_hf.encoders.modules.recurrent import PeepholeLSTM

# The logistic function of this is 1 in 32 bits.
OPEN = 100.0


def build(units: list[str], weight: np.ndarray, config: Any, family: Family) -> list[nn.Module]:  # noqa: ANN401
    """Make the modules; see `families.FamilyCode`."""
    module = PeepholeLSTM(weight.shape[1], config.dimension, config.output_gate == "with")
    return [word_sequence(units, weight), module]


def recognise(modules: Sequence[nn.Module]) -> str | None:
    """Tell whether these are its modules."""
    return "plstm" if is_chain(modules, PeepholeLSTM) else None


def add_to_graph(graph: Graph, modules: Sequence[nn.Module], ids: str, mask: str) -> str:
    """Run it over each sentence, without an output gate with one that is always open; see `families.FamilyCode`."""
    words, module = modules
    assert isinstance(module, PeepholeLSTM)
    weights = []
    for stored, closed in zip(weights_of(module), (0.0, 0.0, OPEN), strict=True):
        enter, forget, new, *leave = stored.split(module.out_features)
        leave = leave or [torch.full_like(enter, closed)]
        # The order of ONNX: input, output, forget, cell.
        weights.append(torch.cat([enter, *leave, forget, new]).numpy())
    enter, forget, *leave = module.peepholes.detach().cpu().float()
    peepholes = torch.cat([enter, *(leave or [torch.zeros_like(enter)]), forget]).numpy()
    return add_last_state(graph, "LSTM", words, [*weights, peepholes], ids, mask)[0]
