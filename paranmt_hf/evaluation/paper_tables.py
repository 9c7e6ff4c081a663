"""Write results on STS as tables with the rows and columns of related papers, for several models side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Literal

import numpy as np

from paranmt_hf.evaluation.results import Results, check_same_data, write_figure
from paranmt_hf.evaluation.sts_data import SICK, TWITTER
from paranmt_hf.util.tables import markdown_table

# The 22 sets of arXiv:1511.08198. For each set, Pearson's r times 100 of the systems that took part in the task: their
# median, their 75th percentile and the best (table 2; the median of STS12 OnWN from table 4).
TASK_SYSTEMS: Mapping[str, tuple[float, float, float]] = {
    "STS12 MSRpar": (51.5, 57.6, 73.4),
    "STS12 MSRvid": (75.5, 80.3, 88.0),
    "STS12 SMTeuroparl": (44.4, 48.1, 56.7),
    "STS12 surprise.OnWN": (60.8, 65.9, 72.7),
    "STS12 surprise.SMTnews": (40.1, 45.4, 60.9),
    "STS13 headlines": (64.0, 68.3, 78.4),
    "STS13 OnWN": (52.8, 64.8, 84.3),
    "STS13 FNWN": (32.7, 38.1, 58.2),
    "STS13 SMT": (31.8, 34.6, 40.4),
    "STS14 deft-forum": (36.6, 46.8, 53.1),
    "STS14 deft-news": (66.2, 74.0, 78.5),
    "STS14 headlines": (67.1, 75.4, 78.4),
    "STS14 images": (75.6, 79.0, 83.4),
    "STS14 OnWN": (78.0, 81.1, 87.5),
    "STS14 tweet-news": (64.7, 72.2, 79.2),
    "STS15 answers-forums": (61.3, 68.2, 73.9),
    "STS15 answers-students": (67.6, 73.6, 78.8),
    "STS15 belief": (67.7, 72.2, 77.2),
    "STS15 headlines": (74.2, 80.8, 84.2),
    "STS15 images": (80.4, 84.3, 87.1),
    f"{SICK} test": (71.4, 79.9, 82.8),
    TWITTER: (49.9, 52.5, 61.9),
}
# The columns of arXiv:1703.02507, table 2, with the set of 2014 that each column is about.
SENT2VEC_SETS: Mapping[str, str] = {
    "News": "STS14 deft-news",
    "Forum": "STS14 deft-forum",
    "WordNet": "STS14 OnWN",
    "Twitter": "STS14 tweet-news",
    "Images": "STS14 images",
    "Headlines": "STS14 headlines",
}
# Columns of the parts of SICK, which the paper puts together.
SENT2VEC_PARTS: Mapping[str, str] = {"SICK train": f"{SICK} train", "SICK test": f"{SICK} test"}
MISSING = "missing"  # Cell of a set that is not in the data


def paragram_table(results: Sequence[Results]) -> str:
    """Return a table with Pearson's r times 100 on the 22 sets of arXiv:1511.08198, and means of years and of all.

    Columns next to the models' have the systems of each task, as in table 2. A mean is over the sets that are in the
    data, and its row says over how many.
    """
    check_same_data(results)
    titles = list(TASK_SYSTEMS)
    there = [title for title in titles if results[0].value(title) is not None]

    def line(title: str) -> list[str]:
        cells = [title, *map("{:.1f}".format, TASK_SYSTEMS[title])]
        for each in results:
            cells.append(write_figure("pearson", each.value(title)) or MISSING)
        return cells

    def mean(label: str, sets: Sequence[str]) -> list[str]:
        own = [title for title in sets if title in there]
        cells = [f"{label}, {len(own)} of {len(sets)} sets"]
        if not own:
            return [*cells, *[MISSING] * (3 + len(results))]
        for systems in zip(*map(TASK_SYSTEMS.__getitem__, own), strict=True):
            cells.append(f"{np.mean(systems):.1f}")
        for each in results:
            cells.append(write_figure("mean", float(np.mean(list(map(each.value, own))))))
        return cells

    rows = []
    # The 20 sets of SemEval have a mean for each year; those of SICK and Twitter follow.
    for year, group in groupby(titles[:20], key=lambda title: title.split()[0]):
        sets = list(group)
        rows += [*map(line, sets), mean(f"{year} mean", sets)]
    rows += [*map(line, titles[20:]), mean("Mean", titles)]
    table = markdown_table(["Pearson x 100", "50 %", "75 %", "best", *(each.model for each in results)], rows)
    return _with_missing(table, [title for title in titles if title not in there])


def sent2vec_table(results: Sequence[Results]) -> str:
    """Return a table with Spearman's and Pearson's correlation times 100, as table 2 of arXiv:1703.02507.

    There are columns for each part of SICK too. "Average of STS14" is the mean over the six sets of 2014, as in table
    3 of the first version of the paper.
    """
    check_same_data(results)
    found = []
    for each in results:
        found.append({row.name: row for row in each.tables["Set"]})
    if not set(SENT2VEC_PARTS.values()) <= found[0].keys():
        # If the data lack a part of SICK, the row of SICK is not that of train and test together.
        for sets in found:
            sets.pop(SICK, None)
    # Version 1 of the paper averages over the sets of 2014 (its table 3); later versions average over SICK too.
    of_2014 = list(SENT2VEC_SETS.values())
    there = [title for title in of_2014 if title in found[0]]
    # For each column, the sets that it is the mean of.
    columns = {
        **{name: [title] for name, title in SENT2VEC_SETS.items()},
        f"Average of STS14, {len(there)} of {len(of_2014)} sets (version 1)": of_2014,
        "SICK train + test": [SICK],
        f"Mean of {len(there) + (SICK in found[0])}": [*of_2014, SICK],
        **{name: [title] for name, title in SENT2VEC_PARTS.items()},
    }

    rows = []
    for each, sets in zip(results, found, strict=True):
        cells = [each.model]
        for titles in columns.values():
            own = [sets[title] for title in titles if title in sets]
            means = []
            for measure in ("spearman", "pearson") if own else ():
                means.append(write_figure(measure, float(np.mean([row[measure] for row in own]))))
            cells.append(" / ".join(means) or MISSING)
        rows.append(cells)
    table = markdown_table(["Spearman / Pearson", *columns], rows)
    titles = [*of_2014, SICK, *SENT2VEC_PARTS.values()]
    return _with_missing(table, [title for title in titles if title not in found[0]])


def _with_missing(table: str, missing: Sequence[str]) -> str:
    """Add a sentence with the names of the sets that are not in the data."""
    return f"{table}\n\nMissing in the data: {', '.join(missing)}." if missing else table


PaperTable = Literal["paragram", "sent2vec"]
TABLES: Mapping[PaperTable, Callable[[Sequence[Results]], str]] = {
    "paragram": paragram_table,
    "sent2vec": sent2vec_table,
}
