"""LSTM and BLSTM: average of hidden states. ParaNMT-50M (Wieting & Gimpel 2018), sections 4 and 5, table 14.

The modules that are not stock ones: `modules/lstm.py`. The LSTM is torch's, which has no peepholes; the paper's has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling, WordEmbeddings
from torch import nn

from paranmt_hf.encoders.families import Family
from paranmt_hf.encoders.graph import Graph, add_count, add_mean
from paranmt_hf.encoders.modules.lstm import AverageDirections, lstm_modules


def build(units: list[str], weight: np.ndarray, config: Any, family: Family) -> list[nn.Module]:  # noqa: ANN401
    """Make the modules; see `families.FamilyCode`."""
    return lstm_modules(
        units,
        weight,
        dimension=config.dimension,
        bidirectional=family.name == "blstm",
        average_directions=config.directions == "average",
        pooling=config.pooling,
    )


def recognise(modules: Sequence[nn.Module]) -> str | None:
    """Tell whether these are an LSTM's or a BLSTM's modules: words, LSTM of one layer, perhaps a mean, pooling."""
    if not 3 <= len(modules) <= 4:
        return None
    words, lstm, *directions, pooling = modules
    if not isinstance(words, WordEmbeddings) or not isinstance(lstm, LSTM) or lstm.num_layers != 1 or lstm.dropout:
        return None
    if not isinstance(pooling, Pooling) or pooling.pooling_mode not in ("mean", "max"):
        return None
    if not all(isinstance(module, AverageDirections) for module in directions):
        return None
    return "blstm" if lstm.bidirectional else "lstm"


def add_to_graph(graph: Graph, modules: Sequence[nn.Module], ids: str, mask: str) -> str:
    """Run an LSTM over each sentence and pool its states; see `families.FamilyCode`."""
    words, lstm, *directions, pooling = modules
    assert isinstance(words, WordEmbeddings) and isinstance(lstm, LSTM) and isinstance(pooling, Pooling)
    known = graph.cast(mask, "FLOAT")
    states = _states(graph, words, lstm, ids, graph.cast(add_count(graph, known), "INT32"))
    if directions:
        assert isinstance(directions[0], AverageDirections)
        states = graph.node("ReduceMean", states, axes=[2], keepdims=0)
    else:
        states = graph.node("Reshape", states, graph.weight([0, 0, -1]))
    if pooling.pooling_mode == "mean":
        return add_mean(graph, states, known, known)
    here = graph.node("Unsqueeze", graph.cast(mask, "BOOL"), graph.weight([2]))
    lowest = graph.weight(np.array(np.finfo(np.float32).min))
    highest = graph.node("ReduceMax", graph.node("Where", here, states, lowest), axes=[1], keepdims=0)
    some = graph.cast(graph.node("ReduceMax", mask, axes=[1], keepdims=1), "BOOL")
    return graph.node("Where", some, highest, graph.weight(np.zeros(1, np.float32)))


def _states(graph: Graph, words: WordEmbeddings, lstm: LSTM, ids: str, counts: str) -> str:
    """Hidden states [batch, length, direction, width]; `counts` [batch, 1] are the lengths of the sentences."""
    encoder = lstm.encoder
    sides = ["", "_reverse"][: 1 + encoder.bidirectional]
    inner = [_gates(encoder, "weight_ih_l0", sides), _gates(encoder, "weight_hh_l0", sides)]
    biases = np.concatenate([_gates(encoder, name, sides) for name in ("bias_ih_l0", "bias_hh_l0")], axis=1)
    table = graph.weight(words.emb_layer.weight.detach().cpu().float().numpy())
    tokens = graph.node("Transpose", graph.node("Gather", table, ids), perm=[1, 0, 2])
    hidden = graph.node(
        "LSTM",
        tokens,
        *(graph.weight(values) for values in (*inner, biases)),
        graph.node("Squeeze", counts, graph.weight([1])),
        hidden_size=encoder.hidden_size,
        direction="bidirectional" if encoder.bidirectional else "forward",
    )
    return graph.node("Transpose", hidden, perm=[2, 0, 1, 3])


def _gates(encoder: nn.LSTM, name: str, sides: Sequence[str]) -> np.ndarray:
    """Read a weight of each direction, its gates in the order of ONNX: input, output, forget, cell."""
    both = []
    for side in sides:
        first, forget, cell, last = getattr(encoder, name + side).detach().cpu().float().chunk(4)
        both.append(torch.cat([first, last, forget, cell]))
    return torch.stack(both).numpy()
