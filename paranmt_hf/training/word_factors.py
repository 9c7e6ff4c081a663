"""One trained factor for each word, whose vector is fixed: PARAGRAM-PHRASE (arXiv:1511.08198), footnote 24."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.functional import embedding_bag

from paranmt_hf.encoders.modules.paranmt_averages import WordEmbedding


class ScaledRows(nn.Module):
    """In the place of the table of an average: rows [row, dimension] that are fixed, times a trained factor each."""

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
        """Average the rows [unit] of each sentence, which begin at `offsets` [sentence]: [sentence, dimension]."""
        total = embedding_bag(units, self.rows, offsets, mode="sum", per_sample_weights=self.factors[units])
        lengths = torch.diff(offsets, append=offsets.new_tensor([len(units)]))
        return total / lengths.clamp(min=1)[:, None]


@contextmanager
def scaled_words(average: WordEmbedding) -> Iterator[None]:
    """Train factors of the words inside a `with` block; afterwards the vectors are multiplied by them."""
    table = average.embedding
    scaled = ScaledRows(table.weight.detach().clone())
    average.embedding = scaled  # type: ignore[assignment]
    try:
        yield
    finally:
        with torch.no_grad():
            table.weight.copy_(scaled.weight)
        average.embedding = table
