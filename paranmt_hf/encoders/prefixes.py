"""LSTMs that read each distinct beginning of a sentence once, for training on a CPU.

Many sentences of a mini-batch begin alike, and some occur more than once: a negative is often a sentence of another
pair. The state behind the first words of a sentence depends on these words alone, so it is computed once for all
sentences that begin with them. Further work is saved:

- The products of the input weights are computed once for each distinct word.
- Nothing is computed for padding.
- The backward pass leaves out sentences whose gradient is zero, such as those of a pair that keeps the margin.

The states and gradients are those of torch's LSTM, up to rounding.
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
    """The distinct beginnings (prefixes) of some sentences, shorter ones first; prefix 0 is the empty one.

    Attributes:
        levels: Range of the prefixes of one word, then of those of two words, and so on.
        words: Last word of each prefix [prefix], as an index among the distinct words.
        parents: The prefix that remains without the last word [prefix].
        places: The prefix that ends at each word of the text [word].
    """

    levels: list[slice]
    words: torch.Tensor
    parents: torch.Tensor
    places: torch.Tensor


def prefixes_of(words: np.ndarray, offsets: np.ndarray, *, backward: bool = False) -> Prefixes:
    """Find the distinct prefixes of sentences.

    Args:
        words: Number of each word [word], from 0.
        offsets: Bounds of the sentences in them [sentence + 1].
        backward: Whether sentences are read from their end, so that prefixes are those of the reversed sentences.
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
    """Create the features that a `PrefixLSTM` reads.

    `input_ids` are the distinct rows. `cu_seq_lens_q` are the bounds of the sentences, by which the stock `Pooling`
    finds their words in a sequence without padding.

    Args:
        rows: Row of each word [word].
        offsets: Bounds of the sentences in them [sentence + 1].
        bidirectional: Whether the LSTM reads in both directions.
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
    """Create the features that the stock modules read: sentences padded to the same length.

    Args:
        rows: Row of each word [word].
        offsets: Bounds of the sentences in them [sentence + 1].

    Returns:
        `input_ids` and `attention_mask` [sentence, word], and `sentence_lengths` [sentence], all int64.
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
    """The stock LSTM module, which can also read `prefix_features`.

    Args:
        stock: The stock module, of one layer, whose weights it shares.
    """

    def __init__(self, stock: LSTM) -> None:
        with torch.device("meta"):
            super().__init__(**stock.get_config_dict())
        self.encoder = stock.encoder

    def stock(self) -> LSTM:
        """Return a stock module that shares the weights."""
        with torch.device("meta"):
            stock = LSTM(**self.get_config_dict())
        stock.encoder = self.encoder
        return stock

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Replace `token_embeddings` by the hidden states of the words.

        For `prefix_features`, these are the vectors of the distinct words [distinct word, dimension], and become the
        states of all words of the sentences [1, word, width]. For other features the stock module does it.
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
    """Replace the stock LSTM modules of an encoder, in place, by ones that read prefixes and share the weights."""
    for container in list(encoder.modules()):
        for name, module in container.named_children():
            if type(module) is LSTM and module.num_layers == 1:
                container._modules[name] = PrefixLSTM(module)


class _States(torch.autograd.Function):
    """Computes the hidden states of all words [word, width], with the gradient.

    Given are W x + b of the distinct words [distinct word, 4 x width] and the recurrent weights U [4 x width, width],
    whose rows are the gates i, f, g and o: c = f c' + i g and h = o tanh(c).
    """

    @staticmethod
    def forward(ctx: Any, products: torch.Tensor, weight: torch.Tensor, prefixes: Prefixes) -> torch.Tensor:  # noqa: ANN401
        width, count = weight.shape[1], len(prefixes.words)
        # Under autocast, matrix products are computed in its type, and everything else in float32.
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
        # The gradients of `hidden`, `cells` and `products`.
        of_hidden, of_cells, of_products = (torch.zeros_like(each) for each in (hidden, cells, products))
        active = upstream.abs().sum(dim=1).nonzero()[:, 0]
        places = prefixes.places[active]
        of_hidden.index_add_(0, places, upstream[active])
        needed = torch.zeros(len(hidden), dtype=torch.bool)
        needed[places] = True
        slopes, before = [], []
        for level, gates in zip(reversed(prefixes.levels), reversed(ctx.gates), strict=True):
            # The prefixes of this level that get a gradient, as positions in the level and then among all prefixes.
            reached = needed[level].nonzero()[:, 0]
            enter, forget, new, out = gates.index_select(0, reached).split(width, dim=1)
            reached += level.start
            parents = prefixes.parents[reached]
            needed[parents] = True
            bent, by_hidden = cells.index_select(0, reached).tanh(), of_hidden.index_select(0, reached)
            by_cell = of_cells.index_select(0, reached).add_(_by_tanh(by_hidden * out, bent))
            slope = torch.cat(
                [
                    _by_sigmoid(by_cell * new, enter),
                    _by_sigmoid(by_cell * cells.index_select(0, parents), forget),
                    _by_tanh(by_cell * enter, new),
                    _by_sigmoid(by_hidden * bent, out),
                ],
                dim=1,
            )
            of_products.index_add_(0, prefixes.words[reached], slope)
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
