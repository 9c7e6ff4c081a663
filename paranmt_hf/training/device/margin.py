"""The margin loss with its gradient written out: a quarter of the operations that autograd makes of it."""

from __future__ import annotations

import torch

# Below this length a vector is divided by this, as torch's `normalize` does.
SHORTEST = 1e-12


def margin_loss_and_gradient(
    vectors: torch.Tensor, roles: int, margin: float, of: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute `margin_loss` and its gradient.

    Args:
        vectors: Vectors s, s', t and, with two sides, t' of all pairs [role x pair, dimension].
        roles: Number of roles, 3 or 4.
        margin: d, above 0.
        of: Pairs of the mini-batch, of which these are a part; these if left out.

    Returns:
        The loss, a scalar, and its gradient [role x pair, dimension].
    """
    shaped = vectors.unflatten(0, (roles, -1))
    sides, pairs = roles - 2, of or shaped.shape[1]
    lengths = torch.linalg.vector_norm(shaped, dim=2, keepdim=True).clamp_min(SHORTEST)
    unit = shaped / lengths
    gap = margin - (unit[0] * unit[1]).sum(dim=1)
    hinge = gap + (unit[:sides] * unit[2:]).sum(dim=2)
    loss = hinge.clamp(min=0).sum() / pairs
    # What a cosine weighs in the loss: a negative's of each side [side, pair, 1], and minus that of the pair.
    active = ((hinge >= 0).to(hinge.dtype) / pairs).unsqueeze(2)
    # With respect to the unit vectors: of s it is t, weighed, less s', weighed by both sides.
    own = unit[:2].flip(0) * -active.sum(dim=0)
    own[:sides].addcmul_(active, unit[2:])
    slope = torch.cat([own, active * unit[:sides]])
    # With respect to the vectors: what is along a unit vector changes only the length.
    along = (slope * unit).sum(dim=2, keepdim=True)
    return loss, ((slope - along * unit) / lengths).flatten(0, 1)
