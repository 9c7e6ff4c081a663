"""LSTMs that read each distinct beginning of a sentence once, for training on a CPU.

Sentences of a mini-batch begin alike, and some occur more than once: a negative is often a sentence of another pair.
The state behind the first words of a sentence depends on these words alone, so it is computed once for all sentences
that begin with them. The products of the input weights are computed once for each distinct word, nothing is computed
for padding, and the backward pass leaves out sentences whose gradient is zero, as that of a pair and its negatives is
once the margin is kept. All of this gives the states and gradients of torch's LSTM, up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sentence_transformers.sentence_transformer.modules import LSTM
from torch import nn
from torch.autograd.function import once_differentiable


@dataclass(frozen=True)
class Prefixes:
    """The distinct beginnings of sentences, shorter ones first; number 0 is the empty one."""

    levels: list[slice]  # The prefixes of one word, of two, ...
    words: torch.Tensor  # The last word of each [prefix], an index among the distinct words
    parents: torch.Tensor  # The prefix without its last word [prefix]
    places: torch.Tensor  # The prefix that ends with each word of the text [word]


def prefixes_of(words: np.ndarray, offsets: np.ndarray, *, backward: bool = False) -> Prefixes:
    """Find the prefixes of sentences, given by words [word] from 0 and bounds [sentence + 1].

    Backward, sentences are read from their end: these are the prefixes of the sentences turned around.
    """
    lengths, count = np.diff(offsets), int(words.max(initial=0)) + 1
    going, prefix = np.flatnonzero(lengths), np.zeros(len(lengths), np.int64)
    found, places = [np.zeros(1, np.int64)], np.zeros(len(words), np.int64)
    bounds = [0, 1]
    while len(going):
        length = len(bounds) - 1
        tokens = offsets[going + 1] - length if backward else offsets[going] + length - 1
        keys, inverse = np.unique(prefix[going] * count + words[tokens], return_inverse=True)
        prefix[going] = places[tokens] = bounds[-1] + inverse
        found.append(keys)
        bounds.append(bounds[-1] + len(keys))
        going = going[lengths[going] > length]
    parents, last = np.divmod(np.concatenate(found), count)
    levels = [slice(*level) for level in zip(bounds[1:-1], bounds[2:], strict=True)]
    return Prefixes(levels, torch.from_numpy(last), torch.from_numpy(parents), torch.from_numpy(places))


def prefix_features(rows: np.ndarray, offsets: np.ndarray, *, bidirectional: bool = False) -> dict[str, Any]:
    """Create the features of a `PrefixLSTM` from rows [word] and bounds [sentence + 1].

    `input_ids` are the distinct rows, and the stock `Pooling` finds words without padding by `cu_seq_lens_q`.
    """
    distinct, words = np.unique(rows, return_inverse=True)
    directions = (False, True) if bidirectional else (False,)
    return {
        "input_ids": torch.from_numpy(distinct.astype(np.int64)),
        "attention_mask": torch.from_numpy((np.diff(offsets) > 0).astype(np.int64)[:, None]),
        "cu_seq_lens_q": torch.from_numpy(offsets.astype(np.int64)),
        "prefixes": [prefixes_of(words, offsets, backward=backward) for backward in directions],
    }


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


class PrefixLSTM(LSTM):
    """The stock LSTM module, which also reads `prefix_features`.

    Args:
        stock: The stock module, of one layer, whose weights it shares.
    """

    def __init__(self, stock: LSTM) -> None:
        with torch.device("meta"):
            super().__init__(**stock.get_config_dict())
        self.encoder = stock.encoder

    def stock(self) -> LSTM:
        """The stock module with the same weights."""
        with torch.device("meta"):
            stock = LSTM(**self.get_config_dict())
        stock.encoder = self.encoder
        return stock

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Compute the states of words.

        For `prefix_features`, `token_embeddings` [distinct word, dimension] become the hidden states of all words
        [1, word, width].
        """
        if "prefixes" not in features:
            return super().forward(features)
        states = []
        for suffix, prefixes in zip(("", "_reverse"), features["prefixes"], strict=False):
            weight = getattr(self.encoder, f"weight_ih_l0{suffix}")
            recurrent = getattr(self.encoder, f"weight_hh_l0{suffix}")
            bias = getattr(self.encoder, f"bias_ih_l0{suffix}") + getattr(self.encoder, f"bias_hh_l0{suffix}")
            products = nn.functional.linear(features["token_embeddings"], weight, bias)
            states.append(_States.apply(products.float(), recurrent, prefixes))
        features["token_embeddings"] = torch.cat(states, dim=1)[None]
        return features


