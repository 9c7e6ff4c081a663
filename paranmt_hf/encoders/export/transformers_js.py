"""Export any encoder as transformers.js reads it: `onnx/model.onnx`, `config.json`, tokenizers.

Its pipeline `feature-extraction` cuts text with one tokenizer, asks the graph for `last_hidden_state` [batch, length,
dimension], and pools over the length. That output holds the sentence vector at every place here, so that each way of
pooling gives it, the mean of LSTM states as well as that of words. Every text begins with an id that stands for no
unit and is dropped in the graph, because pooling over no place at all gives no number.

A combination reads each text with several tokenizers, for which the library has no pipeline: its graph has their
inputs side by side, and gives `sentence_embedding` alone.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from paranmt_hf.encoders.composition import Composition, take_apart
from paranmt_hf.encoders.export.formats import Encode, Format
from paranmt_hf.encoders.export.onnx import BATCH, GRAPH_FILE, OUTPUT, add_encoder, save_graph, suffixes
from paranmt_hf.encoders.export.portable_tokenizer import portable_tokenizer
from paranmt_hf.encoders.graph import Graph
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.util.optional import available, require

FOLDER, WEIGHTS_FILE = "onnx", "model.onnx_data"
# What the pipeline pools over.
STATES = "last_hidden_state"
# Ids at the beginning of each text that stand for no unit: `portable_tokenizer` puts one there.
LEADING = 1


def _write(encoder: SentenceEncoder, folder: Path) -> None:
    """Write the graph, a tokenizer for each part, and the configurations of both."""
    composition = take_apart(list(encoder))
    for suffix, part in zip(suffixes(composition), composition.parts, strict=True):
        portable_tokenizer(part).save(str(folder / f"tokenizer{suffix}.json"))
    unknown = composition.parts[0].vocabulary.units[0]
    # The library looks unknown words up under the name that stands here; nothing is cut off.
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": unknown, "pad_token": unknown}
    _write_json(folder / "tokenizer_config.json", {**settings, "model_max_length": 10**9})
    (folder / FOLDER).mkdir()
    _write_graph(composition, folder / FOLDER)
    outside = (folder / FOLDER / WEIGHTS_FILE).exists()
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
    save_graph(graph, folder, inputs, outputs, weights_file=WEIGHTS_FILE)


def _read(folder: Path) -> Encode | None:
    """Do what the pipeline does, in Python: cut, run, pool by the mean; None where onnxruntime is missing."""
    if not available("onnxruntime"):
        return None
    session = require("onnxruntime", "onnx").InferenceSession(str(folder / FOLDER / GRAPH_FILE))
    names = [value.name for value in session.get_inputs()]
    endings = [name.removeprefix("input_ids") for name in names if name.startswith("input_ids")]
    tokenizers = {ending: Tokenizer.from_file(str(folder / f"tokenizer{ending}.json")) for ending in endings}

    def run(sentences: list[str]) -> np.ndarray:
        fed = {}
        for ending, tokenizer in tokenizers.items():
            batch = tokenizer.encode_batch(sentences)
            fed[f"input_ids{ending}"] = np.array([encoding.ids for encoding in batch], np.int64)
            fed[f"attention_mask{ending}"] = np.array([encoding.attention_mask for encoding in batch], np.int64)
        if len(tokenizers) > 1:
            return np.asarray(session.run([OUTPUT], fed)[0])
        (states,) = session.run([STATES], fed)
        mask = fed["attention_mask"][:, :, None].astype(np.float32)
        return np.asarray((states * mask).sum(axis=1) / mask.sum(axis=1))

    return lambda sentences: np.concatenate(
        [run(sentences[start : start + BATCH]) for start in range(0, len(sentences), BATCH)]
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
NOTE = (
    "A path that begins with `./` is a folder of this machine; else it is the id of a repository. In the pipeline "
    "pooling by `cls` gives the same vectors. Rows keep the precision of the source and are calculated with in "
    "float32, so there is no other `dtype`. A sentence without known units is zeros."
)
TRANSFORMERS_JS = Format(
    "transformers.js",
    "all of our encoders",
    (),
    _write,
    _read,
    "transformers.js",
    PIPELINE,
    NOTE,
    tolerance=1e-5,
    package="onnx",
    holds_settings=False,
    language="javascript",
    usage_combined=COMBINED,
)
