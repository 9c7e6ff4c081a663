"""Table 4 of ParaNMT-50M: the same encoders trained on samples of several sources of text.

A source is an origin in the column `origin` of a corpus. The encoders are trained for 5 epochs on 100,000 pairs of
each source, unless `--training` says otherwise; a source with fewer pairs gives all of them.

    python benchmarks/papers/paranmt_table4.py news --models word --development sts --out sources
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from comparison import Comparison, parser, percent, read_corpus, table


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each source."""
    options = parser(__doc__).parse_args(arguments)
    comparison = Comparison(options, epochs=5, max_pairs=100_000)
    corpus = read_corpus(options.corpus)
    origins = np.array([origin or "no origin" for origin in corpus["origin"]])
    short = comparison.short(corpus)
    rows = []
    for number, origin in enumerate(dict.fromkeys(origins.tolist())):
        sample = comparison.sample(short[origins[short] == origin])
        figures = comparison.measure(f"source-{number}", corpus, sample)
        rows.append([origin, f"{(origins == origin).sum():,}", f"{len(sample):,}", *percent(figures)])
    print("Pearson's r times 100 on the development set, by the source that the encoders are trained on.\n")
    print(table(["source", "rows", "pairs", *options.models, "mean"], rows))


if __name__ == "__main__":
    main()
