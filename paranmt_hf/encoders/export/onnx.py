"""Export any encoder as ONNX, and as transformers.js reads it: `onnx/model.onnx`, `config.json`, tokenizers.

The pipeline `feature-extraction` of transformers.js asks the graph for `last_hidden_state` [batch, length, dimension]
and pools over the length. That output holds the sentence vector at every place here, so that each way of pooling gives
it. Every text begins with an id that is not a unit and is dropped in the graph, because pooling over no place gives no
number. A combination reads each text with several tokenizers, for which there is no pipeline: its graph has their
inputs side by side, and gives `sentence_embedding` alone.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from paranmt_hf.encoders.composition import Composition, take_apart
from paranmt_hf.encoders.export.formats import Encode, Format
from paranmt_hf.encoders.export.graph import GRAPH_FILE, OUTPUT, Graph, add_encoder, save_graph, suffixes
from paranmt_hf.encoders.export.tokenizers import portable_tokenizer, tokenizer_of
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.util.optional import available, require

WEIGHTS_FILE = "model.onnx.data"
# The folder of the graph for transformers.js, and the file of its weights.
JS_FOLDER, JS_WEIGHTS_FILE = "onnx", "model.onnx_data"
# What the pipeline pools over.
STATES = "last_hidden_state"
# Ids at the beginning of each text that are not units: `portable_tokenizer` puts one there.
LEADING = 1
# Sentences that are run at once to check an export.
BATCH = 32


def _write_onnx(encoder: SentenceEncoder, folder: Path) -> None:
    """Write the graph of an encoder and the tokenizer of each of its parts."""
    composition = take_apart(list(encoder))
    graph = Graph()
    inputs, vectors = add_encoder(graph, composition)
    for suffix, part in zip(suffixes(composition), composition.parts, strict=True):
        tokenizer = tokenizer_of(part)
        # It pads with row 0, which the mask hides.
        tokenizer.enable_padding(pad_id=0, pad_token=part.vocabulary.units[0])
        tokenizer.save(str(folder / f"tokenizer{suffix}.json"))
    outputs: dict[str, tuple[str, list[str | int]]] = {OUTPUT: (vectors, ["batch", composition.dimension])}
    save_graph(graph, folder, inputs, outputs, weights_file=WEIGHTS_FILE)


def _write_js(encoder: SentenceEncoder, folder: Path) -> None:
    """Write the graph, a tokenizer for each part, and the configurations of both."""
    composition = take_apart(list(encoder))
    for suffix, part in zip(suffixes(composition), composition.parts, strict=True):
        portable_tokenizer(part).save(str(folder / f"tokenizer{suffix}.json"))
    unknown = composition.parts[0].vocabulary.units[0]
    # The library looks unknown words up under this name; nothing is truncated.
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": unknown, "pad_token": unknown}
    _write_json(folder / "tokenizer_config.json", {**settings, "model_max_length": 10**9})
    (folder / JS_FOLDER).mkdir()
    _write_graph(composition, folder / JS_FOLDER)
    outside = (folder / JS_FOLDER / JS_WEIGHTS_FILE).exists()
    own = {"dtype": "fp32", **({"use_external_data_format": True} if outside else {})}
    kind = "_".join(part.family.name for part in composition.parts)
    config = {"model_type": f"paranmt_{kind}", "hidden_size": composition.dimension, "transformers.js_config": own}
    _write_json(folder / "config.json", config)


def _write_json(path: Path, values: dict[str, object]) -> None:
    path.write_text(f"{json.dumps(values, indent=2)}\n", encoding="utf8")


def _write_graph(composition: Composition, folder: Path) -> None:
    graph = Graph()
    inputs, vectors = add_encoder(graph, composition, leading=LEADING)
    outputs: dict[str, tuple[str, list[str | int]]] = {OUTPUT: (vectors, ["batch", composition.dimension])}
    if len(composition.parts) == 1:
        length = graph.node("Slice", graph.node("Shape", inputs[0]), graph.weight([1]), graph.weight([2]))
        shape = graph.node("Concat", graph.weight([1]), length, graph.weight([1]), axis=0)
        states = graph.node("Expand", graph.node("Unsqueeze", vectors, graph.weight([1])), shape)
        outputs = {STATES: (states, ["batch", "length", composition.dimension]), **outputs}
    save_graph(graph, folder, inputs, outputs, weights_file=JS_WEIGHTS_FILE)


def _read_onnx(folder: Path) -> Encode | None:
    """Load what `_write_onnx` wrote; None if onnxruntime is missing."""
    return _reader(folder, folder / GRAPH_FILE)


def _read_js(folder: Path) -> Encode | None:
    """Do what the pipeline of transformers.js does; None if onnxruntime is missing."""
    return _reader(folder, folder / JS_FOLDER / GRAPH_FILE)


def _reader(folder: Path, graph: Path) -> Encode | None:
    """Run a graph, and pool its states by the mean if it has some."""
    if not available("onnxruntime"):
        return None
    runtime = require("onnxruntime", "onnx")
    options = runtime.SessionOptions()
    # More threads than cores wait for each other by spinning, which multiplies the time.
    options.intra_op_num_threads = torch.get_num_threads()
    session = runtime.InferenceSession(str(graph), options)
    names = [value.name for value in session.get_inputs()]
    output = session.get_outputs()[0].name
    suffixes = [name.removeprefix("input_ids") for name in names if name.startswith("input_ids")]
    tokenizers = {suffix: Tokenizer.from_file(str(folder / f"tokenizer{suffix}.json")) for suffix in suffixes}

    def run(sentences: list[str]) -> np.ndarray:
        fed = {}
        for suffix, tokenizer in tokenizers.items():
            batch = tokenizer.encode_batch(sentences)
            fed[f"input_ids{suffix}"] = np.array([encoding.ids for encoding in batch], np.int64)
            fed[f"attention_mask{suffix}"] = np.array([encoding.attention_mask for encoding in batch], np.int64)
        (found,) = session.run([output], fed)
        if output == OUTPUT:
            return np.asarray(found)
        mask = fed["attention_mask"][:, :, None].astype(np.float32)
        return np.asarray((found * mask).sum(axis=1) / mask.sum(axis=1))

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
    _write_onnx,
    _read_onnx,
    "onnx",
    USAGE,
    NOTE,
    tolerance=1e-5,
    package="onnx",
    holds_settings=False,
)
PIPELINE = """import {{ pipeline }} from "@huggingface/transformers";

