"""The formats to export to, and the README of an export.

The pipeline `feature-extraction` of transformers.js asks the graph for `last_hidden_state` [batch, length, dimension]
and pools over the length. That output holds the sentence vector at every place here, so that each way of pooling gives
it. Every text begins with an id that is not a unit and is dropped in the graph, because pooling over no place gives no
number. A combination reads each text with several tokenizers, for which there is no pipeline: its graph has their
inputs side by side, and gives `sentence_embedding` alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer

from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.export.graph import GRAPH_FILE, OUTPUT, suffixes, write_graph
from paranmt_hf.encoders.export.tokenizers import portable_tokenizer, tokenizer_of
from paranmt_hf.encoders.model_folder import SETTINGS
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.hub.cards import render
from paranmt_hf.hub.repository import Model
from paranmt_hf.util.optional import available, require
from paranmt_hf.util.yaml_files import card_header

Encode = Callable[[list[str]], np.ndarray]
# How far vectors are from others, both [sentence, dimension].
Distance = Callable[[np.ndarray, np.ndarray], float]


def largest_difference(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Largest difference of a value, relative to the largest value if that is above 1."""
    return float(np.abs(theirs - ours).max() / max(1, np.abs(ours).max()))


def largest_turn(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Largest difference of a cosine from 1; infinite if only one of two vectors is zero."""
    theirs, ours = theirs.astype(np.float64), ours.astype(np.float64)
    lengths = np.linalg.norm(theirs, axis=1), np.linalg.norm(ours, axis=1)
    if ((lengths[0] == 0) != (lengths[1] == 0)).any():
        return float("inf")
    some = lengths[1] > 0
    dots = (theirs * ours).sum(axis=1)[some]
    return float(np.abs(1 - dots / (lengths[0] * lengths[1])[some]).max(initial=0))


@dataclass(frozen=True)
class Format:
    """A format to export to."""

    name: str
    holds: str  # Description of the encoders that it can hold
    # The single encoders it can hold; empty if it can hold all of them and their combinations
    families: tuple[str, ...]
    write: Callable[[SentenceEncoder, Path], None]  # Writes the files into a folder that exists
    # Loads the files as a reader would and gives what encodes with them; None if the package is missing
    read: Callable[[Path], Encode | None]
    library: str  # Name of the library that reads it, for the header of its README
    tolerance: float = 1e-6  # Maximum `distance` of its vectors from ours
    distance: Distance = largest_difference
    package: str | None = None  # Package that writing needs, which is also the name of the extra
    holds_settings: bool = True  # Whether it can hold a default prompt and a `truncate_dim`
    holds_unknown: bool = True  # Whether it can hold a trained vector for unknown units


LICENSE_KEYS = ("license", "license_name", "license_link")


def card(name: str, format: Format, kinds: Sequence[str], source: Model) -> str:
    """Render the README.md of an export, with the licence of its source."""
    license = stated_license(source)
    header = {
        "library_name": format.library,
        "tags": ["sentence-similarity", "feature-extraction", "paranmt", *(kind.lower() for kind in kinds)],
        **license,
    }
    values = {"name": name, "kinds": kinds, "source": source.name, "format": format.name, "license": license}
    return render("export", header, {**values, "suffixes": suffixes(len(kinds))})


def stated_license(source: Model) -> dict[str, str]:
    """Read the licence in the header of a model's README.md, or else in its training.json."""
    record = source.folder / "training.json"
    stated: Any = card_header(source.folder / "README.md")
    if "license" not in stated and record.is_file():
        try:
            stated = json.loads(record.read_text(encoding="utf8"))
        except (ValueError, RecursionError):
            stated = None
    if not isinstance(stated, dict) or not isinstance(stated.get("license"), str):
        return {}
    return {key: stated[key] for key in LICENSE_KEYS if isinstance(stated.get(key), str)}


# The name of the stock module that older releases of sentence-transformers know too, and its folder.
STATIC_CLASS = "sentence_transformers.models.StaticEmbedding"
STATIC_FOLDER = "0_StaticEmbedding"


def tokenizer_and_table(encoder: SentenceEncoder) -> tuple[Tokenizer, torch.Tensor]:
    """Tokenizer and table [row, dimension], float32, of an encoder that is WORD or TRIGRAM."""
    (part,) = take_apart(encoder).parts
    return tokenizer_of(part), part.table.weight.detach().cpu()


def write_modules(folder: Path, path: str) -> None:
    """Write a `modules.json` that names the stock module in a folder."""
    entry = {"idx": 0, "name": "0", "path": path, "type": STATIC_CLASS}
    (folder / "modules.json").write_text(json.dumps([entry], indent=2), encoding="utf8", newline="\n")


def _write_stock(encoder: SentenceEncoder, folder: Path) -> None:
    """Write a stock module; float32, because it would average narrower rows in their own precision."""
    tokenizer, weight = tokenizer_and_table(encoder)
    settings = {name: getattr(encoder, name) for name in SETTINGS}
    save(SentenceTransformer(modules=[StaticEmbedding(tokenizer, weight)], device="cpu", **settings), folder)
    # Releases before 5 take a module without a folder of its own for a Transformer.
    (folder / STATIC_FOLDER).mkdir()
    for file in ("model.safetensors", "tokenizer.json"):
        (folder / file).rename(folder / STATIC_FOLDER / file)
    write_modules(folder, STATIC_FOLDER)


def _read_stock(folder: Path) -> Encode | None:
    return SentenceTransformer(str(folder), device="cpu").encode


STATIC = Format(
    "static", "WORD or TRIGRAM alone", ("word", "trigram"), _write_stock, _read_stock, "sentence-transformers"
)


def _write_model2vec(encoder: SentenceEncoder, folder: Path) -> None:
    """Write what model2vec's `StaticModel` reads; by modules.json it is a sentence-transformers model too."""
    tokenizer, weight = tokenizer_and_table(encoder)
    save_file({"embeddings": weight.numpy()}, folder / "model.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = {"normalize": False, "max_length": None, "embedding_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf8", newline="\n")
    write_modules(folder, ".")


def _read_model2vec(folder: Path) -> Encode | None:
    if not available("model2vec"):
        return None
    return require("model2vec", "model2vec").StaticModel.from_pretrained(folder).encode


MODEL2VEC = Format(
    "model2vec",
    "WORD or TRIGRAM alone",
    ("word", "trigram"),
    _write_model2vec,
    _read_model2vec,
    "model2vec",
    distance=largest_turn,
    holds_settings=False,
    holds_unknown=False,
)

WEIGHTS_FILE = "model.onnx.data"
# The folder of the graph for transformers.js, and the file of its weights.
JS_FOLDER, JS_WEIGHTS_FILE = "onnx", "model.onnx_data"
LEADING = 1  # Ids at the beginning of each text that are not units: `portable_tokenizer` puts one there
BATCH = 32  # Sentences that are run at once to check an export


def _write_onnx(encoder: SentenceEncoder, folder: Path) -> None:
    """Write the graph of an encoder and the tokenizer of each of its parts."""
    composition = take_apart(encoder)
    for suffix, part in zip(suffixes(len(composition.parts)), composition.parts, strict=True):
        tokenizer = tokenizer_of(part)
        # It pads with row 0, which the mask hides.
        tokenizer.enable_padding(pad_id=0, pad_token=part.vocabulary.units[0])
        tokenizer.save(str(folder / f"tokenizer{suffix}.json"))
    write_graph(composition, folder, WEIGHTS_FILE)


def _write_js(encoder: SentenceEncoder, folder: Path) -> None:
    """Write the graph, a tokenizer for each part, and the configurations of both."""
    composition = take_apart(encoder)
    for suffix, part in zip(suffixes(len(composition.parts)), composition.parts, strict=True):
        portable_tokenizer(part).save(str(folder / f"tokenizer{suffix}.json"))
    unknown = composition.parts[0].vocabulary.units[0]
    # The library looks unknown words up under this name; nothing is truncated.
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": unknown, "pad_token": unknown}
    (folder / JS_FOLDER).mkdir()
    write_graph(composition, folder / JS_FOLDER, JS_WEIGHTS_FILE, leading=LEADING)
    outside = (folder / JS_FOLDER / JS_WEIGHTS_FILE).exists()
    own = {"dtype": "fp32", **({"use_external_data_format": True} if outside else {})}
    kind = "_".join(part.family.name for part in composition.parts)
    config = {"model_type": f"paranmt_{kind}", "hidden_size": composition.dimension, "transformers.js_config": own}
    files = {"tokenizer_config.json": {**settings, "model_max_length": 10**9}, "config.json": config}
    for name, values in files.items():
        (folder / name).write_text(f"{json.dumps(values, indent=2)}\n", encoding="utf8", newline="\n")


def _read_graph(folder: Path, graph: str) -> Encode | None:
    """Run a graph, and mean-pool its states as transformers.js does; None if onnxruntime is missing."""
    if not available("onnxruntime"):
        return None
    runtime = require("onnxruntime", "onnx")
    options = runtime.SessionOptions()
    # More threads than cores wait for each other by spinning, which multiplies the time.
    options.intra_op_num_threads = torch.get_num_threads()
    session = runtime.InferenceSession(str(folder / graph), options)
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


ONNX = Format(
    "onnx",
    "all of our encoders",
    (),
    _write_onnx,
    partial(_read_graph, graph=GRAPH_FILE),
    "onnx",
    tolerance=1e-5,
    package="onnx",
    holds_settings=False,
)
TRANSFORMERS_JS = Format(
    "transformers.js",
    "all of our encoders",
    (),
    _write_js,
    partial(_read_graph, graph=f"{JS_FOLDER}/{GRAPH_FILE}"),
    "transformers.js",
    tolerance=1e-5,
    package="onnx",
    holds_settings=False,
)
