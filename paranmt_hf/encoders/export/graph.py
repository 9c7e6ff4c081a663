"""Our encoders as ONNX graphs: token ids and attention mask in, sentence vectors out.

Rows keep the precision they are stored in and become float32 where they are read. Weights of more than protobuf's
2 GB are in a file next to the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling, WordEmbeddings
from torch import nn

from paranmt_hf.encoders.composition import Composition, Part
from paranmt_hf.encoders.modules.paranmt_averages import AverageEmbedding
from paranmt_hf.encoders.modules.paranmt_recurrent import AverageDirections, LastStateRNN, PeepholeLSTM, Recurrence
from paranmt_hf.encoders.modules.paranmt_tables import SCALE, WEIGHT, store, unpack
from paranmt_hf.util.optional import require

GRAPH_FILE = "model.onnx"
OUTPUT = "sentence_embedding"
STATES = "last_hidden_state"  # What the pipeline of transformers.js pools over
# A protobuf message ends at 2**31 bytes; this leaves room for what is next to the weights.
LARGEST_GRAPH = 2**31 - 2**20
# The names of activations in a graph.
ACTIVATIONS = {nn.Tanh: "Tanh", nn.ReLU: "Relu", "tanh": "Tanh", "relu": "Relu"}
Shape = list[str | int]


class Graph:
    """Collects the nodes and weights of a graph; each result gets a unique name."""

    def __init__(self) -> None:
        self.onnx: Any = require("onnx", "onnx")
        self.nodes: list[Any] = []
        self.weights: dict[str, np.ndarray] = {}

    def weight(self, values: np.ndarray | torch.Tensor | Sequence[int] | Sequence[float]) -> str:
        """Add a constant, tensors as float32, and return its name."""
        if isinstance(values, torch.Tensor):
            values = values.detach().cpu().float().numpy()
        name = f"weight_{len(self.weights)}"
        self.weights[name] = np.ascontiguousarray(values)
        return name

    def node(self, operator: str, *inputs: str, output: int = 0, **attributes: object) -> str:
        """Add an operation and return the name of its result; `output` is the index of one of several."""
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [""] * output + [name], **attributes))
        return name

    def output(self, name: str, value: str) -> None:
        """Give a result the name of an output."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))

    def cast(self, value: str, kind: str) -> str:
        """Convert to an element type of ONNX, such as `FLOAT`."""
        return self.node("Cast", value, to=getattr(self.onnx.TensorProto, kind))

    def save(
        self, path: Path, inputs: dict[str, Shape], outputs: dict[str, Shape], weights_file: str, largest: int
    ) -> None:
        """Write the graph with ids as inputs; weights of more than `largest` bytes go into a file next to it."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        whole = helper.make_graph(
            self.nodes,
            "sentence_encoder",
            [helper.make_tensor_value_info(name, types.INT64, shape) for name, shape in inputs.items()],
            [helper.make_tensor_value_info(name, types.FLOAT, shape) for name, shape in outputs.items()],
            [self.onnx.numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        # Versions that every runtime of the last years reads.
        opset = helper.make_opsetid("", 17)
        model = helper.make_model(whole, producer_name="paranmt_hf", opset_imports=[opset], ir_version=8)
        self.onnx.save_model(
            model,
            str(path),
            save_as_external_data=sum(array.nbytes for array in self.weights.values()) > largest,
            location=weights_file,
            # Weights of fewer bytes stay in the graph, where shapes are inferred from them.
            size_threshold=1024,
        )
        self.onnx.checker.check_model(str(path), full_check=True)


def add_mean(graph: Graph, values: str, shares: str, mask: str) -> str:
    """Sum values [batch, length, dimension] weighted by shares [batch, length], divided by the number of units."""
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
    stored = store(module.weight.cpu().numpy(), module.precision)
    # Graphs know no integers of 4 bits.
    numbers = unpack(stored[WEIGHT]) if stored[WEIGHT].dtype == np.uint8 else stored[WEIGHT]
    rows = graph.node("Gather", graph.weight(numbers), ids)
    if numbers.dtype != np.float32:
        rows = graph.cast(rows, "FLOAT")
    known = graph.cast(mask, "FLOAT")
    shares = known
    if SCALE in stored:
        shares = graph.node("Mul", known, graph.node("Gather", graph.weight(stored[SCALE]), ids))
    return add_mean(graph, rows, shares, known)


def add_words(graph: Graph, words: WordEmbeddings, ids: str) -> str:
    """Look up the vectors of words in order, as recurrent operators read them: [length, batch, dimension]."""
    return graph.node("Transpose", graph.node("Gather", graph.weight(words.emb_layer.weight), ids), perm=[1, 0, 2])


def add_layers(graph: Graph, part: Part, ids: str, mask: str) -> str:
    """Average the rows of a table, and apply the layers behind it; see `ADDED_BY`."""
    vectors = add_average(graph, part.modules, ids, mask)
    for layer in part.modules[1:]:
        assert isinstance(layer, Dense)
        weight, bias = graph.weight(layer.linear.weight), graph.weight(layer.linear.bias)
        # With transB it is x times the transposed matrix, as in torch.
        vectors = graph.node("Gemm", vectors, weight, bias, transB=1)
        if part.family.name == "dan":
            vectors = graph.node(ACTIVATIONS[type(layer.activation_function)], vectors)
    return vectors


def add_pooled_states(graph: Graph, part: Part, ids: str, mask: str) -> str:
    """Run an LSTM over each sentence and pool its states; see `ADDED_BY`."""
    words, lstm, *directions, pooling = part.modules
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
    hidden = graph.node(
        "LSTM",
        add_words(graph, words, ids),
        *(graph.weight(values) for values in (*inner, biases)),
        graph.node("Squeeze", counts, graph.weight([1])),
        hidden_size=encoder.hidden_size,
        direction="bidirectional" if encoder.bidirectional else "forward",
    )
    return graph.node("Transpose", hidden, perm=[2, 0, 1, 3])


def _gates(encoder: nn.LSTM, name: str, sides: Sequence[str]) -> np.ndarray:
    """Read a weight of each direction, with gates in the order of ONNX: input, output, forget, cell."""
    both = []
    for side in sides:
        first, forget, cell, last = getattr(encoder, name + side).detach().cpu().float().chunk(4)
        both.append(torch.cat([first, last, forget, cell]))
    return torch.stack(both).numpy()


def add_last_state(graph: Graph, part: Part, ids: str, mask: str) -> str:
    """Run an RNN, identity-RNN or LSTM with peepholes over each sentence; see `ADDED_BY`."""
    words, module = part.modules
    assert isinstance(words, WordEmbeddings) and isinstance(module, Recurrence)
    known = graph.cast(mask, "FLOAT")
    count = add_count(graph, known)
    tokens = add_words(graph, words, ids)
    inner, states, bias, *peepholes = _recurrent_weights(module)
    given = [graph.weight(values[None]) for values in (inner, states, np.concatenate([bias, np.zeros_like(bias)]))]
    given.append(graph.node("Squeeze", graph.cast(count, "INT32"), graph.weight([1])))
    attributes: dict[str, Any] = {}
    for values in peepholes:
        # Between them, the first hidden state and the first cell, which are zeros.
        given += ["", "", graph.weight(values[None])]
    if isinstance(module, LastStateRNN):
        attributes = {"activations": [ACTIVATIONS[module.activation]]}
    elif not peepholes:
        # f(x) = alpha x + beta as the identity.
        attributes = {"activations": ["Affine"], "activation_alpha": [1.0], "activation_beta": [0.0]}
    operator = "LSTM" if peepholes else "RNN"
    last = graph.node(operator, tokens, *given, output=1, hidden_size=module.out_features, **attributes)
    # Zeros for a sentence without words.
    some = graph.node("ReduceMax", known, axes=[1], keepdims=1)
    vectors = graph.node("Mul", graph.node("Squeeze", last, graph.weight([0])), some)
    if peepholes or isinstance(module, LastStateRNN):
        return vectors
    return graph.node("Div", vectors, count)


def _recurrent_weights(module: Recurrence) -> list[np.ndarray]:
    """Weights of the words and of the state, the bias, and peepholes if there are any; gates in the order of ONNX."""
    stored = [
        weight.detach().cpu().float() for weight in (module.input.weight, module.state.weight, module.input.bias)
    ]
    if not isinstance(module, PeepholeLSTM):
        return [weight.numpy() for weight in stored]
    weights = []
    for gates, closed in zip(stored, (0.0, 0.0, 100.0), strict=True):
        enter, forget, new, *leave = gates.split(module.out_features)
        # Without an output gate one that is always open: the logistic function of 100 is 1 in 32 bits. The order of
        # ONNX: input, output, forget, cell.
        leave = leave or [torch.full_like(enter, closed)]
        weights.append(torch.cat([enter, *leave, forget, new]).numpy())
    enter, forget, *leave = module.peepholes.detach().cpu().float()
    return [*weights, torch.cat([enter, *(leave or [torch.zeros_like(enter)]), forget]).numpy()]


# What adds an encoder of each family to a graph, given the names of its rows of units and of its mask, both [batch,
# length]; returns the name of the sentence vectors [batch, dimension]. A family that is missing here is not exported.
ADDED_BY: dict[str, Callable[[Graph, Part, str, str], str]] = {
    "word": add_layers,
    "trigram": add_layers,
    "projection": add_layers,
    "dan": add_layers,
    "lstm": add_pooled_states,
    "blstm": add_pooled_states,
    "rnn": add_last_state,
    "irnn": add_last_state,
    "plstm": add_last_state,
}


def suffixes(parts: int) -> list[str]:
    """Suffixes of the parts' input names: the index of the encoder in a combination."""
    return [f"_{index}" for index in range(parts)] if parts > 1 else [""]


