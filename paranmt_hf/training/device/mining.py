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
    one_sided: bool = False,
    block: int | None = None,
) -> torch.Tensor:
    """Find the most similar allowed sentence of each sentence.

    Args:
        vectors: Sentence vectors [2 x pair, dimension]: the references, then the translations.
        exclusions: Sentence and what it excludes among those that are searched, sorted by sentence, as of
            `megabatch.excluded`, both [exclusion].
        bounds: Bounds of the sentences in the exclusions [sentence + 1], on the host.
        one_sided: Only references get a negative, and only another reference.
        block: Sentences that are compared with all others together; as many as give a block of 1 GB if left out.

    Returns:
        Position of each sentence's negative [2 x pair] (one-sided: [pair]), int64; any where none is allowed.
    """
    unit = normalize(vectors, dim=1)
    if one_sided:
        unit = unit[: len(unit) // 2]
    count = len(unit)
    block = block or max(1, BLOCK_NUMBERS // max(1, count))
    chosen = []
    for start in range(0, count, block):
        stop = min(start + block, count)
        similarities = unit[start:stop] @ unit.T
        inside = slice(int(bounds[start]), int(bounds[stop]))
        cells = (exclusions[0][inside].long() - start) * count + exclusions[1][inside]
        similarities.view(-1).index_fill_(0, cells, -2.0)
        chosen.append(similarities.argmax(dim=1))
    return torch.cat(chosen)