def use_prefixes(encoder: nn.Module) -> None:
    """Replace the stock LSTM modules of an encoder by ones that read prefixes; the weights are shared."""
    for container in list(encoder.modules()):
        for name, module in container.named_children():
            if type(module) is LSTM and module.num_layers == 1:
                container._modules[name] = PrefixLSTM(module)


class _States(torch.autograd.Function):
    """Hidden states of all words [word, width], given W x + b of the distinct words [word, 4 x width] and U.

    Rows of the weights are the gates i, f, g and o: c = f c' + i g and h = o tanh(c).
    """

    @staticmethod
    def forward(ctx: Any, products: torch.Tensor, weight: torch.Tensor, prefixes: Prefixes) -> torch.Tensor:  # noqa: ANN401
        width, count = weight.shape[1], len(prefixes.words)
        # Products of matrices have the type of the weights, which autocast chooses; all else is float32.
        weight = weight.to(torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else weight.dtype)
        turned = weight.t().contiguous()
        hidden, cells, all_gates = products.new_zeros(count, width), products.new_zeros(count, width), []
        for level in prefixes.levels:
            parents = prefixes.parents[level]
            gates = products.index_select(0, prefixes.words[level])
            gates += torch.mm(hidden.index_select(0, parents).to(turned.dtype), turned)
            enter, forget, new, out = gates.split(width, dim=1)
            gates[:, : 2 * width].sigmoid_()
            new.tanh_()
            out.sigmoid_()
            cell = torch.mul(forget, cells.index_select(0, parents), out=cells[level]).addcmul_(enter, new)
            torch.mul(out, cell.tanh(), out=hidden[level])
            if ctx.needs_input_grad[0]:
                all_gates.append(gates)
        ctx.prefixes, ctx.gates = prefixes, all_gates
        ctx.save_for_backward(products, weight, hidden, cells)
        return hidden.index_select(0, prefixes.places)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:  # noqa: ANN401
        products, weight, hidden, cells = ctx.saved_tensors
        prefixes, width = ctx.prefixes, weight.shape[1]
        of_hidden, of_cells, of_products = (torch.zeros_like(each) for each in (hidden, cells, products))
        active = upstream.abs().sum(dim=1).nonzero()[:, 0]
        places = prefixes.places[active]
        of_hidden.index_add_(0, places, upstream[active])
        needed = torch.zeros(len(hidden), dtype=torch.bool)
        needed[places] = True
        slopes, before = [], []
        for level, gates in zip(reversed(prefixes.levels), reversed(ctx.gates), strict=True):
            own = needed[level].nonzero()[:, 0]
            enter, forget, new, out = gates.index_select(0, own).split(width, dim=1)
            own += level.start
            parents = prefixes.parents[own]
            needed[parents] = True
            bent, by_hidden = cells.index_select(0, own).tanh(), of_hidden.index_select(0, own)
            by_cell = of_cells.index_select(0, own).add_(_by_tanh(by_hidden * out, bent))
            slope = torch.cat(
                [
                    _by_sigmoid(by_cell * new, enter),
                    _by_sigmoid(by_cell * cells.index_select(0, parents), forget),
                    _by_tanh(by_cell * enter, new),
                    _by_sigmoid(by_hidden * bent, out),
                ],
                dim=1,
            )
            of_products.index_add_(0, prefixes.words[own], slope)
            slope = slope.to(weight.dtype)
            of_hidden.index_add_(0, parents, torch.mm(slope, weight).float())
            of_cells.index_add_(0, parents, by_cell * forget)
            slopes.append(slope)
            before.append(parents)
        if not slopes:
            return of_products, torch.zeros_like(weight, dtype=hidden.dtype), None
        states = hidden.index_select(0, torch.cat(before)).to(weight.dtype)
        return of_products, torch.mm(torch.cat(slopes).t(), states).float(), None


_by_sigmoid, _by_tanh = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward
