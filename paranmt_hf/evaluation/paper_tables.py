"""Tables of results with the rows and columns of the sibling papers, for several models side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np

from paranmt_hf.evaluation.record import SetRecord
from paranmt_hf.evaluation.related_pairs import SICK, TWITTER
from paranmt_hf.evaluation.results import StsResult, check_same_sets
from paranmt_hf.util.tables import percent, write_table

Style = Literal["markdown", "text"]
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


def _by_title(result: StsResult) -> dict[str, SetRecord]:
    return {each.title: each for each in result.sets}


def mean_over_sets(result: StsResult) -> float:
    """Mean Pearson's r over those of the 22 sets of arXiv:1511.08198 that are there; over all sets where none is."""
    found = _by_title(result)
    figures = [found[title].pearson for title in PARAGRAM_SETS if title in found]
    return float(np.mean(figures or [each.pearson for each in result.sets if not each.part_of]))


def paragram_table(results: Sequence[StsResult], *, style: Style = "text") -> str:
    """Write Pearson's r times 100 on the 22 sets of arXiv:1511.08198, with the means of the years and of all sets.

    A mean is that of the sets that are there; its row says of how many.

    Raises:
        InputError: There is no result, or the models were evaluated on different data.
    """
    check_same_sets(results)
    found = [_by_title(result) for result in results]

    def row(title: str) -> tuple[str, ...]:
        return (title, *(percent(each[title].pearson) if title in each else MISSING for each in found))

    def mean(label: str, titles: Sequence[str]) -> tuple[str, ...]:
        there = [title for title in titles if title in found[0]]
        values = [percent(float(np.mean([each[title].pearson for title in there]))) for each in found if there]
        return (f"{label}, {len(there)} of {len(titles)} sets", *(values or [MISSING] * len(found)))

    rows = []
    for year, names in PARAGRAM_YEARS.items():
        titles = [f"{year} {name}" for name in names]
        rows += [*map(row, titles), mean(f"{year} mean", titles)]
    rows += [*map(row, PARAGRAM_ALONE), mean("Mean", PARAGRAM_SETS)]
    table = write_table(("Pearson x 100", *(result.model for result in results)), rows, style)
    return _with_missing(table, [title for title in PARAGRAM_SETS if title not in found[0]])


def sent2vec_table(results: Sequence[StsResult], *, style: Style = "text") -> str:
    """Write Spearman / Pearson times 100 as table 2 of arXiv:1703.02507, and each part of SICK.

    Raises:
        InputError: There is no result, or the models were evaluated on different data.
    """
    check_same_sets(results)
    found = [_by_title(result) for result in results]
    columns = {**SENT2VEC_SETS, **SENT2VEC_PARTS}
    there = [title for title in SENT2VEC_SETS.values() if title in found[0]]

    def mean(sets: Mapping[str, SetRecord], figure: Callable[[SetRecord], float]) -> str:
        return percent(float(np.mean([figure(sets[title]) for title in there])))

    rows = []
    for result, sets in zip(results, found, strict=True):
        cells = [
            f"{percent(sets[title].spearman)} / {percent(sets[title].pearson)}" if title in sets else MISSING
            for title in columns.values()
        ]
        both = (
            f"{mean(sets, lambda each: each.spearman)} / {mean(sets, lambda each: each.pearson)}" if there else MISSING
        )
        rows.append((result.model, *cells[: len(SENT2VEC_SETS)], both, *cells[len(SENT2VEC_SETS) :]))
    header = ("Spearman / Pearson", *SENT2VEC_SETS, f"Mean of {len(there)}", *SENT2VEC_PARTS)
    table = write_table(header, rows, style)
    return _with_missing(table, [title for title in columns.values() if title not in found[0]])


def _with_missing(table: str, missing: Sequence[str]) -> str:
    return f"{table}\n\nMissing in the data: {', '.join(missing)}." if missing else table


TABLES: Mapping[str, Callable[..., str]] = {"paragram": paragram_table, "sent2vec": sent2vec_table}
