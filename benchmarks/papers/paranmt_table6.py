"""Table 6 of ParaNMT-50M (section 5.5): mega-batches of 1, 20 and 40 mini-batches.

The encoders are trained for 5 epochs on the same pairs, unless `--training` says otherwise.

    python benchmarks/papers/paranmt_table6.py news --models word --development sts --out mega-batches
"""

from __future__ import annotations

from collections.abc import Sequence

from comparison import Comparison, parser, percent, read_corpus, table


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each size M of a mega-batch."""
    program = parser(__doc__)
    program.add_argument("--mega-batches", nargs="+", type=int, default=[1, 20, 40])
    options = program.parse_args(arguments)
    comparison = Comparison(options, epochs=5)
    corpus = read_corpus(options.corpus)
    sample = comparison.sample(comparison.short(corpus))
    rows = []
    for size in options.mega_batches:
        figures = comparison.measure(f"M-{size}", corpus, sample, mega_batch=size)
        rows.append([str(size), f"{len(sample):,}", *percent(figures)])
    print("Pearson's r times 100 on the development set, by the size M of a mega-batch.\n")
    print(table(["M", "pairs", *options.models, "mean"], rows))


if __name__ == "__main__":
    main()
