"""Share of rare words of the training data in evaluation sets; PARAGRAM-PHRASE (arXiv:1511.08198), section 5.1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import spearman
from paranmt_hf.evaluation.evaluate import Models, evaluate
from paranmt_hf.evaluation.pair_set import StsSet
from paranmt_hf.evaluation.paper_tables import TASK_SYSTEMS
from paranmt_hf.evaluation.results import Evaluation, Results, Row
from paranmt_hf.evaluation.sts_data import DEVELOPMENT, StsData, sets_of
from paranmt_hf.evaluation.word_averages import count_words
from paranmt_hf.evaluation.word_weights import WordCounts
from paranmt_hf.experiments.pictures import check_picture, draw_coverage
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.util.markers import PythonOnly, Writes

UNDER_TRAINED_BELOW = 100  # Words that were seen fewer times are under-trained (section 5.1)


def paragram_section5(
    models: Models = (),
    *,
    data: StsData,
    training: str,
    vectors: Sequence[str | Path] = (),
    picture: Annotated[Path | None, Writes] = None,
    at_least: Annotated[int, PythonOnly] = UNDER_TRAINED_BELOW,
) -> Evaluation:
    """Measure the share of tokens of each set that are rare in the training data, next to Pearson's r.

    Args:
        models: Folders or Hub ids of encoders; `small` and `base` are those of the package.
        data: Folders with STS sets, TSV files, Hub ids.
        training: What the encoders were trained on: a corpus, a Parquet file, a text, or a list of words and counts.
        vectors: Files of word vectors whose averages are measured too.
        picture: PNG file for a picture (extra `plots`).
        at_least: Words that were seen fewer times are under-trained.
    """
    check_picture(picture)
    sets = sets_of(data)
    counts = count_words(training)
    evaluated = evaluate(models, data=sets, vectors=vectors, bootstrap=0)
    found = Evaluation([measure_coverage(each, sets, counts, at_least) for each in evaluated])
    if picture is not None:
        draw_coverage(found.results, picture, at_least)
    return found


def measure_coverage(
    results: Results, sets: Sequence[StsSet], counts: WordCounts, at_least: int = UNDER_TRAINED_BELOW
) -> Results:
    """Measure the share of tokens of each set that are rare in the training data, given a model's results on the sets.

    The last table has Spearman's rho over the sets, of the under-trained share and Pearson's r less that of the 75th
    percentile of the task's systems. If no set is one of the paper's 22, it is Pearson's r itself.
    """
    rows = [_row(sts_set, results, counts, at_least) for sts_set in _independent(sets)]
    used = [row for row in rows if "systems" in row.values]
    what = "Pearson's r less that of the 75th percentile of systems" if used else "Pearson's r"
    used = used or rows
    shares = np.array([row["under_trained"] for row in used])
    gaps = np.array([row["pearson"] - row.values.get("systems", 0.0) for row in used])
    tables = {"Set": rows}
    if len(used) > 1 and np.ptp(shares) and np.ptp(gaps):
        tables["Over the sets"] = [Row(name="Correlation", values={"spearman": spearman(shares, gaps)})]
    seen = np.array(list(counts.counts.values()))
    return Results(
        kind="under-trained",
        model=results.model,
        tables=tables,
        data=results.data,
        weights=results.weights,
        settings={"at_least": at_least},
        notes=[
            f"Shares of tokens whose word training saw fewer than {at_least:,} times, and never; Spearman of the "
            f"former and {what}. Counts: {counts.source}, {int((seen > 0).sum()):,} words, of which "
            f"{int((seen >= at_least).sum()):,} were seen {at_least:,} times or more."
        ],
    )


def _row(sts_set: StsSet, results: Results, counts: WordCounts, at_least: int) -> Row:
    table = WordTokenizer().tables([*sts_set.left, *sts_set.right])[0]
    # Occurrences in training of each token of the set.
    occurrences = counts.of(table.vocabulary)[table.ids]
    if not len(occurrences):
        raise InputError(f"{sts_set.title} has no words, so none was seen or not")
    figure = results.value(sts_set.title)
    assert figure is not None
    values = {
        "pearson": figure,
        "under_trained": float(np.mean(occurrences < at_least)),
        "unseen": float(np.mean(occurrences == 0)),
    }
    if sts_set.title in TASK_SYSTEMS:
        values["systems"] = TASK_SYSTEMS[sts_set.title][1] / 100
    return Row(name=sts_set.title, values=values, items=len(occurrences))


def _independent(sets: Sequence[StsSet]) -> list[StsSet]:
    """Exclude the STS benchmark and the development set if there are yearly sets, which overlap them."""
    if not any(each.year for each in sets):
        return list(sets)
    return [each for each in sets if each.year or not (each.name.startswith("STSB-") or each.name == DEVELOPMENT)]
