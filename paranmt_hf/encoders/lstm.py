"""LSTM and BLSTM: average of hidden states. ParaNMT-50M (Wieting & Gimpel 2018), sections 4 and 5, table 14."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sentence_transformers.base.modules.module import Module
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling, WordEmbeddings
from torch import nn
from transformers import PreTrainedTokenizerFast

from paranmt_hf.encoders.word import word_tokenizer


class AverageDirections(Module):
    """Mean of the forward and the backward hidden state of each word; both have the same width."""

    config_keys = ["dimension"]
    config_file_name = "directions_config.json"

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Turn `token_embeddings` [sentence, word, 2 x dimension] into [sentence, word, dimension]."""
        forward, backward = features["token_embeddings"].split(self.dimension, dim=-1)
        features["token_embeddings"] = (forward + backward) / 2
        return features

    def get_embedding_dimension(self) -> int:
        """Number of dimensions of a word's state."""
        return self.dimension

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Write the configuration; there are no weights."""
        self.save_config(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> AverageDirections:
        """Read what `save` wrote."""
        hub = ("subfolder", "token", "cache_folder", "revision", "local_files_only")
        return cls(**cls.load_config(model_name_or_path, **{key: kwargs[key] for key in kwargs if key in hub}))


def lstm_modules(
    units: list[str],
    weight: torch.Tensor | np.ndarray,
    *,
    dimension: int,
    bidirectional: bool = False,
    average_directions: bool = False,
    pooling: str = "mean",
) -> list[nn.Module]:
    """Make the modules of an (B)LSTM encoder; stock ones unless directions are averaged.

    The LSTM is torch's, which has no peepholes; the paper's has.

    Args:
        units: Word of each row; the first is the unknown word.
        weight: Word vectors [row, word dimension].
        dimension: Width of the hidden state of one direction.
        bidirectional: Add the LSTM that reads backwards.
        average_directions: Average both directions' states; else they are concatenated.
        pooling: `mean` or `max` over the words.
    """
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=word_tokenizer(units), unk_token=units[0])
    table = WordEmbeddings(tokenizer, torch.as_tensor(weight).float(), update_embeddings=True)
    lstm = LSTM(table.get_embedding_dimension(), dimension, bidirectional=bidirectional)
    modules: list[nn.Module] = [table, lstm]
    width = 2 * dimension if bidirectional else dimension
    if bidirectional and average_directions:
        modules.append(AverageDirections(dimension))
        width = dimension
    return [*modules, Pooling(width, pooling_mode=pooling)]


def sequence_features(rows: np.ndarray, offsets: np.ndarray) -> dict[str, torch.Tensor]:
    """Pad sequences of rows into what the stock modules read.

    Args:
        rows: Word of each position as a row of the table [word], sentence after sentence.
        offsets: Bounds [sentence + 1].

    Returns:
        `input_ids` and `attention_mask` [sentence, word], and `sentence_lengths` [sentence].
    """
    lengths = np.diff(offsets)
    mask = np.arange(max(1, int(lengths.max(initial=0)))) < lengths[:, None]
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = rows
    return {
        "input_ids": torch.from_numpy(ids),
        "attention_mask": torch.from_numpy(mask.astype(np.int64)),
        "sentence_lengths": torch.from_numpy(lengths.astype(np.int64)),
    }
