"""Modules of encoders that read words in order: RNN, identity-RNN, LSTM with peepholes, and pooling of LSTM states.

PARAGRAM-PHRASE (Wieting et al. 2016, arXiv:1511.08198), section 3; ParaNMT-50M (Wieting & Gimpel 2018), section 4.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from sentence_transformers.base.modules.module import Module
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

from .paranmt_tables import HUB_KEYS

ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu}
State = tuple[torch.Tensor, ...]


class AverageDirections(Module):
    """Averages the forward and the backward hidden state of each word, both `dimension` wide."""

    config_keys = ["dimension"]
    config_file_name = "directions_config.json"

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Replace `token_embeddings` [sentence, word, 2 x dimension] by the averages [sentence, word, dimension]."""
        forward, backward = features["token_embeddings"].split(self.dimension, dim=-1)
        features["token_embeddings"] = (forward + backward) / 2
        return features

    def get_embedding_dimension(self) -> int:
        """Number of dimensions of a word's state."""
        return self.dimension

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Write the configuration; there are no weights."""
        self.save_config(output_path)


class MaxPooling(Pooling):
    """Maximum over the words of a sentence; zeros for one without words, where the stock module returns -inf."""

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add `sentence_embedding` [sentence, dimension], the pooled states, to the features."""
        features = super().forward(features, **kwargs)
        empty = features["attention_mask"].sum(dim=1, keepdim=True) == 0
        features["sentence_embedding"] = features["sentence_embedding"].masked_fill(empty, 0)
        return features


