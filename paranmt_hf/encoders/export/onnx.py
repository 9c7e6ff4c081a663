"""Export any encoder as an ONNX graph: token ids and attention mask in, `sentence_embedding` out.

Rows keep the precision they are stored in and become float32 where they are read. Weights of more than protobuf's
2 GB lie in a file beside the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from paranmt_hf.encoders.composition import Composition, take_apart
from paranmt_hf.encoders.export.formats import Encode, Format
from paranmt_hf.encoders.export.tokenizers import tokenizer_of
from paranmt_hf.encoders.graph import Graph
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
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


def write_onnx(encoder: SentenceEncoder, folder: Path) -> None:
    """Write the graph of an encoder and the tokenizer of each of its parts.

    Args:
        encoder: An encoder of this package.
        folder: Where to; must exist.
    """
    composition = take_apart(list(encoder))
    graph = Graph()
    inputs, vectors = add_encoder(graph, composition)
    for suffix, part in zip(suffixes(composition), composition.parts, strict=True):
        tokenizer = tokenizer_of(part)
        # It pads with row 0, which the mask hides.
        tokenizer.enable_padding(pad_id=0, pad_token=part.vocabulary.units[0])
        tokenizer.save(str(folder / f"tokenizer{suffix}.json"))
    save_graph(graph, folder, inputs, {OUTPUT: (vectors, ["batch", composition.dimension])})


def suffixes(composition: Composition) -> list[str]:
    """What the names of the parts' inputs end with: encoders that are combined are told apart by their index."""
    several = len(composition.parts) > 1
    return [f"_{index}" if several else "" for index in range(len(composition.parts))]


def add_encoder(graph: Graph, composition: Composition, *, leading: int = 0) -> tuple[list[str], str]:
    """Add an encoder to a graph.

    Args:
        graph: The graph.
        composition: The encoder.
        leading: Number of ids at the beginning of each sentence that stand for no unit.

    Returns:
        The names of the inputs, `input_ids` and `attention_mask` [batch, length] of each part, and the name of the
        sentence vectors [batch, dimension].
    """
    vectors, inputs = [], []
    for suffix, part in zip(suffixes(composition), composition.parts, strict=True):
        names = [f"input_ids{suffix}", f"attention_mask{suffix}"]
        # One column of padding more, so that sentences without units make no empty sequence.
        more = graph.weight([0, -leading, 0, 1])
        ids, mask = (graph.node("Pad", name, more) for name in names)
        vectors.append(part.family.load_code().add_to_graph(graph, part.modules, ids, mask))
        inputs += names
    if composition.mode == "add":
        return inputs, graph.node("Sum", *vectors)
    return inputs, graph.node("Concat", *vectors, axis=1)


def save_graph(
    graph: Graph,
    folder: Path,
    inputs: Sequence[str],
    outputs: Mapping[str, tuple[str, list[str | int]]],
    *,
    weights_file: str = WEIGHTS_FILE,
) -> None:
    """Write a graph.

    Args:
        graph: The graph.
        folder: Where to; must exist.
        inputs: Names of the inputs, each int64 [batch, length].
        outputs: Of each output, float32, the node that gives it, and its shape.
        weights_file: Name of the file for weights that are too large for the graph itself.
    """
    helper, types = graph.onnx.helper, graph.onnx.TensorProto
    graph.nodes += [helper.make_node("Identity", [node], [name]) for name, (node, _) in outputs.items()]
    # Encoders that are combined cut a text into different numbers of units.
    shapes = {
        name: ["batch", name.replace("input_ids", "length").replace("attention_mask", "length")] for name in inputs
    }
    whole = helper.make_graph(
        graph.nodes,
        "sentence_encoder",
        [helper.make_tensor_value_info(name, types.INT64, shapes[name]) for name in inputs],
        [helper.make_tensor_value_info(name, types.FLOAT, shape) for name, (_, shape) in outputs.items()],
        _stored(graph, folder / weights_file),
    )
    model = helper.make_model(
        whole,
        producer_name="paranmt_hf",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    graph.onnx.save_model(model, str(folder / GRAPH_FILE))
    graph.onnx.checker.check_model(str(folder / GRAPH_FILE), full_check=True)


def _stored(graph: Graph, beside: Path) -> list[Any]:
    """Turn the weights into what the graph holds; what is too large for it goes into a file beside it."""
    if sum(array.nbytes for array in graph.weights.values()) <= LIMIT:
        return [graph.onnx.numpy_helper.from_array(array, name) for name, array in graph.weights.items()]
    stored = []
    with beside.open("wb") as file:
        for name, array in graph.weights.items():
            if array.nbytes < SMALL:
                stored.append(graph.onnx.numpy_helper.from_array(array, name))
                continue
            place = {"location": beside.name, "offset": file.tell(), "length": array.nbytes}
            file.write(array.data)
            stored.append(_outside(graph, name, array, place))
    return stored


def _outside(graph: Graph, name: str, array: np.ndarray, place: dict[str, object]) -> Any:  # noqa: ANN401
    """Make a weight that says where its values are."""
    tensor = graph.onnx.TensorProto(name=name, dims=array.shape)
    tensor.data_type = graph.onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    tensor.data_location = graph.onnx.TensorProto.EXTERNAL
    for key, value in place.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def read_onnx(folder: Path) -> Encode | None:
    """Load what `write_onnx` wrote; None where onnxruntime is missing."""
    if not available("onnxruntime"):
        return None
    runtime = require("onnxruntime", "onnx")
    options = runtime.SessionOptions()
    # More threads than cores wait for each other by spinning, which multiplies the time.
    options.intra_op_num_threads = torch.get_num_threads()
    session = runtime.InferenceSession(str(folder / GRAPH_FILE), options)
    names = [value.name for value in session.get_inputs()]
    suffixes = [name.removeprefix("input_ids") for name in names if name.startswith("input_ids")]
    tokenizers = {suffix: Tokenizer.from_file(str(folder / f"tokenizer{suffix}.json")) for suffix in suffixes}

    def run(sentences: list[str]) -> np.ndarray:
        fed = {}
        for suffix, tokenizer in tokenizers.items():
            batch = tokenizer.encode_batch(sentences)
            fed[f"input_ids{suffix}"] = np.array([encoding.ids for encoding in batch], np.int64)
            fed[f"attention_mask{suffix}"] = np.array([encoding.attention_mask for encoding in batch], np.int64)
        return session.run([OUTPUT], fed)[0]

    return lambda sentences: np.concatenate(
        [run(sentences[start : start + BATCH]) for start in range(0, len(sentences), BATCH)]
    )


USAGE = """import numpy as np, onnxruntime
from tokenizers import Tokenizer

inputs = {{}}
for part in {suffixes}:
    batch = Tokenizer.from_file(f"{name}/tokenizer{{part}}.json").encode_batch(["A dog runs.", "It rains."])
    inputs[f"input_ids{{part}}"] = np.array([one.ids for one in batch], np.int64)
    inputs[f"attention_mask{{part}}"] = np.array([one.attention_mask for one in batch], np.int64)
(vectors,) = onnxruntime.InferenceSession("{name}/model.onnx").run(["sentence_embedding"], inputs)"""
NOTE = (
    "Padding is on the right, as the tokenizer does it. Rows keep the precision of the source and are calculated with "
    "in float32; a sentence without known units is zeros."
)
ONNX = Format(
    "onnx",
    "all of our encoders",
    (),
    write_onnx,
    read_onnx,
    "onnx",
    USAGE,
    NOTE,
    tolerance=1e-5,
    package="onnx",
    holds_settings=False,
)
