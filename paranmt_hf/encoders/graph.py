"""An ONNX graph under construction: nodes and weights, and the operations that several encoders share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import nn

from paranmt_hf.encoders.modules.average import AverageEmbedding, store
from paranmt_hf.util.optional import require


class Graph:
    """Collects the nodes and weights of a graph; each result gets a name of its own."""

    def __init__(self) -> None:
        self.onnx: Any = require("onnx", "onnx")
        self.nodes: list[Any] = []
        self.weights: dict[str, np.ndarray] = {}

    def weight(self, values: np.ndarray | Sequence[int] | Sequence[float]) -> str:
        """Add a constant and return its name."""
        name = f"weight_{len(self.weights)}"
        self.weights[name] = np.ascontiguousarray(values)
        return name

    def node(self, operator: str, *inputs: str, output: int = 0, **attributes: object) -> str:
        """Add an operation and return the name of its result: of several the one with this number."""
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [""] * output + [name], **attributes))
        return name

    def cast(self, value: str, kind: str) -> str:
        """Convert to an element type of ONNX, such as `FLOAT`."""
        return self.node("Cast", value, to=getattr(self.onnx.TensorProto, kind))


def add_mean(graph: Graph, values: str, shares: str, mask: str) -> str:
    """Add up values [batch, length, dimension] by shares [batch, length], over the number of units of the mask."""
    one = graph.weight([1])
    summed = graph.node("Squeeze", graph.node("MatMul", graph.node("Unsqueeze", shares, one), values), one)
    return graph.node("Div", summed, add_count(graph, mask))


def add_count(graph: Graph, mask: str) -> str:
    """Count the units of each sentence [batch, 1], at least one."""
    counted = graph.node("ReduceSum", mask, graph.weight([1]), keepdims=1)
    return graph.node("Max", counted, graph.weight(np.ones(1, np.float32)))


def add_average(graph: Graph, modules: Sequence[nn.Module], ids: str, mask: str) -> str:
    """Average the rows of a sentence's units: [batch, dimension]. Rows keep the precision they are stored in."""
    module = modules[0]
    assert isinstance(module, AverageEmbedding)
    stored = {name: values.numpy() for name, values in store(module.weight.cpu(), module.precision).items()}
    rows = graph.node("Gather", graph.weight(stored["embedding.weight"]), ids)
    if stored["embedding.weight"].dtype != np.float32:
        rows = graph.cast(rows, "FLOAT")
    known = graph.cast(mask, "FLOAT")
    shares = known
    if "embedding.scale" in stored:
        shares = graph.node("Mul", known, graph.node("Gather", graph.weight(stored["embedding.scale"]), ids))
    return add_mean(graph, rows, shares, known)


def add_linear(graph: Graph, layer: nn.Linear, vectors: str) -> str:
    """Multiply vectors [batch, dimension] by the weights of a linear layer and add its bias."""
    # `Gemm` with transB is x times the transposed matrix, as in torch.
    weight, bias = (graph.weight(values.detach().cpu().float().numpy()) for values in layer.parameters())
    return graph.node("Gemm", vectors, weight, bias, transB=1)