class Recurrence(Module):
    """Base class of modules that read the words of a sentence in order; the sentence vector comes from the last state.

    It follows a `WordEmbeddings` module: it reads `token_embeddings` [sentence, word, in_features] and
    `sentence_lengths` [sentence]. The state starts as zeros, and the vector of a sentence without words is zeros. The
    products of the input weights are computed for all words at once. Then there is a step for each position, over only
    those sentences that have a word there.

    Args:
        in_features: Dimensions of the words' vectors.
        out_features: Dimensions of the state, and of the sentence vector.
        gates: Number of vectors, such as the gates of an LSTM, that a step computes from a word and the state.
        states: Number of vectors that a step hands to the next one; the first is the result.
    """

    config_keys = ["in_features", "out_features"]
    config_file_name = "recurrent_config.json"

    def __init__(self, in_features: int, out_features: int, *, gates: int = 1, states: int = 1) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self._states = states
        # `input` holds W_x and b, `state` W_h. Their rows are the dimensions of the state, gate after gate.
        self.input = nn.Linear(in_features, gates * out_features)
        self.state = nn.Linear(out_features, gates * out_features, bias=False)
        bound = 1 / math.sqrt(out_features)
        for weight in (self.input.weight, self.input.bias, self.state.weight):
            nn.init.uniform_(weight, -bound, bound)

    def step(self, products: torch.Tensor, state: State) -> State:
        """Read one word of each sentence, and return the new state.

        Args:
            products: W_x x + b of the words [sentence, gates x out_features].
            state: The state after the previous step: vectors [sentence, out_features], as many as `states`.
        """
        raise NotImplementedError

    def finish(self, last: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Convert the last states to sentence vectors, both [sentence, out_features].

        Args:
            last: State after the last word of each sentence.
            lengths: Number of words of each sentence [sentence].
        """
        return last

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Read the sentences, and add `sentence_embedding` [sentence, out_features] to the features."""
        tokens = features["token_embeddings"]
        lengths = features["sentence_lengths"].to(tokens.device)
        features["sentence_embedding"] = self.finish(self._last(tokens, lengths), lengths)
        return features

    def _last(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Compute the state after the last word of each sentence [sentence, out_features].

        Args:
            tokens: Vectors of the words [sentence, word, in_features].
            lengths: Number of words of each sentence [sentence].
        """
        count, longest, width = tokens.shape
        order = torch.argsort(lengths, descending=True, stable=True)
        # For position after position, the sentences that have a word there. Longer sentences come first, so the
        # sentences of a step are always the first ones of the step before.
        word, sentence = (torch.arange(longest, device=tokens.device)[:, None] < lengths[order]).nonzero(as_tuple=True)
        packed = tokens.reshape(-1, width).index_select(0, order[sentence] * longest + word)
        going = [number for number in torch.bincount(word, minlength=longest).tolist() if number]
        state: State = tuple(tokens.new_zeros(count, self.out_features) for _ in range(self._states))
        finished = []
        for products in self.input(packed).split(going) if going else ():
            if len(products) < len(state[0]):
                finished.append(state[0][len(products) :])
                state = tuple(part[: len(products)] for part in state)
            state = self.step(products, state)
        finished.append(state[0])
        return torch.cat(finished[::-1]).index_select(0, torch.argsort(order))

    def get_embedding_dimension(self) -> int:
        """Number of dimensions of a sentence vector."""
        return self.out_features

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write configuration and weights (always safetensors)."""
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=True)

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> Recurrence:
        """Read what `save` wrote, from a folder or the Hub."""
        kwargs = {key: kwargs[key] for key in kwargs if key in HUB_KEYS}
        module = cls(**cls.load_config(model_name_or_path, **kwargs))
        return cls.load_torch_weights(model_name_or_path, model=module, **kwargs)


class LastStateRNN(Recurrence):
    """RNN: h_t = f(W_x x_t + W_h h_(t-1) + b); the sentence vector is the last state.

    Args:
        in_features: Dimensions of the words' vectors.
        out_features: Dimensions of the state.
        activation: The function f, `tanh` or `relu`.
    """

    config_keys = ["in_features", "out_features", "activation"]

    def __init__(self, in_features: int, out_features: int, activation: str = "tanh") -> None:
        super().__init__(in_features, out_features)
        self.activation = activation

    def step(self, products: torch.Tensor, state: State) -> State:
        """Read one word of each sentence; see `Recurrence.step`."""
        total = torch.addmm(products, state[0], self.state.weight.t())
        return (ACTIVATIONS[self.activation](total),)


class IdentityRNN(Recurrence):
    """Identity-RNN: h_t = W_x x_t + W_h h_(t-1) + b; the last state is divided by the number of words.

    W_x and W_h start as identity matrices and b as zeros, so before training the sentence vector is the average of the
    vectors of its words.

    Args:
        out_features: Dimensions of the words' vectors and of the state.
    """

    config_keys = ["out_features"]

    def __init__(self, out_features: int) -> None:
        super().__init__(out_features, out_features)
        nn.init.eye_(self.input.weight)
        nn.init.eye_(self.state.weight)
        nn.init.zeros_(self.input.bias)

    def step(self, products: torch.Tensor, state: State) -> State:
        """Read one word of each sentence; see `Recurrence.step`."""
        return (torch.addmm(products, state[0], self.state.weight.t()),)

    def finish(self, last: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Divide by the number of words; see `Recurrence.finish`."""
        return last / lengths.clamp(min=1)[:, None]


class PeepholeLSTM(Recurrence):
    """LSTM with peepholes (Gers et al. 2002); the sentence vector is the last hidden state.

    Section 3 of PARAGRAM-PHRASE has it with and without its output gate:

    i_t = s(W_i [x_t, h_(t-1)] + p_i * c_(t-1) + b_i), f_t in the same way,
    c_t = f_t * c_(t-1) + i_t * tanh(W_c [x_t, h_(t-1)] + b_c),
    o_t = s(W_o [x_t, h_(t-1)] + p_o * c_t + b_o), h_t = o_t * tanh(c_t); without the gate h_t = tanh(c_t).

    A peephole p is one number for each dimension, and s is the logistic function. The weights hold the rows of i, f, c
    and o in this order, the peepholes those of i, f and o.

    Args:
        in_features: Dimensions of the words' vectors.
        out_features: Dimensions of the state.
        output_gate: Whether it has an output gate.
    """

    config_keys = ["in_features", "out_features", "output_gate"]

    def __init__(self, in_features: int, out_features: int, output_gate: bool = True) -> None:
        super().__init__(in_features, out_features, gates=4 if output_gate else 3, states=2)
        self.output_gate = output_gate
        self.peepholes = nn.Parameter(torch.empty(3 if output_gate else 2, out_features))
        nn.init.uniform_(self.peepholes, -1 / math.sqrt(out_features), 1 / math.sqrt(out_features))

    def step(self, products: torch.Tensor, state: State) -> State:
        """Read one word of each sentence; see `Recurrence.step`."""
        hidden, cell = state
        gates = torch.addmm(products, hidden, self.state.weight.t()).split(self.out_features, dim=1)
        enter = torch.sigmoid(torch.addcmul(gates[0], self.peepholes[0], cell))
        forget = torch.sigmoid(torch.addcmul(gates[1], self.peepholes[1], cell))
        cell = forget * cell + enter * torch.tanh(gates[2])
        hidden = torch.tanh(cell)
        if self.output_gate:
            hidden = hidden * torch.sigmoid(torch.addcmul(gates[3], self.peepholes[2], cell))
        return hidden, cell


# The modules of this file that a combination may hold.
MODULES = (AverageDirections, MaxPooling, LastStateRNN, IdentityRNN, PeepholeLSTM)
