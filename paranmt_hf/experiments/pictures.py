"""Pictures as PNG; they need matplotlib (extra `plots`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paranmt_hf.evaluation.results import Results
from paranmt_hf.util.files import replacing, result_file
from paranmt_hf.util.optional import require

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def check_picture(path: Path | None) -> None:
    """Reject a path where no figure can be written, before the work."""
    if path is not None:
        result_file(path, [".png"], option="picture")
        require("matplotlib", "plots")


def new_figure(width: float, height: float) -> Any:  # noqa: ANN401 - a figure of matplotlib
    """Create a figure of matplotlib, in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: Path) -> None:  # noqa: ANN401
    """Write a figure as PNG; the same figure gives the same bytes."""
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    with replacing(path) as aside:
        # Without the version of the library.
        figure.savefig(aside, format="png", dpi=120, metadata={"Software": None})


@dataclass(frozen=True)
class Line:
    """A line of a figure: its label, Pearson's r at values of x, its intervals, and the style of matplotlib."""

    label: str
    x: Sequence[float]
    pearson: Sequence[float]
    intervals: Sequence[tuple[float, float]] | None = None
    style: str = "-"


def draw_lines(lines: Sequence[Line], path: Path, **axes: Any) -> None:  # noqa: ANN401
    """Draw lines, times 100; `axes` are properties of matplotlib's axes, such as `xlabel` and `xscale`."""
    figure = new_figure(7, 4)
    plot = figure.add_subplot()
    for line in lines:
        y, spread = 100 * np.array(line.pearson), None
        if line.intervals is not None:
            bounds = 100 * np.array(line.intervals)
            spread = [y - bounds[:, 0], bounds[:, 1] - y]
        plot.errorbar(line.x, y, yerr=spread, fmt=line.style, marker="o", capsize=3, label=line.label)
    plot.set(**axes)
    ticks = sorted({value for line in lines for value in line.x})
    plot.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks], minor=False)
    plot.minorticks_off()
    plot.legend(frameon=False)
    save_figure(figure, path)


def draw_lengths(results: Sequence[Results], path: Path) -> None:
    """Draw a line for each model over the lengths, with intervals if there are some."""
    figure = new_figure(7, 4)
    axes = figure.add_subplot()
    # The last row is all pairs.
    bins = [row.name for row in results[0].rows][:-1]
    for number, each in enumerate(results):
        shown = [(place, row) for place, row in enumerate(list(each.rows)[:-1]) if row.values]
        places = np.array([place for place, _ in shown]) + 0.06 * (number - (len(results) - 1) / 2)
        values = 100 * np.array([row.main for _, row in shown])
        spread = None
        if all(row.interval for _, row in shown):
            bounds = 100 * np.array([row.interval for _, row in shown])
            # Rounding may put a figure a little outside of its interval.
            spread = np.maximum(np.stack([values - bounds[:, 0], bounds[:, 1] - values]), 0)
        colour = COLOURS[number % len(COLOURS)]
        axes.errorbar(places, values, yerr=spread, marker="o", capsize=3, color=colour, label=each.model)
    axes.set_xticks(range(len(bins)), [f"{row.name}\n({row.items:,})" for row in list(results[0].rows)[:-1]])
    axes.set(xlabel="tokens of the longer side (pairs)", ylabel="Pearson x 100")
    axes.legend(frameon=False)
    save_figure(figure, path)


def draw_coverage(results: Sequence[Results], path: Path, at_least: int) -> None:
    """Draw the share of under-trained tokens of each set, and next to it Pearson's r of each model.

    Of sets with published systems: Pearson's r less that of their 75th percentile.
    """
    compared = [row for row in results[0].tables["Set"] if "systems" in row.values]
    sets = sorted(compared or results[0].tables["Set"], key=lambda row: row["under_trained"])
    figure = new_figure(9, 1.8 + 0.24 * len(sets))
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.5), sharey=True)
    left.barh(range(len(sets)), [100 * row["under_trained"] for row in sets], color="#bbbbbb")
    left.set_yticks(range(len(sets)), [row.name for row in sets])
    left.set_xlabel(f"tokens whose word was seen < {at_least:,} times, %")
    for number, each in enumerate(results):
        rho = each.value("Correlation")
        label = each.model if rho is None else f"{each.model} (Spearman {rho:.2f})"
        values = [100 * ((each.value(row.name) or 0.0) - row.values.get("systems", 0.0)) for row in sets]
        right.plot(values, range(len(sets)), "o", color=COLOURS[number % len(COLOURS)], label=label)
    right.grid(axis="y", alpha=0.3)
    right.set_xlabel("Pearson x 100 less that of the 75th percentile of systems" if compared else "Pearson x 100")
    figure.legend(frameon=False, loc="outside upper right")
    save_figure(figure, path)
