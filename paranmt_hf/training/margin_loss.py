"""The margin loss with one negative for each side of a pair."""

from __future__ import annotations

import torch
from torch.nn.functional import normalize


def margin_loss(
    references: torch.Tensor,
    translations: torch.Tensor,
    reference_negatives: torch.Tensor,
    translation_negatives: torch.Tensor | None = None,
    *,
    margin: float,
) -> torch.Tensor:
    """Mean over the pairs of max(0, d - cos(s, s') + cos(s, t)) + max(0, d - cos(s, s') + cos(s', t')).

    arXiv:1511.08198, equation 1; ParaNMT-50M (Wieting & Gimpel 2018), section 4, prints the first term alone. The
    margin is relative: sentence-transformers' `MegaBatchMarginLoss` has two absolute ones and is another objective.

    Args:
        references: Vectors s [pair, dimension].
        translations: Vectors s' [pair, dimension].
        reference_negatives: Vectors t [pair, dimension], the negative of each s.
        translation_negatives: Vectors t' [pair, dimension], the negative of each s'; None leaves out the second term.
        margin: d, above 0.

    Returns:
        The loss, a scalar.
    """
    left, right = normalize(references, dim=1), normalize(translations, dim=1)
    gap = margin - (left * right).sum(dim=1)
    loss = (gap + (left * normalize(reference_negatives, dim=1)).sum(dim=1)).clamp(min=0)
    if translation_negatives is not None:
        loss = loss + (gap + (right * normalize(translation_negatives, dim=1)).sum(dim=1)).clamp(min=0)
    return loss.mean()
