"""Compare models with the first one on the same pairs: paired differences with bootstrap intervals.

The intervals of two models may overlap although one is better on nearly all resamples of the pairs, because what makes
a pair hard is hard for both. So both are measured on the same resamples, and the interval is that of the difference:
Efron & Tibshirani 1993, "An Introduction to the Bootstrap"; for systems in one competition Koehn 2004 (W04-3250).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from paranmt_hf.evaluation.correlation import resampled_correlations
from paranmt_hf.evaluation.results import Difference, Results, Row, check_same_data
from paranmt_hf.util.tables import markdown_table


def with_differences(results: Sequence[Results]) -> list[Results]:
    """Return the results of models on STS with the difference of each model to the first one in each row.

    The difference of a year is that of the means over its sets, and the difference of the row `Mean` that of the means
    over the years. Each set is resampled on its own, with its number of pairs.

    Args:
        results: Results of `evaluate_sts` on the same data, with the same number of resamples and seed.
    """
    check_same_data(results)
    first = results[0]
    resamples, seed = first.settings["bootstrap"], first.settings["seed"]
    drawn: dict[str, np.ndarray] = {}
    for number, row in enumerate(first.tables["Set"]):
        sides = [each.similarities[row.name] for each in results]
        # With one seed, sets of equal size would draw the same positions, as if their pairs belonged together.
        drawn[row.name] = resampled_correlations(
            sides, first.golds[row.name], resamples=resamples, seed=[seed, number]
        )
    years = [row.name for row in first.tables["Year"]]
    for year in years:
        # The last row is the mean of the years, and has no sets of its own.
        parts = [row.name for row in first.tables["Set"] if row.group == year] or years[:-1]
        drawn[year] = np.mean([drawn[part] for part in parts], axis=0)
    compared = [first]
    for model, each in enumerate(results[1:], start=1):
        tables = {}
        for title, rows in each.tables.items():
            tables[title] = [_with_difference(row, first, drawn[row.name][model] - drawn[row.name][0]) for row in rows]
        compared.append(replace(each, tables=tables))
    return compared


def _with_difference(row: Row, first: Results, differences: np.ndarray) -> Row:
    """Return a row of another model with its difference to the first one, whose resamples are `differences`."""
    # A resample in which a side is constant has no difference; with sets of two or three pairs that may be all.
    valid = differences[~np.isnan(differences)]
    if not len(valid):
        return row
    low, high = np.quantile(valid, [0.025, 0.975])
    value = row.main - float(first.value(row.name) or 0)
    return replace(row, difference=Difference(first.model, value, (float(low), float(high))))


def paired_table(results: Sequence[Results]) -> str:
    """Return a table of the differences of models to the first one, and a sentence on those that may be chance.

    It has the rows that no other row summarises, as the comparison of models.
    """
    first = results[0].model
    lines = [[f"Difference to {first}", *(each.model for each in results[1:])]]
    alike = []
    for rows in zip(*(each.rows for each in results[1:]), strict=True):
        if rows[0].group is not None:
            continue
        line = [rows[0].name]
        for model, row in zip(results[1:], rows, strict=True):
            if (found := row.difference) is None:
                line.append("")
                continue
            low, high = found.interval
            line.append(f"{100 * found.value:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})")
            if not found.is_separable:
                alike.append(f"{model.model} on {row.name}")
        lines.append(line)
    table = markdown_table(lines[0], lines[1:])
    if not alike:
        has_any = any(cell for line in lines[1:] for cell in line[1:])
        return f"{table}\n\nAll 95 % intervals exclude 0." if has_any else table
    return f"{table}\n\nNot separable from {first}, because the 95 % interval holds 0: {', '.join(alike)}."