const encode = await pipeline("feature-extraction", "./{name}");
const vectors = await encode(["A dog runs.", "It rains."], {{ pooling: "mean" }});
console.log(vectors.tolist());"""
COMBINED = """import {{ readFileSync }} from "node:fs";
import {{ AutoModel, PreTrainedTokenizer }} from "@huggingface/transformers";

const folder = "./{name}", texts = ["A dog runs.", "It rains."];
const read = (file) => JSON.parse(readFileSync(`${{folder}}/${{file}}`, "utf8"));
const model = await AutoModel.from_pretrained(folder);
const inputs = {{}};
for (const part of {suffixes}) {{
  const tokenizer = new PreTrainedTokenizer(read(`tokenizer${{part}}.json`), read("tokenizer_config.json"));
  const {{ input_ids, attention_mask }} = tokenizer(texts, {{ padding: true }});
  inputs[`input_ids${{part}}`] = input_ids;
  inputs[`attention_mask${{part}}`] = attention_mask;
}}
const vectors = (await model(inputs)).sentence_embedding;
console.log(vectors.tolist());"""
JS_NOTE = (
    "A path that begins with `./` is a folder of this machine; else it is the id of a repository. In the pipeline "
    "pooling by `cls` gives the same vectors. Rows keep the precision of the source and are calculated with in "
    "float32, so there is no other `dtype`. A sentence without known units is zeros. TRIGRAM reads "
    "characters beyond U+FFFF (emoji, rare scripts) as unknown."
)
TRANSFORMERS_JS = Format(
    "transformers.js",
    "all of our encoders",
    (),
    _write_js,
    _read_js,
    "transformers.js",
    PIPELINE,
    JS_NOTE,
    tolerance=1e-5,
    package="onnx",
    holds_settings=False,
    language="javascript",
    usage_combined=COMBINED,
)
