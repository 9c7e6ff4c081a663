"""Figure 1 of Sent2Vec (arXiv:1703.02507): L2 norms of word vectors against frequency, next to the weights of SIF.

python benchmarks/papers/sent2vec_figure1.py models/sent2vec glove.txt --frequencies text.txt --picture norms.png
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from spaces import norms, parser

SIF_A = 1e-3  # The constant a of SIF's weight a / (a + frequency), as in the paper
PARTS = 30  # Number of parts of the frequencies, equally wide in the logarithm; the line shows the median of each
DRAWN = 150  # Words drawn from each part, so that frequent words, which are few, are seen too


def medians(frequencies: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the median frequency and the median value of each part [part], and the drawn words [drawn]."""
    edges = np.geomspace(frequencies.min(), frequencies.max() * 1.001, PARTS + 1)
    part_of = np.digitize(frequencies, edges) - 1
    parts = [np.flatnonzero(part_of == part) for part in range(PARTS)]
    parts = [part for part in parts if len(part)]
    middle = np.array([np.median(frequencies[part]) for part in parts])
    drawn = np.concatenate([part[:: len(part) // DRAWN + 1] for part in parts])
    return middle, np.array([np.median(values[part]) for part in parts]), drawn


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the picture."""
    program = parser(__doc__)
    program.add_argument("--picture", required=True, help="PNG file")
    options = program.parse_args(arguments)
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1), sharex=True)
    for space in options.spaces:
        found = norms(space, options.frequencies)
        frequencies = found.counts / found.total
        # Norms are divided by their median, so that vectors of different dimensions share a scale.
        values = found.l2 / np.median(found.l2)
        middle, line, drawn = medians(frequencies, values)
        (shown,) = left.plot(middle, line, linewidth=2.5, label=space)
        left.scatter(frequencies[drawn], values[drawn], s=5, alpha=0.35, linewidths=0, color=shown.get_color())
        grid = np.geomspace(frequencies.min(), frequencies.max(), 200)
        right.plot(grid, SIF_A / (SIF_A + grid), color="black")
    left.set(xscale="log", xlabel="frequency of the word", ylabel="L2 norm / its median")
    left.legend(frameon=False, loc="lower left")
    right.set(xlabel="frequency of the word", ylabel=f"weight of SIF, a = {SIF_A:g}", ylim=(0, 1.05))
    figure.savefig(options.picture, dpi=120)
    print(f"{options.picture}: {len(options.spaces)} spaces")


if __name__ == "__main__":
    main()
