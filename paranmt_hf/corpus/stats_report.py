"""The figures of corpora side by side: as a record, as tables, as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paranmt_hf.corpus.diversity import BINS, CorpusFigures, Spread
from paranmt_hf.util.files import replacing
from paranmt_hf.util.optional import require
from paranmt_hf.util.records import to_json
from paranmt_hf.util.tables import markdown_table, text_table

HEADER = ("Corpus", "Size", "Measured", "Length", "IDF", "Para. score", "Vocab. entropy", "Parse entropy")
# What is seldom seen in a sample of this share of different sentences is seen often; the reader must know.
FEW_DISTINCT = 0.9
COLOURS = ("#4472c4", "#ed7d31", "#70ad47", "#7f6084", "#a5a5a5", "#c55a5a")
PANELS = {
    "length": "tokens (the last: 80 and more)",
    "idf": "mean IDF of a sentence",
    "para_score": "paraphrase score",
}
ENTROPIES = "entropy, in nats"


@dataclass(frozen=True)
class StatsRecord:
    """What `describe_corpora` measured.

    Attributes:
        version: Of this package.
        side: Which sentences of pairs.
        sample: How many sentences were to be drawn of each corpus.
        seed: What decided which.
        tokens: What a token is.
        idf: The formula of the inverse document frequency.
        idf_text: The text that gave the document frequencies; None: each sample its own.
        idf_sentences: Number of its sentences.
        parse_levels: Which levels of a tree counted; None without a parser.
        corpora: The figures of each corpus and origin, in order.
    """

    version: str
    side: str
    sample: int
    seed: int
    tokens: str
    idf: str
    idf_text: str | None
    idf_sentences: int | None
    parse_levels: str | None
    corpora: list[CorpusFigures]

    def to_json(self) -> dict[str, Any]:
        """Give everything as plain values, for JSON."""
        values: dict[str, Any] = to_json(self)
        return values

    def text(self) -> str:
        """Write the table for a terminal, and what a reader must know below."""
        return "\n\n".join([text_table(HEADER, self._rows()), "\n".join(self.notes())])

    def markdown(self) -> str:
        """Write the same in Markdown."""
        return "\n\n".join([markdown_table(HEADER, self._rows()), "\n".join(f"- {note}" for note in self.notes())])

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                each.name,
                f"{each.size:,}",
                f"{each.measured:,}",
                _spread(each.length, 1),
                _spread(each.idf, 1),
                _spread(each.para_score, 2),
                _number(each.vocabulary_entropy, 1),
                "no parser" if each.parses is None else _number(each.parses.entropy, 1),
            )
            for each in self.corpora
        ]

    def notes(self) -> list[str]:
        """Say in sentences what the figures are of."""
        notes = [
            f"Mean ± standard deviation over at most {self.sample:,} {self.side}s of each corpus, drawn with seed "
            f"{self.seed}; entropies in nats.",
            f"Tokens: {self.tokens}.",
        ]
        if self.idf_text is None:
            notes.append(
                f"IDF: {self.idf}. Sentences: each sample's own, so compare it between corpora only with --idf-text."
            )
        else:
            notes.append(f"IDF: {self.idf}. Sentences: the {self.idf_sentences:,} of {self.idf_text}.")
        if self.parse_levels is None:
            notes.append("Parse entropy: no parser; --parses link-grammar, --parses stanza, or a file of trees.")
        else:
            notes.append(f"Parse entropy: of trees cut to {self.parse_levels}.")
        for each in self.corpora:
            notes += _notes_of(each)
        return notes

    def plot(self, path: Path) -> None:
        """Draw how the measures are spread, the corpora side by side, as a PNG."""
        require("matplotlib", "plots")
        figure = _figure(self.corpora)
        with replacing(path) as aside:
            figure.savefig(aside, format="png", dpi=110, metadata={"Software": None})


def _notes_of(each: CorpusFigures) -> list[str]:
    notes = []
    if each.distinct < FEW_DISTINCT * each.measured:
        notes.append(f"{each.name}: of the {each.measured:,} sentences measured {each.distinct:,} are different ones.")
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


def _figure(corpora: Sequence[CorpusFigures]) -> Any:  # noqa: ANN401 - a figure of matplotlib
    from matplotlib.figure import Figure

    shown = [name for name in PANELS if any(getattr(each, name) is not None for each in corpora)]
    panels: list[tuple[str, Callable[[Any, CorpusFigures, int, str], None]]] = [
        (PANELS[name], _violins(name, corpora)) for name in shown
    ]
    panels.append((ENTROPIES, _entropies))
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
    """Make what draws the shape of one measure's histogram around a line, with mean and standard deviation."""
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


def _number(value: float | None, digits: int) -> str:
    return "none" if value is None else f"{value:.{digits}f}"
