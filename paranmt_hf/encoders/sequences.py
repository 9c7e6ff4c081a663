"""Encoders that read words in order: their modules, and the features that these read.

LSTM and BLSTM: ParaNMT-50M (Wieting & Gimpel 2018), sections 4 and 5, table 14.
"""

from __future__ import annotations

import numpy as np
import torch
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling, WordEmbeddings
from torch import nn
from transformers import PreTrainedTokenizerFast

from paranmt_hf.encoders.modules.paranmt_recurrent import AverageDirections, MaxPooling
from paranmt_hf.text.definitions import word_tokenizer


def word_sequence(units: list[str], weight: torch.Tensor | np.ndarray) -> WordEmbeddings:
    """Build the stock module that looks up the words of a sentence in order, from vectors [row, dimension]."""
    # Without naming the unknown word here, which would cut a text's own `[UNK]` out before the words are found.
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=word_tokenizer(units))
    return WordEmbeddings(tokenizer, torch.as_tensor(weight).float(), update_embeddings=True)


def lstm_modules(
    units: list[str],
    weight: torch.Tensor | np.ndarray,
    *,
    dimension: int,
    bidirectional: bool = False,
    average_directions: bool = False,
    pooling: str = "mean",
) -> list[nn.Module]:
    """Build the modules of a (B)LSTM encoder over word vectors [row, word dimension]; the first word is unknown.

    Section 4 averages the directions, whose states are `dimension` wide, table 14 concatenates them; `pooling` over
    the words is `mean` or `max`. The LSTM is torch's, which has no peepholes; the paper's has.
    """
    table = word_sequence(units, weight)
    lstm = LSTM(table.get_embedding_dimension(), dimension, bidirectional=bidirectional)
    modules: list[nn.Module] = [table, lstm]
    width = 2 * dimension if bidirectional else dimension
    if bidirectional and average_directions:
        modules.append(AverageDirections(dimension))
        width = dimension
    return [*modules, (MaxPooling if pooling == "max" else Pooling)(width, pooling_mode=pooling)]


def directions_behind(modules: list[nn.Module]) -> list[nn.Module]:
    """Convert a BLSTM that averages its directions and then its words to stock modules alone.

    Both are means, so they may change places: a stock `Dense` of fixed weights averages the directions of the sentence
    vector. Where the maximum is pooled they may not, and the modules stay as they are.
    """
    directions = modules[2] if len(modules) == 4 else None
    if not isinstance(directions, AverageDirections) or isinstance(modules[3], MaxPooling):
        return modules
    width = directions.dimension
    mean = Dense(2 * width, width, bias=False, activation_function=nn.Identity(), init_weight=_halves(width))
    return [*modules[:2], Pooling(2 * width, pooling_mode="mean"), mean]


def directions_before(modules: list[nn.Module]) -> list[nn.Module]:
    """Undo `directions_behind`; other modules are unchanged."""
    pooling, mean = modules[2:] if len(modules) == 4 else (None, None)
    if not isinstance(pooling, Pooling) or not isinstance(mean, Dense):
        return modules
    width = mean.out_features
    plain = isinstance(mean.activation_function, nn.Identity) and not mean.bias and not mean.use_residual
    if not plain or pooling.pooling_mode != "mean" or not torch.equal(mean.linear.weight, _halves(width)):
        return modules
    return [*modules[:2], AverageDirections(width), Pooling(width, pooling_mode="mean")]


def _halves(width: int) -> torch.Tensor:
    """Weights [width, 2 x width] that average dimension i of both directions."""
    return torch.eye(width).repeat(1, 2) / 2


def sequence_features(rows: np.ndarray, offsets: np.ndarray) -> dict[str, torch.Tensor]:
    """Pad sequences of rows [word], with bounds [sentence + 1], to the features of the stock modules.

    These are `input_ids` and `attention_mask` [sentence, word], and `sentence_lengths` [sentence].
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
