"""What the files of the recurrent families share whose sentence vector is the last state: `rnn`, `irnn`, `plstm`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from sentence_transformers.sentence_transformer.modules import WordEmbeddings
from torch import nn

from paranmt_hf.encoders.graph import Graph, add_count
from paranmt_hf.encoders.modules.recurrent import Recurrence


def is_chain(modules: Sequence[nn.Module], kind: type[Recurrence]) -> bool:
    """Tell whether modules are words in order and a recurrence of a kind."""
    return len(modules) == 2 and isinstance(modules[0], WordEmbeddings) and type(modules[1]) is kind


def weights_of(module: Recurrence) -> list[torch.Tensor]:
    """Weights of the words, of the state, and the bias; float32, a row or a number for each gate and dimension."""
    return [weight.detach().cpu().float() for weight in (module.input.weight, module.state.weight, module.input.bias)]


def add_last_state(
    graph: Graph,
    operator: str,
    table: nn.Module,
    weights: Sequence[np.ndarray],
    ids: str,
    mask: str,
    **attributes: object,
) -> tuple[str, str]:
    """Read the words of each sentence one after the other, with an operator of ONNX.

    Args:
        graph: A graph under construction.
        operator: `RNN` or `LSTM`.
        table: The words' module.
        weights: W and R [gates x width, ...], the bias of the words [gates x width], gates in the order of ONNX, and
            of an LSTM P [3 x width].
        ids: Name of the rows [batch, length].
        mask: Name of the mask [batch, length].
        attributes: Those of the operator beside the width.

    Returns:
        Names of the last state [batch, width], zeros for a sentence without words, and of the number of words, at
        least one [batch, 1].
    """
    assert isinstance(table, WordEmbeddings)
    known = graph.cast(mask, "FLOAT")
    count = add_count(graph, known)
    rows = graph.weight(table.emb_layer.weight.detach().cpu().float().numpy())
    tokens = graph.node("Transpose", graph.node("Gather", rows, ids), perm=[1, 0, 2])
    words, states, bias, *peepholes = weights
    given = [graph.weight(values[None]) for values in (words, states, np.concatenate([bias, np.zeros_like(bias)]))]
    given.append(graph.node("Squeeze", graph.cast(count, "INT32"), graph.weight([1])))
    for values in peepholes:
        # Between them, the first hidden state and the first cell, which are zeros.
        given += ["", "", graph.weight(values[None])]
    last = graph.node(operator, tokens, *given, output=1, hidden_size=states.shape[1], **attributes)
    some = graph.node("ReduceMax", known, axes=[1], keepdims=1)
    return graph.node("Mul", graph.node("Squeeze", last, graph.weight([0])), some), count
