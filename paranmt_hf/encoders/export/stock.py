"""Export WORD and TRIGRAM as a stock `StaticEmbedding`, which plain sentence-transformers loads without a flag."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer

from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.contents import SETTINGS
from paranmt_hf.encoders.export.formats import Encode, Format
from paranmt_hf.encoders.export.tokenizers import tokenizer_of
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

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


def _write(encoder: SentenceEncoder, folder: Path) -> None:
    """Write a stock module; float32, because it would average narrower rows in their own precision."""
    tokenizer, weight = tokenizer_and_table(encoder)
    settings = {name: getattr(encoder, name) for name in SETTINGS}
    save(SentenceTransformer(modules=[StaticEmbedding(tokenizer, weight)], device="cpu", **settings), folder)
    # Releases before 5 take a module without a folder of its own for a Transformer.
    (folder / STATIC_FOLDER).mkdir()
    for file in ("model.safetensors", "tokenizer.json"):
        (folder / file).rename(folder / STATIC_FOLDER / file)
    write_modules(folder, STATIC_FOLDER)


def _read(folder: Path) -> Encode | None:
    return SentenceTransformer(str(folder), device="cpu").encode


USAGE = """from sentence_transformers import SentenceTransformer

vectors = SentenceTransformer("{name}").encode(["A dog runs."])"""
MODEL2VEC_USE = """from model2vec import StaticModel

vectors = StaticModel.from_pretrained("{name}").encode(["A dog runs."])"""
NOTE = "Rows are float32, whatever precision the source stores."
STATIC = Format("static", "WORD alone", ("word",), _write, _read, "sentence-transformers", USAGE, NOTE)
TOKENIZERS = Format("tokenizers", "TRIGRAM alone", ("trigram",), _write, _read, "sentence-transformers", USAGE, NOTE)