def write_graph(
    composition: Composition, folder: Path, weights_file: str, *, leading: int = 0, largest: int = LARGEST_GRAPH
) -> None:
    """Write an encoder as a graph; weights of more than `largest` bytes go into `weights_file`.

    Its inputs are `input_ids` and `attention_mask` [batch, length] of each part, its output the sentence vectors
    `sentence_embedding` [batch, dimension]. If sentences begin with `leading` ids that are not units, there is also
    `last_hidden_state`, which holds the sentence vector at every place, unless the encoder is a combination.
    """
    graph = Graph()
    inputs: dict[str, Shape] = {}
    vectors = []
    for suffix, part in zip(suffixes(len(composition.parts)), composition.parts, strict=True):
        names = (f"input_ids{suffix}", f"attention_mask{suffix}")
        # One column of padding more, so that sentences without units make no empty sequence.
        more = graph.weight([0, -leading, 0, 1])
        ids, mask = (graph.node("Pad", name, more) for name in names)
        vectors.append(ADDED_BY[part.family.name](graph, part, ids, mask))
        # The encoders of a combination split a text into different numbers of units.
        inputs |= dict.fromkeys(names, ["batch", f"length{suffix}"])
    if composition.mode == "add":
        whole = graph.node("Sum", *vectors)
    else:
        whole = graph.node("Concat", *vectors, axis=1)
    width = composition.dimension
    outputs: dict[str, Shape] = {}
    if leading and len(vectors) == 1:
        length = graph.node("Slice", graph.node("Shape", "input_ids"), graph.weight([1]), graph.weight([2]))
        shape = graph.node("Concat", graph.weight([1]), length, graph.weight([1]), axis=0)
        graph.output(STATES, graph.node("Expand", graph.node("Unsqueeze", whole, graph.weight([1])), shape))
        outputs[STATES] = ["batch", "length", width]
    graph.output(OUTPUT, whole)
    outputs[OUTPUT] = ["batch", width]
    graph.save(folder / GRAPH_FILE, inputs, outputs, weights_file, largest)
