"""An encoder as an ONNX graph: token ids and attention mask in, `sentence_embedding` out.

Rows keep the precision they are stored in and become float32 where they are read. Weights of more than protobuf's
2 GB lie in a file beside the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling, WordEmbeddings
from tokenizers import Tokenizer
from torch import nn

from paranmt_hf.encoders.modules.average import AverageEmbedding, store
from paranmt_hf.encoders.modules.lstm import AverageDirections
from paranmt_hf.encoders.modules.trigram import TrigramEmbedding
from paranmt_hf.encoders.modules.word import vocabulary_of, word_tokenizer
from paranmt_hf.errors import InputError
from paranmt_hf.export.trigram_tokenizer import trigram_tokenizer
from paranmt_hf.util.optional import available, require

GRAPH_FILE = "model.onnx"
WEIGHTS_FILE = "model.onnx.data"
OUTPUT = "sentence_embedding"
# Versions that every runtime of the last years reads.
OPSET, IR_VERSION = 17, 8
# A protobuf message ends at 2**31 bytes; this leaves room for what is beside the weights.
LIMIT = 2**31 - 2**20
# Weights of fewer bytes stay in the graph, where shapes are worked out from them.
SMALL = 1024
# Sentences that are run at once by `read_onnx`.
BATCH = 32
Encode = Callable[[list[str]], np.ndarray]


class _Graph:
    """Collects the nodes and weights of a graph; each result gets a name of its own."""

    def __init__(self) -> None:
        self._onnx = require("onnx", "onnx")
        self.nodes: list[Any] = []
        self.weights: dict[str, np.ndarray] = {}

    def weight(self, values: np.ndarray | Sequence[int] | Sequence[float]) -> str:
        """Add a constant and return its name."""
        name = f"weight_{len(self.weights)}"
        self.weights[name] = np.ascontiguousarray(values)
        return name

    def node(self, operator: str, *inputs: str, **attributes: object) -> str:
        """Add an operation and return the name of its result."""
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def cast(self, value: str, kind: str) -> str:
        """Convert to an element type of ONNX, such as `FLOAT`."""
        return self.node("Cast", value, to=getattr(self._onnx.TensorProto, kind))

    def save(self, folder: Path, inputs: Sequence[str], dimension: int) -> None:
        """Write the graph, whose last node gives the sentence vectors."""
        helper, types = self._onnx.helper, self._onnx.TensorProto
        self.nodes.append(helper.make_node("Identity", [self.nodes[-1].output[0]], [OUTPUT]))
        # Encoders that are combined cut a text into different numbers of units.
        shapes = {
            name: ["batch", name.replace("input_ids", "length").replace("attention_mask", "length")] for name in inputs
        }
        graph = helper.make_graph(
            self.nodes,
            "sentence_encoder",
            [helper.make_tensor_value_info(name, types.INT64, shapes[name]) for name in inputs],
            [helper.make_tensor_value_info(OUTPUT, types.FLOAT, ["batch", dimension])],
            self._stored(folder),
        )
        model = helper.make_model(
            graph,
            producer_name="paranmt_hf",
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        self._onnx.save_model(model, str(folder / GRAPH_FILE))
        self._onnx.checker.check_model(str(folder / GRAPH_FILE), full_check=True)

    def _stored(self, folder: Path) -> list[Any]:
        """Turn the weights into what the graph holds; what is too large for it goes into a file of the folder."""
        if sum(array.nbytes for array in self.weights.values()) <= LIMIT:
            return [self._onnx.numpy_helper.from_array(array, name) for name, array in self.weights.items()]
        stored = []
        with (folder / WEIGHTS_FILE).open("wb") as file:
            for name, array in self.weights.items():
                if array.nbytes < SMALL:
                    stored.append(self._onnx.numpy_helper.from_array(array, name))
                    continue
                place = {"location": WEIGHTS_FILE, "offset": file.tell(), "length": array.nbytes}
                file.write(array.data)
                stored.append(self._outside(name, array, place))
        return stored

    def _outside(self, name: str, array: np.ndarray, place: dict[str, object]) -> Any:  # noqa: ANN401
        """Make a weight that says where its values are."""
        tensor = self._onnx.TensorProto(name=name, dims=array.shape)
        tensor.data_type = self._onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        tensor.data_location = self._onnx.TensorProto.EXTERNAL
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
        return tensor


def write_onnx(parts: Sequence[Sequence[nn.Module]], mode: str, folder: Path) -> None:
    """Write the graph of an encoder and the tokenizer of each of its parts.

    Args:
        parts: The modules of each encoder that is combined.
        mode: `add` or `concatenate`.
        folder: Where to; must exist.
    """
    graph = _Graph()
    vectors, inputs, dimensions = [], [], []
    for number, modules in enumerate(parts):
        suffix = f"_{number}" if len(parts) > 1 else ""
        names = [f"input_ids{suffix}", f"attention_mask{suffix}"]
        # One column of padding more, so that sentences without units make no empty sequence.
        more = graph.weight([0, 0, 0, 1])
        ids, mask = (graph.node("Pad", name, more) for name in names)
        vectors.append((_average if isinstance(modules[0], AverageEmbedding) else _lstm)(graph, modules, ids, mask))
        inputs += names
        dimensions.append(modules[-1].get_embedding_dimension())  # type: ignore[operator]
        _tokenizer(modules[0]).save(str(folder / f"tokenizer{suffix}.json"))
    if mode == "add":
        graph.node("Sum", *vectors)
    else:
        graph.node("Concat", *vectors, axis=1)
    graph.save(folder, inputs, dimensions[0] if mode == "add" else sum(dimensions))


def _tokenizer(module: nn.Module) -> Tokenizer:
    """Make the tokenizer of an encoder's first module; it pads with row 0, which the mask hides."""
    if isinstance(module, AverageEmbedding):
        units = module.units
    else:
        assert isinstance(module, WordEmbeddings)
        units = vocabulary_of(module.tokenizer.tokenizer.backend_tokenizer) or []
    if not units:
        raise InputError("the encoder's words come from a tokenizer that is not of this package; export its own files")
    make = trigram_tokenizer if isinstance(module, TrigramEmbedding) else word_tokenizer
    tokenizer = make(units)
    tokenizer.enable_padding(pad_id=0, pad_token=units[0])
    return tokenizer


