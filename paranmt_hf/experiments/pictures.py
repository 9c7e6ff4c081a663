"""Pictures as PNG; they need matplotlib (extra `plots`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.util.files import replacing, result_file
from paranmt_hf.util.optional import require

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def check_picture(path: Path | None) -> None:
    """Refuse a place where no picture can be, before the work."""
    if path is not None:
        result_file(path, [".png"], option="picture")
        require("matplotlib", "plots")


def new_figure(width: float, height: float) -> Any:  # noqa: ANN401 - a figure of matplotlib
    """Make a figure of matplotlib, in inches."""
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
    """A line of a figure: its label, values of both axes, and the style of matplotlib."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: str = "-"


def draw_lines(lines: Sequence[Line], path: Path, **axes: Any) -> None:  # noqa: ANN401
    """Draw lines; `axes` are properties of matplotlib's axes, such as `xlabel` and `xscale`."""
    figure = new_figure(7, 4)
    plot = figure.add_subplot()
    for line in lines:
        plot.plot(line.x, line.y, line.style, marker="o", label=line.label)
    plot.set(**axes)
    ticks = sorted({value for line in lines for value in line.x})
    plot.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks], minor=False)
    plot.minorticks_off()
    plot.legend(frameon=False)
    save_figure(figure, path)
