"""Hard negatives on a device, without a look back to the host; `megabatch.mine` says what they are."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.functional import normalize

# Similarities of a block: 1 GB in float32.
BLOCK_NUMBERS = 1 << 28


def hardest(
    vectors: torch.Tensor,
    exclusions: tuple[torch.Tensor, torch.Tensor],
    bounds: np.ndarray,
    *,
    asking: torch.Tensor | None = None,
    block: int | None = None,
) -> torch.Tensor:
    """Find the most similar allowed sentence of each sentence.

    Args:
        vectors: Vectors of the sentences that are searched [sentence, dimension].
        exclusions: Which of the sentences that ask excludes which of those that are searched, sorted by the former,
            both [exclusion].
        bounds: Bounds of the sentences that ask in the exclusions [asking + 1], on the host.
        asking: Positions of the sentences that ask [asking]; all if left out.
        block: Sentences that are compared with all others together; as many as give a block of 1 GB if left out.

    Returns:
        Position of each one's negative [asking], int64; any where none is allowed.
    """
    unit = normalize(vectors, dim=1)
    own = unit if asking is None else unit.index_select(0, asking)
    count = len(unit)
    block = block or max(1, BLOCK_NUMBERS // max(1, count))
    chosen = []
    for start in range(0, len(own), block):
        stop = min(start + block, len(own))
        similarities = own[start:stop] @ unit.T
        inside = slice(int(bounds[start]), int(bounds[stop]))
        cells = (exclusions[0][inside].long() - start) * count + exclusions[1][inside]
        similarities.view(-1).index_fill_(0, cells, -2.0)
        chosen.append(similarities.argmax(dim=1))
    return torch.cat(chosen)