def _average(graph: _Graph, modules: Sequence[nn.Module], ids: str, mask: str) -> str:
    """Average the rows of a sentence's units: [batch, dimension]."""
    (module,) = modules
    assert isinstance(module, AverageEmbedding)
    stored = {name: values.numpy() for name, values in store(module.weight.cpu(), module.precision).items()}
    rows = graph.node("Gather", graph.weight(stored["embedding.weight"]), ids)
    if stored["embedding.weight"].dtype != np.float32:
        rows = graph.cast(rows, "FLOAT")
    known = graph.cast(mask, "FLOAT")
    shares = known
    if "embedding.scale" in stored:
        shares = graph.node("Mul", known, graph.node("Gather", graph.weight(stored["embedding.scale"]), ids))
    return _mean(graph, rows, shares, known)


def _mean(graph: _Graph, values: str, shares: str, mask: str) -> str:
    """Add up values [batch, length, dimension] by shares [batch, length], over the number of units of the mask."""
    one = graph.weight([1])
    summed = graph.node("Squeeze", graph.node("MatMul", graph.node("Unsqueeze", shares, one), values), one)
    return graph.node("Div", summed, _count(graph, mask))


def _count(graph: _Graph, mask: str) -> str:
    """Count the units of each sentence [batch, 1], at least one."""
    counted = graph.node("ReduceSum", mask, graph.weight([1]), keepdims=1)
    return graph.node("Max", counted, graph.weight(np.ones(1, np.float32)))


def _lstm(graph: _Graph, modules: Sequence[nn.Module], ids: str, mask: str) -> str:
    """Run an LSTM over each sentence and pool its states: [batch, dimension]."""
    words, lstm, *directions, pooling = modules
    assert isinstance(words, WordEmbeddings) and isinstance(lstm, LSTM) and isinstance(pooling, Pooling)
    known = graph.cast(mask, "FLOAT")
    states = _states(graph, words, lstm, ids, graph.cast(_count(graph, known), "INT32"))
    if directions:
        assert isinstance(directions[0], AverageDirections)
        states = graph.node("ReduceMean", states, axes=[2], keepdims=0)
    else:
        states = graph.node("Reshape", states, graph.weight([0, 0, -1]))
    if pooling.pooling_mode == "mean":
        return _mean(graph, states, known, known)
    here = graph.node("Unsqueeze", graph.cast(mask, "BOOL"), graph.weight([2]))
    lowest = graph.weight(np.array(np.finfo(np.float32).min))
    highest = graph.node("ReduceMax", graph.node("Where", here, states, lowest), axes=[1], keepdims=0)
    some = graph.cast(graph.node("ReduceMax", mask, axes=[1], keepdims=1), "BOOL")
    return graph.node("Where", some, highest, graph.weight(np.zeros(1, np.float32)))


def _states(graph: _Graph, words: WordEmbeddings, lstm: LSTM, ids: str, counts: str) -> str:
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


def read_onnx(folder: Path) -> Encode | None:
    """Load what `write_onnx` wrote; None where onnxruntime is missing."""
    if not available("onnxruntime"):
        return None
    runtime = require("onnxruntime", "onnx")
    options = runtime.SessionOptions()
    # More threads than cores wait for each other by spinning, which multiplies the time.
    options.intra_op_num_threads = torch.get_num_threads()
    session = runtime.InferenceSession(str(folder / GRAPH_FILE), options)
    suffixes = [one.name.removeprefix("input_ids") for one in session.get_inputs() if one.name.startswith("input_ids")]
    tokenizers = {suffix: Tokenizer.from_file(str(folder / f"tokenizer{suffix}.json")) for suffix in suffixes}

    def run(sentences: list[str]) -> np.ndarray:
        fed = {}
        for suffix, tokenizer in tokenizers.items():
            batch = tokenizer.encode_batch(sentences)
            fed[f"input_ids{suffix}"] = np.array([one.ids for one in batch], np.int64)
            fed[f"attention_mask{suffix}"] = np.array([one.attention_mask for one in batch], np.int64)
        return session.run([OUTPUT], fed)[0]

    return lambda sentences: np.concatenate(
        [run(sentences[start : start + BATCH]) for start in range(0, len(sentences), BATCH)]
    )
