"""How like its teacher an encoder is, on sentences that it has not seen.

Sentences are put into groups of neighbours, by the teacher's cosines. In each group, the cosines of all pairs under
the encoder are correlated (Pearson) with those under the teacher; the likeness is the mean of these correlations.
Groups of neighbours make it a hard measure: any encoder knows that unrelated sentences are unrelated.
"""

from __future__ import annotations

import numpy as np

from paranmt_hf.evaluation.similarities import directions

NEIGHBOURS = 50  # Number of sentences of a group


def likeness(vectors: np.ndarray, teacher: np.ndarray) -> float:
    """Compute the mean over groups of neighbours of the correlation of an encoder's cosines with its teacher's.

    Groups depend on the teacher alone. The sentences of an incomplete group do not count, nor does a group in which
    all cosines are equal.

    Args:
        vectors: Vectors of the encoder [sentence, dimension].
        teacher: Vectors of the teacher for the same sentences [sentence, dimension].

    Returns:
        The likeness, in [-1, 1]; 0 if no group counts.
    """
    # Imported here, so that `paranmt distill --help` does not load torch.
    import torch

    from paranmt_hf.training.neighbours import neighbour_order

    learned, wanted = directions(vectors), directions(teacher)
    order = neighbour_order(torch.from_numpy(wanted.astype(np.float32)), NEIGHBOURS, np.random.default_rng(0))
    upper, correlations = np.triu_indices(NEIGHBOURS, 1), []
    for start in range(0, len(order) - NEIGHBOURS + 1, NEIGHBOURS):
        group = order[start : start + NEIGHBOURS]
        cosines = [(side[group] @ side[group].T)[upper] for side in (learned, wanted)]
        # With a smaller standard deviation all cosines are equal, except for rounding.
        if min(side.std() for side in cosines) > 1e-7:
            correlations.append(np.corrcoef(*cosines)[0, 1])
    return float(np.mean(correlations)) if correlations else 0.0
