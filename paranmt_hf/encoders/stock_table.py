"""Tables of the stock module `StaticEmbedding`, as sentence-transformers and model2vec write them."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer

from paranmt_hf.encoders.families import WEIGHTS
from paranmt_hf.encoders.modules.paranmt_tables import WEIGHT

# Tensors of model2vec: a row for each token, or fewer rows and the row of each token; a weight for each token.
ROWS, ROW_OF_TOKEN, WEIGHT_OF_TOKEN = "embeddings", "mapping", "weights"


def read_stock_table(folder: Path) -> StaticEmbedding:
    """Read a table with its tokenizer, in the precision of its file; what model2vec stores as int8 becomes float32.

    Raises:
        ValueError: It holds whole numbers that model2vec does not write.
    """
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    stored = load_file(folder / WEIGHTS)
    rows = stored[WEIGHT] if WEIGHT in stored else _rows_of_model2vec(stored, tokenizer)
    if not rows.is_floating_point():
        raise ValueError(f"rows are floating-point numbers, or int8 of model2vec, and these are {rows.dtype}")
    return StaticEmbedding(tokenizer, embedding_weights=rows)


def _rows_of_model2vec(stored: dict[str, torch.Tensor], tokenizer: Tokenizer) -> torch.Tensor:
    """A row for each token [token, dimension]; model2vec averages such rows, whose scale int8 does not keep."""
    rows = stored[ROWS]
    if rows.dtype == torch.int8:
        rows = rows.float()
    if ROW_OF_TOKEN in stored:
        rows = rows[stored[ROW_OF_TOKEN].long()]
    if WEIGHT_OF_TOKEN in stored:
        rows = rows.float() * stored[WEIGHT_OF_TOKEN].float()[:, None]
    unknown = _unknown_token(tokenizer)
    if unknown is not None and rows.is_floating_point():
        # model2vec leaves unknown tokens out of the mean. Zeros shorten the vector and do not turn it.
        rows[unknown] = 0
    return rows.contiguous()


def _unknown_token(tokenizer: Tokenizer) -> int | None:
    """The id of the token for what has none; None if there is no such token."""
    model = json.loads(tokenizer.to_str())["model"]
    if model.get("unk_token") is not None:
        return tokenizer.token_to_id(model["unk_token"])
    return model.get("unk_id")
