"""Figure 1 of PARAGRAM-PHRASE (arXiv:1511.08198, section 5.2.1): encoders by the number of training pairs.

The encoders are trained for 10 epochs unless `--training` says otherwise. Pairs are taken at random, of which a
smaller sample is a part of a larger one, or in the order of the corpus, as PPDB has its best pairs first.

    python benchmarks/papers/paragram_figure1.py ppdb --sizes 1000 10000 100000 --models word --development sts \
        --sts sts SICK --out sizes --picture sizes.png
"""

from __future__ import annotations

from collections.abc import Sequence

from comparison import Comparison, parser, percent, read_corpus, table


def halves(size: int) -> list[int]:
    """Return a number of pairs and its halves, until there are fewer than 10, as in the paper."""
    found = [size]
    while found[-1] >= 10:
        found.append(found[-1] // 2)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each number of pairs, and draw a line for each encoder."""
    program = parser(__doc__)
    program.add_argument("--sizes", nargs="*", type=int, default=[], help="numbers of pairs; default: all, halved ...")
    program.add_argument("--order", choices=["random", "given"], default="random")
    program.add_argument("--picture", help="PNG file (needs matplotlib)")
    options = program.parse_args(arguments)
    comparison = Comparison(options, epochs=10, max_pairs=4_000_000)
    corpus = read_corpus(options.corpus)
    rows = comparison.short(corpus)
    ordered = comparison.sample(rows) if options.order == "random" else rows[: comparison.max_pairs]
    sizes = sorted({min(size, len(ordered)) for size in options.sizes or halves(len(ordered))})
    measured = []
    for size in sizes:
        measured.append(comparison.measure(f"{options.order}-{size}", corpus, ordered[:size]))
    where = "mean over the STS sets" if options.sts else "on the development set"
    print(f"Pearson's r times 100, {where}, by the number of training pairs.\n")
    lines = [[f"{size:,}", *percent(figures)] for size, figures in zip(sizes, measured, strict=True)]
    print(table(["pairs", *options.models, "mean"], lines))
    if options.picture:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.add_subplot()
        for number, model in enumerate(options.models):
            axes.plot(sizes, [100 * figures[number] for figures in measured], marker="o", label=model)
        axes.set(xscale="log", xlabel="training pairs", ylabel=f"Pearson x 100, {where}")
        axes.legend(frameon=False)
        figure.savefig(options.picture, dpi=120)


if __name__ == "__main__":
    main()
