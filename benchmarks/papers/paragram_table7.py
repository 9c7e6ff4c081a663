"""Table 7 of PARAGRAM-PHRASE (arXiv:1511.08198): Pearson's r by the number of tokens of the longer sentence.

Over the pairs of the sets of SemEval 2012 to 2015 together, as in the paper; if there are none, of all sets.

    python benchmarks/papers/paragram_table7.py small --vectors glove.100d.100k.txt.gz --data sts
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from comparison import table
from scipy.stats import pearsonr

import paranmt_hf
from paranmt_hf.evaluation.paper_tables import TASK_SYSTEMS
from paranmt_hf.evaluation.sts_data import sets_of
from paranmt_hf.text.definitions import words

EDGES = [4, 5, 6, 7, 8, 9]  # Longest sentences of the bins of the table; the last bin has all longer ones


def bins(edges: Sequence[int]) -> dict[str, tuple[int, float]]:
    """Return the lowest and the highest number of tokens of each bin, by its name."""
    found: dict[str, tuple[int, float]] = {f"<= {edges[0]}": (0, edges[0])}
    for below, edge in zip(edges, edges[1:], strict=False):
        name = str(edge) if edge == below + 1 else f"{below + 1} to {edge}"
        found[name] = (below + 1, edge)
    found[f">= {edges[-1] + 1}"] = (edges[-1] + 1, np.inf)
    found["all"] = (0, np.inf)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--vectors", nargs="*", default=[], help="files of word vectors whose averages are measured")
    parser.add_argument("--data", nargs="+", required=True, help="STS data, as `paranmt evaluate sts` takes it")
    parser.add_argument("--up-to", nargs="+", type=int, default=EDGES, help="longest sentences of the bins")
    options = parser.parse_args(arguments)
    sets = sets_of(options.data)
    sets = [each for each in sets if each.title in list(TASK_SYSTEMS)[:20]] or sets
    gold = np.concatenate([each.gold for each in sets])
    lengths = []
    for each in sets:
        for left, right in zip(each.left, each.right, strict=True):
            lengths.append(max(len(words(left)), len(words(right))))
    rows = []
    for results in paranmt_hf.evaluate(options.models, data=options.data, vectors=options.vectors, bootstrap=0):
        similarities = np.concatenate([results.similarities[each.title] for each in sets])
        cells = [results.model]
        for low, high in bins(options.up_to).values():
            inside = (np.array(lengths) >= low) & (np.array(lengths) <= high)
            constant = inside.sum() < 2 or np.ptp(similarities[inside]) == 0 or np.ptp(gold[inside]) == 0
            cells.append("" if constant else f"{100 * pearsonr(similarities[inside], gold[inside]).statistic:.1f}")
        rows.append(cells)
    print(table(["Model", *bins(options.up_to)], rows))


if __name__ == "__main__":
    main()
