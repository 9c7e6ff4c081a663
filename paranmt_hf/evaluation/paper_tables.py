"""Tables of results with the rows and columns of the related papers, for several models side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from paranmt_hf.evaluation.results import Results, Row, check_same_data, write_figure
from paranmt_hf.evaluation.sts_data import SICK, TWITTER
from paranmt_hf.util.tables import markdown_table

# The 22 sets of arXiv:1511.08198: the yearly tasks, then SICK's test part, then Twitter.
PARAGRAM_YEARS: Mapping[str, tuple[str, ...]] = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("headlines", "OnWN", "FNWN", "SMT"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
}
PARAGRAM_ALONE = (f"{SICK} test", TWITTER)
PARAGRAM_SETS = (
    *(f"{year} {name}" for year, names in PARAGRAM_YEARS.items() for name in names),
    *PARAGRAM_ALONE,
)
# The columns of arXiv:1703.02507, table 2, by the sets of 2014; and SICK's parts, which the paper joins.
SENT2VEC_SETS: Mapping[str, str] = {
    "News": "STS14 deft-news",
    "Forum": "STS14 deft-forum",
    "WordNet": "STS14 OnWN",
    "Twitter": "STS14 tweet-news",
    "Images": "STS14 images",
    "Headlines": "STS14 headlines",
    "SICK train + test": SICK,
}
SENT2VEC_PARTS: Mapping[str, str] = {"SICK train": f"{SICK} train", "SICK test": f"{SICK} test"}
MISSING = "missing"


def _sets(results: Results) -> dict[str, Row]:
    return {row.name: row for row in results.tables["Set"]}


def mean_over_sets(results: Results) -> float:
    """Mean Pearson's r over the given ones of the 22 sets of arXiv:1511.08198; over all sets if there are none."""
    found = _sets(results)
    figures = [found[title].main for title in PARAGRAM_SETS if title in found]
    return float(np.mean(figures or [row.main for row in found.values() if row.group not in found]))


def paragram_table(results: Sequence[Results]) -> str:
    """Write Pearson's r times 100 on the 22 sets of arXiv:1511.08198, with the means of the years and of all sets.

    A mean is that of the sets that are there; its row says of how many.
    """
    check_same_data(results)
    found = [_sets(each) for each in results]

    def line(title: str) -> list[str]:
        return [title, *(write_figure("pearson", each[title].main) if title in each else MISSING for each in found)]

    def mean(label: str, titles: Sequence[str]) -> list[str]:
        there = [title for title in titles if title in found[0]]
        values = [
            write_figure("mean", float(np.mean([each[title].main for title in there]))) for each in found if there
        ]
        return [f"{label}, {len(there)} of {len(titles)} sets", *(values or [MISSING] * len(found))]

    rows = []
    for year, names in PARAGRAM_YEARS.items():
        titles = [f"{year} {name}" for name in names]
        rows += [*map(line, titles), mean(f"{year} mean", titles)]
    rows += [*map(line, PARAGRAM_ALONE), mean("Mean", PARAGRAM_SETS)]
    table = markdown_table(["Pearson x 100", *(each.model for each in results)], rows)
    return _with_missing(table, [title for title in PARAGRAM_SETS if title not in found[0]])


def sent2vec_table(results: Sequence[Results]) -> str:
    """Write Spearman / Pearson times 100 as table 2 of arXiv:1703.02507, and each part of SICK."""
    check_same_data(results)
    found = [_sets(each) for each in results]
    if not set(SENT2VEC_PARTS.values()) <= found[0].keys():
        # With one part alone SICK is not train and test together.
        found = [{title: row for title, row in sets.items() if title != SICK} for sets in found]
    columns = {**SENT2VEC_SETS, **SENT2VEC_PARTS}
    there = [title for title in SENT2VEC_SETS.values() if title in found[0]]

    def both(rows: Sequence[Row]) -> str:
        if not rows:
            return MISSING
        return " / ".join(
            write_figure(name, float(np.mean([row[name] for row in rows]))) for name in ("spearman", "pearson")
        )

    rows = []
    for each, sets in zip(results, found, strict=True):
        cells = [both([sets[title]] if title in sets else []) for title in columns.values()]
        cells.insert(len(SENT2VEC_SETS), both([sets[title] for title in there]))
        rows.append([each.model, *cells])
    header = ["Spearman / Pearson", *SENT2VEC_SETS, f"Mean of {len(there)}", *SENT2VEC_PARTS]
    table = markdown_table(header, rows)
    return _with_missing(table, [title for title in columns.values() if title not in found[0]])


def _with_missing(table: str, missing: Sequence[str]) -> str:
    return f"{table}\n\nMissing in the data: {', '.join(missing)}." if missing else table


PaperTable = Literal["paragram", "sent2vec"]
TABLES: Mapping[PaperTable, Callable[[Sequence[Results]], str]] = {
    "paragram": paragram_table,
    "sent2vec": sent2vec_table,
}
