"""Encoders as ONNX graphs, from token ids and an attention mask to sentence vectors.

The graph holds the rows of a table in the precision in which they are stored, and converts those that are read to
float32. Protobuf messages end at 2 GB; larger weights are in a file next to the graph.
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
STATES = "last_hidden_state"  # Output that the pipeline of transformers.js pools over
# A protobuf message ends at 2**31 bytes; this leaves room for everything in it besides the weights.
LARGEST_GRAPH = 2**31 - 2**20
# Names of activations in ONNX, by the class of the layer or the setting of the RNN.
ACTIVATIONS = {nn.Tanh: "Tanh", nn.ReLU: "Relu", "tanh": "Tanh", "relu": "Relu"}
Shape = list[str | int]


class Graph:
    """A graph under construction: collects nodes and weights, and gives each result a unique name."""

    def __init__(self) -> None:
        self.onnx: Any = require("onnx", "onnx")
        self.nodes: list[Any] = []
        self.weights: dict[str, np.ndarray] = {}

    def weight(self, values: np.ndarray | torch.Tensor | Sequence[int] | Sequence[float]) -> str:
        """Add a constant to the graph, tensors as float32, and return its name."""
        if isinstance(values, torch.Tensor):
            values = values.detach().cpu().float().numpy()
        name = f"weight_{len(self.weights)}"
        self.weights[name] = np.ascontiguousarray(values)
        return name

    def node(self, operator: str, *inputs: str, output: int = 0, **attributes: object) -> str:
        """Add an operation to the graph, and return the name of its result.

        Args:
            operator: Operator of ONNX, such as `Gather`.
            inputs: Names of its inputs.
            output: Index of the result that is used, if the operator gives several.
            attributes: Attributes of the operator.
        """
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [""] * output + [name], **attributes))
        return name

    def output(self, name: str, value: str) -> None:
        """Make the result `value` the output of the graph with this name."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))

    def cast(self, value: str, kind: str) -> str:
        """Convert `value` to an element type of ONNX, such as `FLOAT`, and return the name of the result."""
        return self.node("Cast", value, to=getattr(self.onnx.TensorProto, kind))

    def save(
        self, path: Path, inputs: dict[str, Shape], outputs: dict[str, Shape], weights_file: str, largest: int
    ) -> None:
        """Write the graph as a model.

        Args:
            path: The file.
            inputs: Shape of each input, all of which are integers, by its name.
            outputs: Shape of each output, all of which are float32, by its name.
            weights_file: Name of a file next to the graph for large weights.
            largest: Maximum number of bytes of all weights in the graph itself; if they take more, `weights_file` is
                written.
        """
        helper, types = self.onnx.helper, self.onnx.TensorProto
        whole = helper.make_graph(
            self.nodes,
            "sentence_encoder",
            [helper.make_tensor_value_info(name, types.INT64, shape) for name, shape in inputs.items()],
            [helper.make_tensor_value_info(name, types.FLOAT, shape) for name, shape in outputs.items()],
            [self.onnx.numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        # Opset 17 and version 8 of the format are of 2022, so that older runtimes read them too.
        opset = helper.make_opsetid("", 17)
        model = helper.make_model(whole, producer_name="paranmt_hf", opset_imports=[opset], ir_version=8)
        self.onnx.save_model(
            model,
            str(path),
            save_as_external_data=sum(array.nbytes for array in self.weights.values()) > largest,
            location=weights_file,
            # Smaller weights always stay in the graph, because shapes are inferred from some of them.
            size_threshold=1024,
        )
        self.onnx.checker.check_model(str(path), full_check=True)


def add_mean(graph: Graph, values: str, shares: str, mask: str) -> str:
    """Add a weighted sum over the length, divided by the number of units, and return its name [batch, dimension].

    Args:
        graph: The graph.
        values: Name of the vectors [batch, length, dimension].
        shares: Name of their weights [batch, length].
        mask: Name of the attention mask [batch, length], float32.
    """
    one = graph.weight([1])
    summed = graph.node("Squeeze", graph.node("MatMul", graph.node("Unsqueeze", shares, one), values), one)
    return graph.node("Div", summed, add_count(graph, mask))


def add_count(graph: Graph, mask: str) -> str:
    """Add the number of units of each sentence, at least one, from a float mask; return its name [batch, 1]."""
    counted = graph.node("ReduceSum", mask, graph.weight([1]), keepdims=1)
    return graph.node("Max", counted, graph.weight(np.ones(1, np.float32)))


def add_average(graph: Graph, modules: Sequence[nn.Module], ids: str, mask: str) -> str:
    """Add the mean of the rows of each sentence's units, and return its name [batch, dimension].

    The table keeps the precision in which it is stored. `modules` are those of a part; see `ADDED_BY` for the others.
    """
    module = modules[0]
    assert isinstance(module, AverageEmbedding)
    stored = store(module.weight.cpu().numpy(), module.precision)
    # ONNX graphs of this version have no integers of 4 bits.
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
    """Look up the vectors of words; return their name [length, batch, dimension], as recurrent operators read them."""
    return graph.node("Transpose", graph.node("Gather", graph.weight(words.emb_layer.weight), ids), perm=[1, 0, 2])


def add_layers(graph: Graph, part: Part, ids: str, mask: str) -> str:
    """Add the average of the rows of a table, and the layers behind it; arguments and result as in `ADDED_BY`."""
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
    """Add an LSTM over each sentence, and the pooling of its states; arguments and result as in `ADDED_BY`."""
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
    is_word = graph.node("Unsqueeze", graph.cast(mask, "BOOL"), graph.weight([2]))
    lowest = graph.weight(np.array(np.finfo(np.float32).min))
    highest = graph.node("ReduceMax", graph.node("Where", is_word, states, lowest), axes=[1], keepdims=0)
    some = graph.cast(graph.node("ReduceMax", mask, axes=[1], keepdims=1), "BOOL")
    return graph.node("Where", some, highest, graph.weight(np.zeros(1, np.float32)))


def _states(graph: Graph, words: WordEmbeddings, lstm: LSTM, ids: str, counts: str) -> str:
    """Add an LSTM, and return the name of its hidden states [batch, length, direction, width].

    Args:
        graph: The graph.
        words: Module with the vectors of words.
        lstm: The LSTM.
        ids: Name of the row of each word [batch, length].
        counts: Name of the number of words of each sentence [batch, 1].
    """
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
    """Read a weight of each direction of an LSTM, with its gates in the order of ONNX: input, output, forget, cell.

    Args:
        encoder: The LSTM.
        name: Name of the weight, without the suffix of a direction.
        sides: Suffix of each direction.
    """
    both = []
    for side in sides:
        enter, forget, cell, leave = getattr(encoder, name + side).detach().cpu().float().chunk(4)
        both.append(torch.cat([enter, leave, forget, cell]))
    return torch.stack(both).numpy()


def add_last_state(graph: Graph, part: Part, ids: str, mask: str) -> str:
    """Add an RNN, identity-RNN or LSTM with peepholes over each sentence; arguments and result as in `ADDED_BY`."""
    words, module = part.modules
    assert isinstance(words, WordEmbeddings) and isinstance(module, Recurrence)
    known = graph.cast(mask, "FLOAT")
    count = add_count(graph, known)
    tokens = add_words(graph, words, ids)
    inner, states, bias, *peepholes = _recurrent_weights(module)
    inputs = [graph.weight(values[None]) for values in (inner, states, np.concatenate([bias, np.zeros_like(bias)]))]
    inputs.append(graph.node("Squeeze", graph.cast(count, "INT32"), graph.weight([1])))
    attributes: dict[str, Any] = {}
    for values in peepholes:
        # The two empty inputs are the initial hidden state and the initial cell, zeros by default.
        inputs += ["", "", graph.weight(values[None])]
    if isinstance(module, LastStateRNN):
        attributes = {"activations": [ACTIVATIONS[module.activation]]}
    elif not peepholes:
        # Affine is f(x) = alpha x + beta, here the identity.
        attributes = {"activations": ["Affine"], "activation_alpha": [1.0], "activation_beta": [0.0]}
    operator = "LSTM" if peepholes else "RNN"
    last = graph.node(operator, tokens, *inputs, output=1, hidden_size=module.out_features, **attributes)
    # 0 for a sentence without words, whose vector becomes zeros; otherwise 1.
    some = graph.node("ReduceMax", known, axes=[1], keepdims=1)
    vectors = graph.node("Mul", graph.node("Squeeze", last, graph.weight([0])), some)
    if peepholes or isinstance(module, LastStateRNN):
        return vectors
    return graph.node("Div", vectors, count)


def _recurrent_weights(module: Recurrence) -> list[np.ndarray]:
    """Read the weights of the words and of the state, the bias, and the peepholes if there are any.

    Gates and peepholes are in the order of ONNX: input, output, forget, cell.
    """
    stored = [
        weight.detach().cpu().float() for weight in (module.input.weight, module.state.weight, module.input.bias)
    ]
    if not isinstance(module, PeepholeLSTM):
        return [weight.numpy() for weight in stored]
    weights = []
    for gates, closed in zip(stored, (0.0, 0.0, 100.0), strict=True):
        enter, forget, new, *leave = gates.split(module.out_features)
        # ONNX requires an output gate. Where the module has none, its weights are zeros and its bias is 100: the gate
        # is always open, because the logistic function of 100 is 1 in 32 bits.
        leave = leave or [torch.full_like(enter, closed)]
        weights.append(torch.cat([enter, *leave, forget, new]).numpy())
    enter, forget, *leave = module.peepholes.detach().cpu().float()
    return [*weights, torch.cat([enter, *(leave or [torch.zeros_like(enter)]), forget]).numpy()]


# Function that adds a part of each family to a graph. Its arguments are the graph, the part, the name of the row of
# each unit, and the name of the attention mask, both [batch, length]. It returns the name of the sentence vectors
# [batch, dimension]. A family that is missing here is not exported.
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
    """Return the suffix of each part's inputs: `_0`, `_1`, ... in a combination, and an empty one for a part alone."""
    return [f"_{index}" for index in range(parts)] if parts > 1 else [""]


def write_graph(
    composition: Composition, folder: Path, weights_file: str, *, leading: int = 0, largest: int = LARGEST_GRAPH
) -> None:
    """Write an encoder as a graph with the inputs `input_ids` and `attention_mask` [batch, length] of each part.

    Its output is `sentence_embedding` [batch, dimension]. If sentences begin with ids that are not units, and the
    encoder is no combination, there is another one: `last_hidden_state` [batch, length, dimension], which holds the
    sentence vector at every position.

    Args:
        composition: The parts of the encoder.
        folder: Folder that gets the graph.
        weights_file: Name of a file next to the graph for large weights.
        leading: Number of ids at the beginning of each sentence that are not units.
        largest: Maximum number of bytes of weights in the graph; more go into `weights_file`.
    """
    graph = Graph()
    inputs: dict[str, Shape] = {}
    vectors = []
    for suffix, part in zip(suffixes(len(composition.parts)), composition.parts, strict=True):
        names = (f"input_ids{suffix}", f"attention_mask{suffix}")
        # Drop the leading ids, and add a column of padding: a batch of sentences without units would be empty.
        pads = graph.weight([0, -leading, 0, 1])
        ids, mask = (graph.node("Pad", name, pads) for name in names)
        vectors.append(ADDED_BY[part.family.name](graph, part, ids, mask))
        # Parts of a combination split a text into different numbers of units, so each has a length of its own.
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
