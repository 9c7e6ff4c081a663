"""How like its teacher an encoder is, on sentences that it has not seen.

Sentences are put into groups of neighbours in the teacher's eyes; in each group Pearson's correlation between the
cosines of all pairs under the encoder and under the teacher, and of these the mean. Among neighbours it is hard: that
an unrelated sentence is unrelated every encoder knows.
"""

from __future__ import annotations

import numpy as np

from paranmt_hf.evaluation.similarities import directions

NEIGHBOURS = 50  # Sentences of a group


def likeness(vectors: np.ndarray, teacher: np.ndarray) -> float:
    """Mean over groups of neighbours of the correlation of cosines with the teacher's, in [-1, 1].

    Both are vectors of the same sentences [sentence, dimension]. Groups depend on the teacher alone; the
    sentences of an incomplete one do not count, nor does a group in which all cosines are equal.
    """
    # With these imports, `paranmt distill --help` would load torch.
    import torch

    from paranmt_hf.training.neighbours import neighbour_order

    own, wanted = directions(vectors), directions(teacher)
    order = neighbour_order(torch.from_numpy(wanted.astype(np.float32)), NEIGHBOURS, np.random.default_rng(0))
    upper, found = np.triu_indices(NEIGHBOURS, 1), []
    for start in range(0, len(order) - NEIGHBOURS + 1, NEIGHBOURS):
        group = order[start : start + NEIGHBOURS]
        cosines = [(side[group] @ side[group].T)[upper] for side in (own, wanted)]
        # A smaller standard deviation is nothing but rounding.
        if min(side.std() for side in cosines) > 1e-7:
            found.append(np.corrcoef(*cosines)[0, 1])
    return float(np.mean(found)) if found else 0.0
