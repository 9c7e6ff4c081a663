"""Pictures of the analyses, as PNG; they need matplotlib (extra `plots`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from paranmt_hf.evaluation.analysis.lengths import LengthTable
from paranmt_hf.evaluation.analysis.norms import NormTable
from paranmt_hf.evaluation.analysis.under_trained import CoverageTable
from paranmt_hf.util.files import replacing
from paranmt_hf.util.optional import require

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
# The line through the words is the median of so many parts of the frequencies, of equal width in the logarithm.
PARTS = 30
# Words of each part that are drawn; more would only make a blot.
DRAWN = 150


def _figure(width: float, height: float) -> Any:  # noqa: ANN401 - a figure of matplotlib
    require("matplotlib", "plots")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: Any, path: Path) -> None:  # noqa: ANN401
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    with replacing(path) as aside:
        figure.savefig(aside, format="png", dpi=120, metadata={"Software": None})


def draw_lengths(table: LengthTable, path: Path) -> None:
    """Draw a line for each model over the lengths, with intervals where there are some.

    Raises:
        InputError: matplotlib is not installed, or the file cannot be written.
    """
    figure = _figure(7, 4)
    axes = figure.add_subplot()
    # The last bin is all pairs.
    bins = table.bins[:-1]
    for number, model in enumerate(table.models):
        shown = [(place, each) for place, each in enumerate(bins) if each.pearson[number] is not None]
        places = np.array([place for place, _ in shown]) + 0.06 * (number - (len(table.models) - 1) / 2)
        values = 100 * np.array([each.pearson[number] for _, each in shown], np.float64)
        ends = [each.intervals[number] for _, each in shown]
        spread = None
        if all(ends):
            bounds = 100 * np.array(ends, np.float64)
            # Rounding may put a figure a little outside of its interval.
            spread = np.maximum(np.stack([values - bounds[:, 0], bounds[:, 1] - values]), 0)
        colour = COLOURS[number % len(COLOURS)]
        axes.errorbar(places, values, yerr=spread, marker="o", capsize=3, color=colour, label=model)
    axes.set_xticks(range(len(bins)), [f"{each.label}\n({each.pairs:,})" for each in bins])
    axes.set(xlabel="tokens of the longer side (pairs)", ylabel="Pearson x 100")
    axes.legend(frameon=False)
    _save(figure, path)


def draw_norms(table: NormTable, path: Path, *, norm: str = "l2", sif_a: float = 1e-3) -> None:
    """Draw norms against frequency, a point for each word and the median as a line; beside it the weights of SIF.

    Args:
        table: The norms.
        path: The PNG.
        norm: `l1` or `l2`; figure 1 of Sent2Vec has L2.
        sif_a: The a of SIF's weights a / (a + p).

    Raises:
        InputError: matplotlib is not installed, or the file cannot be written.
    """
    figure = _figure(10, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(2, 1), sharex=True)
    low, high = _ends(table)
    edges = np.geomspace(low, high * 1.001, PARTS + 1)
    highest = 0.0
    for number, each in enumerate(table.vectors):
        # Relative to its median, so that vectors of different dimensions share a scale.
        values = each.norms[norm] / (np.median(each.norms[norm]) or 1.0)
        highest = max(highest, float(np.quantile(values, 0.999)))
        part_of = np.digitize(each.frequencies, edges) - 1
        parts = [found for part in range(PARTS) if len(found := np.flatnonzero(part_of == part))]
        colour = COLOURS[number % len(COLOURS)]
        # Of each part the same number at most, so that frequent words are seen too, which are few.
        drawn = np.concatenate([part[:: len(part) // DRAWN + 1] for part in parts])
        left.scatter(each.frequencies[drawn], values[drawn], s=5, alpha=0.35, linewidths=0, color=colour)
        middles = [np.median(each.frequencies[part]) for part in parts]
        left.plot(middles, [np.median(values[part]) for part in parts], color=colour, linewidth=2.5, label=each.name)
    left.set(xscale="log", ylim=(0, 1.1 * highest))
    left.set(xlabel="frequency of the word", ylabel=f"{norm.upper()} norm / its median")
    left.legend(frameon=False, loc="lower left")
    grid = np.geomspace(low, high, 200)
    right.plot(grid, sif_a / (sif_a + grid), color="black")
    right.set(xlabel="frequency of the word", ylabel=f"weight of SIF, a = {sif_a:g}", ylim=(0, 1.05))
    _save(figure, path)


def _ends(table: NormTable) -> tuple[float, float]:
    """Smallest and largest frequency."""
    lows, highs = zip(*((each.frequencies.min(), each.frequencies.max()) for each in table.vectors), strict=True)
    return float(min(lows)), float(max(highs))


def draw_coverage(table: CoverageTable, path: Path) -> None:
    """Draw the share of under-trained tokens of each set, and beside it Pearson's r of each model.

    Where there are references, Pearson's r less the reference, and only the sets that have one.

    Raises:
        InputError: matplotlib is not installed, or the file cannot be written.
    """
    compared = [each for each in table.sets if each.reference is not None]
    sets = sorted(compared or table.sets, key=lambda each: each.under_trained)
    figure = _figure(9, 1.8 + 0.24 * len(sets))
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.5), sharey=True)
    left.barh(range(len(sets)), [100 * each.under_trained for each in sets], color="#bbbbbb")
    left.set_yticks(range(len(sets)), [each.title for each in sets])
    left.set_xlabel(f"tokens whose word was seen < {table.at_least:,} times, %")
    for number, model in enumerate(table.models):
        rho = table.spearman[number]
        label = model if rho is None else f"{model} (Spearman {rho:.2f})"
        values = [100 * (each.pearson[number] - (each.reference or 0.0)) for each in sets]
        right.plot(values, range(len(sets)), "o", color=COLOURS[number % len(COLOURS)], label=label)
    right.grid(axis="y", alpha=0.3)
    right.set_xlabel("Pearson x 100 less the reference" if compared else "Pearson x 100")
    if table.models:
        figure.legend(frameon=False, loc="outside upper right")
    _save(figure, path)
