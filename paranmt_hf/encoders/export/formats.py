"""What a format to export to is, the README of an export, and the formats of WORD and TRIGRAM: stock, model2vec."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer

from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.export.tokenizers import tokenizer_of
from paranmt_hf.encoders.model_folder import SETTINGS
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.hub.cards import render
from paranmt_hf.hub.repository import Model
from paranmt_hf.util.optional import available, require
from paranmt_hf.util.tables import quoted
from paranmt_hf.util.yaml_files import card_header

Encode = Callable[[list[str]], np.ndarray]
# How far vectors are from others, both [sentence, dimension].
Distance = Callable[[np.ndarray, np.ndarray], float]


def largest_difference(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Largest difference of a value, in parts of the largest value where that is above 1."""
    return float(np.abs(theirs - ours).max() / max(1, np.abs(ours).max()))


def largest_turn(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Largest difference of a cosine from 1; infinite where only one of two vectors is zeros."""
    theirs, ours = theirs.astype(np.float64), ours.astype(np.float64)
    lengths = np.linalg.norm(theirs, axis=1), np.linalg.norm(ours, axis=1)
    if ((lengths[0] == 0) != (lengths[1] == 0)).any():
        return float("inf")
    some = lengths[1] > 0
    dots = (theirs * ours).sum(axis=1)[some]
    return float(np.abs(1 - dots / (lengths[0] * lengths[1])[some]).max(initial=0))


@dataclass(frozen=True)
class Format:
    """A format to export to.

    Attributes:
        name: Its name in `--format`.
        holds: What it can hold, for messages.
        families: The single encoders it can hold; empty if it can hold all of them and their combinations.
        write: Writes the files into a folder that exists.
        read: Loads the files as a reader would and gives what encodes with them; None where the package is missing.
        tolerance: How far its vectors may be from ours.
        distance: How that is measured.
        library: Name of the library that reads it, for the header of its README.
        usage: A program that loads it; `{name}` is its folder and `{suffixes}` what the inputs of its parts end with.
        note: What its README says of it.
        package: Package that writing needs, which is also the name of the extra.
        holds_settings: Whether it can hold a default prompt and a `truncate_dim`.
        holds_unknown: Whether it can hold a trained vector for unknown units.
        language: What `usage` is written in.
        usage_combined: The same for encoders that are combined, where that differs.
    """

    name: str
    holds: str
    families: tuple[str, ...]
    write: Callable[[SentenceEncoder, Path], None]
    read: Callable[[Path], Encode | None]
    library: str
    usage: str
    note: str
    tolerance: float = 1e-6
    distance: Distance = largest_difference
    package: str | None = None
    holds_settings: bool = True
    holds_unknown: bool = True
    language: str = "python"
    usage_combined: str | None = None


LICENSE_KEYS = ("license", "license_name", "license_link")


def card(name: str, format: Format, kinds: Sequence[str], source: Model) -> str:
    """Render the README.md of an export.

    Args:
        name: Name of the folder.
        format: Format it was exported to.
        kinds: The encoders that are combined, by the names of the paper.
        source: The encoder that was exported; its licence is taken over.

    Returns:
        YAML header and Markdown text.
    """
    license = stated_license(source)
    header = {
        "library_name": format.library,
        "tags": ["sentence-similarity", "feature-extraction", "paranmt", *(kind.lower() for kind in kinds)],
        **license,
    }
    values = {"name": name, "kinds": kinds, "source": source.name, "format": format, "license": license}
    return render("export", header, {**values, "usage": _usage(name, format, len(kinds))})


def _usage(name: str, format: Format, parts: int) -> str:
    suffixes = [""] if parts == 1 else [f"_{number}" for number in range(parts)]
    # It becomes part of a string of Python.
    usage = format.usage_combined if parts > 1 and format.usage_combined else format.usage
    return usage.format(name=quoted(name)[1:-1], suffixes=json.dumps(suffixes))


def stated_license(source: Model) -> dict[str, str]:
    """Read what the header of a model's README.md, or else its training.json, says about its licence."""
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
    (part,) = take_apart(list(encoder)).parts
    return tokenizer_of(part), part.table.weight.detach().cpu()


def write_modules(folder: Path, path: str) -> None:
    """Write a `modules.json` that names the stock module in a folder."""
    entry = {"idx": 0, "name": "0", "path": path, "type": STATIC_CLASS}
    (folder / "modules.json").write_text(json.dumps([entry], indent=2), encoding="utf8")


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


STOCK_USAGE = """from sentence_transformers import SentenceTransformer

vectors = SentenceTransformer("{name}").encode(["A dog runs."])"""
STOCK_NOTE = "Rows are float32, whatever precision the source stores."
STATIC = Format(
    "static", "WORD alone", ("word",), _write_stock, _read_stock, "sentence-transformers", STOCK_USAGE, STOCK_NOTE
)
TOKENIZERS = Format(
    "tokenizers",
    "TRIGRAM alone",
    ("trigram",),
    _write_stock,
    _read_stock,
    "sentence-transformers",
    STOCK_USAGE,
    STOCK_NOTE,
)


def _write_model2vec(encoder: SentenceEncoder, folder: Path) -> None:
    """Write what model2vec's `StaticModel` reads; by modules.json it is a sentence-transformers model too."""
    tokenizer, weight = tokenizer_and_table(encoder)
    save_file({"embeddings": weight.numpy()}, folder / "model.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = {"normalize": False, "max_length": None, "embedding_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf8")
    write_modules(folder, ".")


def _read_model2vec(folder: Path) -> Encode | None:
    if not available("model2vec"):
        return None
    return require("model2vec", "model2vec").StaticModel.from_pretrained(folder).encode


MODEL2VEC_USAGE = """from model2vec import StaticModel

vectors = StaticModel.from_pretrained("{name}").encode(["A dog runs."])"""
MODEL2VEC_NOTE = (
    "Cosines are equal, lengths are not: model2vec leaves unknown units out, where the source counts them. Rows are "
    "float32. Releases of model2vec before 0.10 may cut texts after 512 units."
)
MODEL2VEC = Format(
    "model2vec",
    "WORD or TRIGRAM alone",
    ("word", "trigram"),
    _write_model2vec,
    _read_model2vec,
    "model2vec",
    MODEL2VEC_USAGE,
    MODEL2VEC_NOTE,
    distance=largest_turn,
    holds_settings=False,
    holds_unknown=False,
)
