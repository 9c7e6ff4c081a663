"""Figure 1 of Sent2Vec (arXiv:1703.02507): norms of word vectors against frequency, next to the weights of SIF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np

from paranmt_hf.evaluation.results import Evaluation
from paranmt_hf.evaluation.word_weights import RANK, SIF_A
from paranmt_hf.experiments.paragram_section6 import WordNorms, norms_of_words
from paranmt_hf.experiments.pictures import COLOURS, check_picture, new_figure, save_figure
from paranmt_hf.util.markers import Writes

# The line through the words is the median of each of these parts of the frequencies, equally wide in the logarithm.
PARTS = 30
# Words of each part that are drawn.
DRAWN = 150


def sent2vec_figure1(
    spaces: Sequence[str | Path], *, picture: Annotated[Path, Writes], frequencies: str = RANK
) -> Evaluation:
    """Draw the L2 norms of word vectors against the frequency of the words, next to the weights of SIF.

    Args:
        spaces: Encoders (folders, Hub ids, `small`) or files of word vectors.
        picture: PNG file (extra `plots`).
        frequencies: How often words occur: rank (the order of each space, by Zipf's law), a list with a word and its
            count on each line, or what is counted: a text, a Parquet file, a corpus (both sides).
    """
    check_picture(picture)
    found = norms_of_words(spaces, frequencies)
    draw_norms([norms for _, norms in found], picture)
    return Evaluation([results for results, _ in found])


def draw_norms(words: Sequence[WordNorms], path: Path) -> None:
    """Draw norms against frequency, a point for each word and the median as a line; next to it the weights of SIF."""
    figure = new_figure(10, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(2, 1), sharex=True)
    low = min(float(each.frequencies.min()) for each in words)
    high = max(float(each.frequencies.max()) for each in words)
    edges = np.geomspace(low, high * 1.001, PARTS + 1)
    highest = 0.0
    for number, each in enumerate(words):
        # Relative to its median, so that vectors of different dimensions share a scale.
        values = each.norms["l2"] / (np.median(each.norms["l2"]) or 1.0)
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
    left.set(xlabel="frequency of the word", ylabel="L2 norm / its median")
    left.legend(frameon=False, loc="lower left")
    grid = np.geomspace(low, high, 200)
    right.plot(grid, SIF_A / (SIF_A + grid), color="black")
    right.set(xlabel="frequency of the word", ylabel=f"weight of SIF, a = {SIF_A:g}", ylim=(0, 1.05))
    save_figure(figure, path)
