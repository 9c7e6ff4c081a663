"""A loss that learns a teacher's similarities, for your own `SentenceTransformerTrainer`. See docs/negatives.md."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import nn

from paranmt_hf.errors import refuse
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.losses import listwise_loss


class ListwiseLoss(nn.Module):
    """The loss of `listwise_loss` over all sentences of a mini-batch, as with `--teaching teacher_loss=listwise`.

    As for `MSELoss`, the column `label` holds the teacher's vectors: for one column of sentences the vector of its
    sentence, for several columns a list with the vector of each.

    Args:
        model: The model under training.
        temperature: Temperature of the softmax; the lower it is, the more only the nearest sentences count.
    """

    def __init__(self, model: SentenceTransformer, temperature: float = TrainConfig.temperature) -> None:
        super().__init__()
        self.model, self.temperature = model, TrainConfig(temperature=temperature).temperature

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: torch.Tensor | None) -> torch.Tensor:
        """Compute the loss, a scalar.

        Args:
            sentence_features: Features of each column of sentences.
            labels: Vectors of the teacher [row, dimension], or [row, column, dimension] for several columns.
        """
        columns = [self.model(features)["sentence_embedding"] for features in sentence_features]
        given = torch.empty(0) if labels is None else labels
        taught = given.unsqueeze(1) if given.dim() == 2 else given
        refuse(
            taught.dim() != 3 or taught.shape[:2] != (len(columns[0]), len(columns)),
            f"expected labels [row, column, dimension] of {len(columns[0])} rows and {len(columns)} columns of "
            f"sentences, found {list(given.shape)}; give each row the teacher's vector of each of its sentences",
        )
        vectors = torch.cat(columns)
        return listwise_loss(vectors, taught.transpose(0, 1).flatten(0, 1).to(vectors), self.temperature)

    def get_config_dict(self) -> dict[str, Any]:
        """Return the values that the trainer shows in the model card."""
        return {"temperature": self.temperature}
