"""Table 5 of ParaNMT-50M (section 5.4): which tenth of a corpus trains the best encoders, by several scores.

All rows are ranked by a score and cut into ten folds of equal size, of which fold 1 has the lowest scores; rows of
equal score are ranked by their places, and rows without a score have no rank. A sample of each fold, one million pairs
unless `--training max-pairs=N` says otherwise, trains the encoders for one epoch.

    python benchmarks/papers/paranmt_table5.py news --scores para_score trigram_overlap --models word \
        --development sts --out folds
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from comparison import Comparison, parser, percent, read_corpus, table

FOLDS = 10
SCORES = ["translation_score", "trigram_overlap", "para_score"]


def folds_of(scores: np.ndarray, folds: int) -> list[np.ndarray]:
    """Return the rows of each fold [row], lowest scores first.

    Args:
        scores: Score of each row [row]; NaN for a row without one, which is in no fold.
        folds: Number of folds, whose sizes differ by one at most.
    """
    ranked = np.argsort(scores, kind="stable")[: np.isfinite(scores).sum()]
    return np.array_split(ranked, folds)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the mean of the encoders of each fold by each score, then the figures of each encoder."""
    program = parser(__doc__)
    program.add_argument("--scores", nargs="+", default=SCORES, help="columns by which the rows are ranked")
    program.add_argument("--folds", type=int, default=FOLDS)
    options = program.parse_args(arguments)
    comparison = Comparison(options, epochs=1)
    corpus = read_corpus(options.corpus)
    short = comparison.short(corpus)
    means: list[list[str]] = [[str(fold)] for fold in range(1, options.folds + 1)]
    details = []
    for name in options.scores:
        scores = np.array(corpus[name], dtype=np.float64)
        for number, rows in enumerate(folds_of(scores, options.folds)):
            left = np.intersect1d(rows, short)
            sample = comparison.sample(left)
            figures = percent(comparison.measure(f"{name}-{number + 1}", corpus, sample))
            means[number].append(figures[-1])
            ends = [f"{scores[rows].min():.4f}", f"{scores[rows].max():.4f}"]
            counts = [f"{len(each):,}" for each in (rows, left, sample)]
            details.append([name, str(number + 1), *ends, *counts, *figures])
    print("Pearson's r times 100 on the development set, mean of the encoders; fold 1 has the lowest scores.\n")
    print(table(["fold", *options.scores], means))
    header = ["score", "fold", "from", "to", "rows", "left", "pairs", *options.models, "mean"]
    print(f"\n{table(header, details)}")


if __name__ == "__main__":
    main()
