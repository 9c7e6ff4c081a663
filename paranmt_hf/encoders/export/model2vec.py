"""Export WORD and TRIGRAM as a model2vec model."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.numpy import save_file

from paranmt_hf.encoders.export.formats import Encode, Format, largest_turn
from paranmt_hf.encoders.export.stock import tokenizer_and_table, write_modules
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.util.optional import available, require


def _write(encoder: SentenceEncoder, folder: Path) -> None:
    """Write what model2vec's `StaticModel` reads; by modules.json it is a sentence-transformers model too."""
    tokenizer, weight = tokenizer_and_table(encoder)
    save_file({"embeddings": weight.numpy()}, folder / "model.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = {"normalize": False, "max_length": None, "embedding_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf8")
    write_modules(folder, ".")


def _read(folder: Path) -> Encode | None:
    if not available("model2vec"):
        return None
    return require("model2vec", "model2vec").StaticModel.from_pretrained(folder).encode


USAGE = """from model2vec import StaticModel

vectors = StaticModel.from_pretrained("{name}").encode(["A dog runs."])"""
NOTE = (
    "Cosines are equal, lengths are not: model2vec leaves unknown units out, where the source counts them. Rows are "
    "float32. Releases of model2vec before 0.10 may cut texts after 512 units."
)
MODEL2VEC = Format(
    "model2vec",
    "WORD or TRIGRAM alone",
    ("word", "trigram"),
    _write,
    _read,
    "model2vec",
    USAGE,
    NOTE,
    distance=largest_turn,
    holds_settings=False,
    holds_unknown=False,
)
