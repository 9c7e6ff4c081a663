"""Train one factor for each word, whose vector is fixed: PARAGRAM-PHRASE (arXiv:1511.08198), footnote 24."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.functional import embedding_bag

from paranmt_hf.encoders.modules.paranmt_averages import WordEmbedding


class ScaledRows(nn.Module):
    """A module in place of the table of an average: fixed rows, each times a trained factor.

    Args:
        rows: The rows [row, dimension].
    """

    rows: torch.Tensor

    def __init__(self, rows: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("rows", rows, persistent=False)
        self.factors = nn.Parameter(torch.ones(len(rows)))

    @property
    def weight(self) -> torch.Tensor:
        """The rows times their factors [row, dimension]."""
        return self.rows * self.factors[:, None]

    def forward(self, units: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """Compute the mean of the scaled rows of each sentence [sentence, dimension].

        Args:
            units: Row of each unit, sentence after sentence [unit].
            offsets: Position of the first unit of each sentence [sentence].
        """
        total = embedding_bag(units, self.rows, offsets, mode="sum", per_sample_weights=self.factors[units])
        lengths = torch.diff(offsets, append=offsets.new_tensor([len(units)]))
        return total / lengths.clamp(min=1)[:, None]


@contextmanager
def scaled_words(average: WordEmbedding) -> Iterator[None]:
    """Train factors of an average's words inside a `with` block; at its end the vectors are multiplied by them."""
    table = average.embedding
    scaled = ScaledRows(table.weight.detach().clone())
    average.embedding = scaled  # type: ignore[assignment]
    try:
        yield
    finally:
        with torch.no_grad():
            table.weight.copy_(scaled.weight)
        average.embedding = table
