"""Section 5.1 of PARAGRAM-PHRASE (arXiv:1511.08198): under-trained words, and how well a model does.

Measures the share of tokens of each set whose word training saw fewer than 100 times, and Spearman's rho over the sets
of it and Pearson's r less that of the 75th percentile of the task's systems (of all sets: Pearson's r, if none is one
of the paper's 22).

    python benchmarks/papers/paragram_section5.py small --data sts --training machine-translations.parquet
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from comparison import table
from scipy.stats import spearmanr

import paranmt_hf
from paranmt_hf.evaluation.paper_tables import TASK_SYSTEMS
from paranmt_hf.evaluation.sts_data import sets_of
from paranmt_hf.evaluation.word_averages import count_words
from paranmt_hf.text.definitions import words

UNDER_TRAINED_BELOW = 100  # Words that were seen fewer times are under-trained


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each set, and the correlation over the sets for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--data", nargs="+", required=True, help="STS data, as `paranmt evaluate sts` takes it")
    parser.add_argument("--training", required=True, help="corpus, Parquet file, text, or list of words and counts")
    parser.add_argument("--at-least", type=int, default=UNDER_TRAINED_BELOW, help="occurrences of a trained word")
    options = parser.parse_args(arguments)
    # The STS benchmark and the development set overlap the yearly sets.
    sets = sets_of(options.data)
    sets = [each for each in sets if each.year] or sets
    sets = [each for each in sets if each.title in TASK_SYSTEMS] or sets
    counts = count_words(options.training)
    shares = {}
    for each in sets:
        tokens = [token for text in (*each.left, *each.right) for token in words(text)]
        shares[each.title] = float(np.mean(counts.of(tokens) < options.at_least))
    results = list(paranmt_hf.evaluate(options.models, data=options.data, bootstrap=0))
    rows = []
    gaps: dict[str, list[float]] = {each.model: [] for each in results}
    for title, share in shares.items():
        systems = TASK_SYSTEMS[title][1] if title in TASK_SYSTEMS else 0.0
        row = [title, f"{100 * share:.1f}"]
        for each in results:
            gaps[each.model].append(100 * (each.value(title) or 0.0) - systems)
            row.append(f"{gaps[each.model][-1]:.1f}")
        rows.append(row)
    print(table(["set", f"seen < {options.at_least}, %", *gaps], rows) + "\n")
    if len(shares) > 1:
        correlations = []
        for model, own in gaps.items():
            correlation = spearmanr(list(shares.values()), own).statistic
            correlations.append([model, f"{100 * correlation:.1f}"])
        print(table(["Model", "Spearman"], correlations))
    print(f"\nPearson's r less that of the 75th percentile of systems. Counts: {counts.source}.")


if __name__ == "__main__":
    main()
