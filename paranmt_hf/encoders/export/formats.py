"""The formats that encoders can be exported to.

The pipeline `feature-extraction` of transformers.js asks the graph for `last_hidden_state` [batch, length, dimension]
and pools over the length. That output holds the sentence vector at every position here, so that every kind of pooling
gives it. Pooling over no position would give no number, so every text begins with an id that is not a unit; the graph
drops it. A combination reads each text with several tokenizers, for which there is no pipeline: its graph has the
inputs of each tokenizer side by side, and gives `sentence_embedding` alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer

from paranmt_hf.encoders.composition import Part, take_apart
from paranmt_hf.encoders.export.graph import GRAPH_FILE, LARGEST_GRAPH, OUTPUT, suffixes, write_graph
from paranmt_hf.encoders.export.tokenizers import portable_tokenizer, tokenizer_of
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.util.optional import available, require

Encode = Callable[[list[str]], np.ndarray]


class Format:
    """A format to export to: what it can hold, and how its files are written and read."""

    name: str
    library: str  # The library that reads it, for the header of its README
    package: str | None = None  # Optional package that writing needs; the extra that installs it has the same name
    single: bool = False  # Whether it can only hold WORD or TRIGRAM alone, not all of our encoders
    holds_settings: bool = False  # Whether it can hold a default prompt and a `truncate_dim`
    holds_unknown: bool = True  # Whether it can hold a trained vector for unknown units
    tolerance: float = 1e-6  # Maximum `distance` of its vectors from ours

    def write(self, encoder: SentenceEncoder, folder: Path) -> None:
        """Write the files of an encoder into a folder that exists."""
        raise NotImplementedError

    def read(self, folder: Path) -> Encode | None:
        """Load the export as its readers would.

        Returns:
            A function from sentences to vectors [sentence, dimension]; None if the package that reads it is missing.
        """
        raise NotImplementedError

    def distance(self, theirs: np.ndarray, ours: np.ndarray) -> float:
        """Compute how far vectors of the export are from ours, both [sentence, dimension].

        By default this is the largest difference of a value, divided by the largest value if that is above 1.
        """
        return float(np.abs(theirs - ours).max() / max(1, np.abs(ours).max()))


class Static(Format):
    """The stock module `StaticEmbedding` of sentence-transformers."""

    name = "static"
    library = "sentence-transformers"
    single = True
    holds_settings = True

    def write(self, encoder: SentenceEncoder, folder: Path) -> None:
        """See `Format`. Rows are float32, because the stock module averages narrower rows in their own precision."""
        tokenizer, rows = _tokenizer_and_rows(encoder)
        modules = [StaticEmbedding(tokenizer, rows)]
        save(SentenceTransformer(modules=modules, device="cpu", **encoder.settings), folder)
        # Releases of sentence-transformers before 5 expect a Transformer where a module has no folder of its own.
        inner = folder / "0_StaticEmbedding"
        inner.mkdir()
        for file in ("model.safetensors", "tokenizer.json"):
            (folder / file).rename(inner / file)
        _write_module_list(folder, inner.name)

    def read(self, folder: Path) -> Encode | None:
        """See `Format`."""
        return SentenceTransformer(str(folder), device="cpu").encode


class Model2Vec(Format):
    """A `StaticModel` of model2vec; its `modules.json` makes it a sentence-transformers model too."""

    name = "model2vec"
    library = "model2vec"
    single = True
    holds_unknown = False

    def write(self, encoder: SentenceEncoder, folder: Path) -> None:
        """See `Format`."""
        tokenizer, rows = _tokenizer_and_rows(encoder)
        save_file({"embeddings": rows.numpy()}, folder / "model.safetensors")
        tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
        config = {"normalize": False, "max_length": None, "embedding_dtype": "float32"}
        _write_json(folder / "config.json", config)
        _write_module_list(folder, ".")

    def read(self, folder: Path) -> Encode | None:
        """See `Format`."""
        if not available("model2vec"):
            return None
        return require("model2vec", "model2vec").StaticModel.from_pretrained(folder).encode

    def distance(self, theirs: np.ndarray, ours: np.ndarray) -> float:
        """Compute the largest difference of a cosine from 1; infinite if exactly one of two vectors is zero."""
        theirs, ours = theirs.astype(np.float64), ours.astype(np.float64)
        lengths = np.linalg.norm(theirs, axis=1) * np.linalg.norm(ours, axis=1)
        some = lengths > 0
        if theirs[~some].any() or ours[~some].any():
            return float("inf")
        cosines = (theirs * ours).sum(axis=1)[some] / lengths[some]
        return float(np.abs(1 - cosines).max(initial=0))


class Onnx(Format):
    """An ONNX graph, and a tokenizer for each encoder of a combination."""

    name = "onnx"
    library = "onnx"
    package = "onnx"
    tolerance = 1e-5
    graph_folder = "."  # Folder of the graph, relative to that of the export
    weights_file = "model.onnx.data"  # Name of the file for weights that are too large for the graph
    leading = 0  # Number of ids at the beginning of each text that are not units

    def write(self, encoder: SentenceEncoder, folder: Path, *, largest: int = LARGEST_GRAPH) -> None:
        """See `Format`; if the weights take more than `largest` bytes, they are in a file next to the graph."""
        composition = take_apart(encoder)
        for suffix, part in zip(suffixes(len(composition.parts)), composition.parts, strict=True):
            self.tokenizer(part).save(str(folder / f"tokenizer{suffix}.json"))
        graph = folder / self.graph_folder
        graph.mkdir(exist_ok=True)
        write_graph(composition, graph, self.weights_file, leading=self.leading, largest=largest)

    def tokenizer(self, part: Part) -> Tokenizer:
        """Build the tokenizer of one part of the encoder."""
        tokenizer = tokenizer_of(part)
        # Padding has the id of row 0; the attention mask excludes it.
        tokenizer.enable_padding(pad_id=0, pad_token=part.vocabulary.units[0])
        return tokenizer

    def read(self, folder: Path) -> Encode | None:
        """See `Format`; `last_hidden_state`, if there is one, is averaged over positions as in transformers.js."""
        if not available("onnxruntime"):
            return None
        runtime = require("onnxruntime", "onnx")
        options = runtime.SessionOptions()
        # With more threads than cores, threads that wait keep a core busy, which multiplies the time.
        options.intra_op_num_threads = torch.get_num_threads()
        session = runtime.InferenceSession(str(folder / self.graph_folder / GRAPH_FILE), options)
        tokenizers = {}
        for path in folder.glob("tokenizer*.json"):
            suffix = path.stem.removeprefix("tokenizer")
            if suffix != "_config":
                tokenizers[suffix] = Tokenizer.from_file(str(path))

        def encode(sentences: list[str]) -> np.ndarray:
            starts = range(0, len(sentences), 32)
            return np.concatenate([_run(session, tokenizers, sentences[start : start + 32]) for start in starts])

        return encode


class TransformersJs(Onnx):
    """An ONNX graph, with tokenizers and configurations that transformers.js reads."""

    name = "transformers.js"
    library = "transformers.js"
    graph_folder = "onnx"
    weights_file = "model.onnx_data"
    leading = 1  # `portable_tokenizer` puts one id at the beginning

    def write(self, encoder: SentenceEncoder, folder: Path, *, largest: int = LARGEST_GRAPH) -> None:
        """See `Onnx`."""
        super().write(encoder, folder, largest=largest)
        composition = take_apart(encoder)
        unknown = composition.parts[0].vocabulary.units[0]
        tokenizer_config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            # transformers.js looks up unknown words by this name.
            "unk_token": unknown,
            "pad_token": unknown,
            # So long that no text is truncated.
            "model_max_length": 10**9,
        }
        js_config: dict[str, Any] = {"dtype": "fp32"}
        if (folder / self.graph_folder / self.weights_file).exists():
            js_config["use_external_data_format"] = True
        kind = "_".join(part.family.name for part in composition.parts)
        config = {
            "model_type": f"paranmt_{kind}",
            "hidden_size": composition.dimension,
            "transformers.js_config": js_config,
        }
        _write_json(folder / "tokenizer_config.json", tokenizer_config)
        _write_json(folder / "config.json", config)

    def tokenizer(self, part: Part) -> Tokenizer:
        """See `Onnx`."""
        return portable_tokenizer(part)


# In order of preference.
FORMATS: dict[str, Format] = {format.name: format for format in (Static(), Model2Vec(), Onnx(), TransformersJs())}


def _tokenizer_and_rows(encoder: SentenceEncoder) -> tuple[Tokenizer, torch.Tensor]:
    """Return the tokenizer and the table [row, dimension], float32, of an encoder that is WORD or TRIGRAM alone."""
    (part,) = take_apart(encoder).parts
    return tokenizer_of(part), part.table.weight.detach().cpu()


def _write_module_list(folder: Path, path: str) -> None:
    """Write a `modules.json` of one stock module with its files in `path`, which older releases read too."""
    kind = "sentence_transformers.models.StaticEmbedding"
    _write_json(folder / "modules.json", [{"idx": 0, "name": "0", "path": path, "type": kind}])


def _write_json(path: Path, content: object) -> None:
    path.write_text(f"{json.dumps(content, indent=2)}\n", encoding="utf8", newline="\n")


def _run(session: Any, tokenizers: dict[str, Tokenizer], sentences: list[str]) -> np.ndarray:  # noqa: ANN401
    """Compute the vectors of one batch of sentences [sentence, dimension] with an ONNX session.

    Args:
        session: The session of onnxruntime.
        tokenizers: Tokenizer of each part, by the suffix of its input names.
        sentences: The batch.
    """
    inputs = {}
    for suffix, tokenizer in tokenizers.items():
        batch = tokenizer.encode_batch(sentences)
        inputs[f"input_ids{suffix}"] = np.array([text.ids for text in batch], np.int64)
        inputs[f"attention_mask{suffix}"] = np.array([text.attention_mask for text in batch], np.int64)
    output = session.get_outputs()[0].name
    (values,) = session.run([output], inputs)
    if output == OUTPUT:
        return np.asarray(values)
    mask = inputs["attention_mask"][:, :, None].astype(np.float32)
    return np.asarray((values * mask).sum(axis=1) / mask.sum(axis=1))
