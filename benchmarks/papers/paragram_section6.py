"""Section 6 of PARAGRAM-PHRASE (arXiv:1511.08198): how the norms of word vectors depend on frequency.

Spearman's and Pearson's correlation of the L1 and L2 norm of each word with its inverse frequency, and Pearson's with
minus the logarithm of its frequency; and the common words with the largest and the smallest norms.

    python benchmarks/papers/paragram_section6.py small glove.100d.100k.txt.gz --frequencies news.en
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from comparison import table
from scipy.stats import pearsonr, spearmanr
from spaces import norms, parser

COMMON_WORDS = 10_000
NAMED_WORDS = 10


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each space and norm."""
    options = parser(__doc__).parse_args(arguments)
    rows = []
    notes = []
    for space in options.spaces:
        found = norms(space, options.frequencies)
        frequent = np.argsort(-found.counts, kind="stable")[:COMMON_WORDS]
        for label, values in (("l1", found.l1), ("l2", found.l2)):
            correlations = (
                spearmanr(values, 1 / found.counts).statistic,
                pearsonr(values, 1 / found.counts).statistic,
                pearsonr(values, -np.log(found.counts)).statistic,
            )
            rows.append([space, label, *(f"{100 * value:.1f}" for value in correlations)])
            ordered = [found.words[row] for row in frequent[np.argsort(-values[frequent], kind="stable")]]
            largest, smallest = ordered[:NAMED_WORDS], ordered[::-1][:NAMED_WORDS]
            notes.append(f"{space}, {label}, largest: {', '.join(largest)}; smallest: {', '.join(smallest)}.")
    header = ["Space", "norm", "Spearman, 1/frequency", "Pearson, 1/frequency", "Pearson, -log frequency"]
    print(table(header, rows) + "\n")
    print("\n".join(notes))


if __name__ == "__main__":
    main()
