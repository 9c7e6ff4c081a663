"""Tables and pictures of the figures of corpora."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paranmt_hf.corpus.diversity import BINS, CorpusFigures, Spread
from paranmt_hf.util.files import replacing

HEADER = ("Corpus", "Size", "Measured", "Length", "IDF", "Para. score", "Vocab. entropy", "Parse entropy")
# A smaller share of distinct sentences has a note.
FEW_DISTINCT = 0.9
COLOURS = ("#4472c4", "#ed7d31", "#70ad47", "#7f6084", "#a5a5a5", "#c55a5a")
PANELS = {
    "length": "tokens (the last: 80 and more)",
    "idf": "mean IDF of a sentence",
    "para_score": "paraphrase score",
}


def figures_row(each: CorpusFigures) -> tuple[str, ...]:
    """A row of the table."""
    parses = "no parser" if each.parses is None else _number(each.parses.entropy)
    return (
        each.name,
        f"{each.size:,}",
        f"{each.measured:,}",
        _spread(each.length, 1),
        _spread(each.idf, 1),
        _spread(each.para_score, 2),
        _number(each.vocabulary_entropy),
        parses,
    )


def notes_of(each: CorpusFigures) -> list[str]:
    """Notes on a row."""
    notes = []
    if each.distinct < FEW_DISTINCT * each.measured:
        notes.append(f"{each.name}: of the {each.measured:,} sentences measured {each.distinct:,} are distinct.")
    if each.para_score is not None and each.para_score.sentences < each.measured:
        notes.append(f"{each.name}: {each.para_score.sentences:,} of {each.measured:,} have a paraphrase score.")
    if each.parses is not None:
        notes.append(
            f"{each.name}: {each.parses.parsed:,} of {each.parses.sentences:,} sentences have a tree, by "
            f"{each.parses.parser}."
        )
    if each.dropped:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in each.dropped.items())
        notes.append(f"{each.name}: rows left out: {reasons}.")
    return notes


def plot_figures(corpora: Sequence[CorpusFigures], path: Path) -> None:
    """Draw the distributions of the figures, the corpora side by side, as a PNG."""
    figure = _figure(corpora)
    with replacing(path) as aside:
        figure.savefig(aside, format="png", dpi=110, metadata={"Software": None})


def _figure(corpora: Sequence[CorpusFigures]) -> Any:  # noqa: ANN401 - a figure of matplotlib
    from matplotlib.figure import Figure

    shown = [name for name in PANELS if any(getattr(each, name) is not None for each in corpora)]
    panels: list[tuple[str, Callable[[Any, CorpusFigures, int, str], None]]] = [
        (PANELS[name], _violins(name, corpora)) for name in shown
    ]
    panels.append(("entropy, in nats", _entropies))
    figure = Figure(figsize=(1.6 + 2.7 * len(panels), 1.3 + 0.62 * len(corpora)), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, (label, show) in zip(axes, panels, strict=True):
        for position, each in enumerate(corpora):
            show(axis, each, position, COLOURS[position % len(COLOURS)])
        axis.set_xlabel(label)
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.tick_params(axis="y", length=0)
    axes[-1].set_xlim(left=0)
    axes[0].set_yticks(range(len(corpora)), [each.name for each in corpora])
    axes[0].set_ylim(len(corpora) - 0.4, -0.6)
    figure.supxlabel("dot and line: mean and standard deviation", fontsize=8, color="grey")
    return figure


def _violins(name: str, corpora: Sequence[CorpusFigures]) -> Callable[[Any, CorpusFigures, int, str], None]:
    """Return a function that draws the histogram of a measure around a line, with mean and standard deviation."""
    low, high, bins = BINS[name]
    width = (high - low) / bins
    spreads = [found for each in corpora if (found := getattr(each, name)) is not None]
    used = np.flatnonzero(np.sum([found.histogram for found in spreads], axis=0))
    first, last = low + width * used[0], low + width * (used[-1] + 1)

    def show(axis: Any, each: CorpusFigures, position: int, colour: str) -> None:  # noqa: ANN401
        found: Spread | None = getattr(each, name)
        axis.set_xlim(first, last)
        if found is None:
            axis.text((first + last) / 2, position, "none", ha="center", va="center", color="grey")
            return
        shares = np.array(found.histogram) / max(found.histogram)
        edges = np.linspace(low, high, bins + 1)
        half = 0.42 * np.append(shares, shares[-1])
        axis.fill_between(edges, position - half, position + half, step="post", color=colour, alpha=0.45, linewidth=0)
        axis.errorbar(found.mean, position, xerr=found.deviation, fmt="o", color=colour, markersize=5, capsize=3)

    return show


def _entropies(axis: Any, each: CorpusFigures, position: int, colour: str) -> None:  # noqa: ANN401
    parses = None if each.parses is None else each.parses.entropy
    shown = [(-0.18 if each.parses else 0, each.vocabulary_entropy, "words", 0.75), (0.18, parses, "parses", 0.4)]
    for shift, value, label, alpha in shown:
        if value is not None:
            axis.barh(position + shift, value, height=0.32, color=colour, alpha=alpha)
            axis.text(value, position + shift, f" {label} {value:.1f}", va="center", fontsize=8)
    highest = max([1.0, *(value for _, value, _, _ in shown if value is not None)])
    axis.set_xlim(right=max(axis.get_xlim()[1], 1.5 * highest))


def _spread(found: Spread | None, digits: int) -> str:
    return "none" if found is None else f"{found.mean:.{digits}f} ± {found.deviation:.{digits}f}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f}"
