"""Agreement with gold scores by the length of sentences; PARAGRAM-PHRASE (arXiv:1511.08198), table 7."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.correlation import RESAMPLES, bootstrap_interval, pearson
from paranmt_hf.evaluation.evaluate import Models, evaluate
from paranmt_hf.evaluation.pair_set import StsSet
from paranmt_hf.evaluation.paper_tables import SEMEVAL_SETS
from paranmt_hf.evaluation.results import Evaluation, Results, Row, compare
from paranmt_hf.evaluation.sts_data import StsData, sets_of
from paranmt_hf.experiments.pictures import check_picture, draw_lengths
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.util.markers import PythonOnly, Writes
from paranmt_hf.util.wording import counted

TABLE_7_LENGTHS = (4, 5, 6, 7, 8, 9)  # Longest sentences of the bins of table 7; the last bin has all longer ones


def paragram_table7(
    models: Models = (),
    *,
    data: StsData,
    vectors: Sequence[str | Path] = (),
    picture: Annotated[Path | None, Writes] = None,
    up_to: Annotated[Sequence[int], PythonOnly] = TABLE_7_LENGTHS,
    bootstrap: Annotated[int, PythonOnly] = RESAMPLES,
) -> Evaluation:
    """Compute Pearson's r by the number of tokens of the longer sentence, over the pairs of several sets together.

    These are the sets of SemEval 2012 to 2015, as in the paper; if there are none, all sets.

    Args:
        models: Folders or Hub ids of encoders; `small` and `base` are those of the package.
        data: Folders with STS sets, TSV files, Hub ids.
        vectors: Files of word vectors whose averages are analysed too.
        picture: PNG file for a picture (extra `plots`).
        up_to: Maximum number of tokens of each bin but the last one.
        bootstrap: Resamples for 95 % intervals; 0 for none.
    """
    check_picture(picture)
    sets = sets_of(data)
    evaluated = evaluate(models, data=sets, vectors=vectors, bootstrap=0)
    found = Evaluation([pearson_by_length(each, sets, up_to, bootstrap) for each in evaluated], (compare,), each=False)
    if all(not row.values for each in found for row in each.rows):
        raise InputError("no length has two pairs of different gold scores and similarities, so nothing correlates")
    if picture is not None:
        draw_lengths(found.results, picture)
    return found


def pearson_by_length(results: Results, sets: Sequence[StsSet], up_to: Sequence[int], bootstrap: int = 0) -> Results:
    """Correlate the similarities of a model on exactly these sets with gold scores; see `paragram_table7`."""
    chosen = [sts_set for sts_set in sets if sts_set.title in SEMEVAL_SETS] or list(sets)
    values = np.concatenate([results.similarities[sts_set.title] for sts_set in chosen])
    gold, lengths = np.concatenate([sts_set.gold for sts_set in chosen]), longer_side(chosen)
    lows = [0, *(edge + 1 for edge in up_to)]
    bins: dict[str, tuple[int, float]] = {
        _label(low, high): (low, high) for low, high in zip(lows, up_to, strict=False)
    }
    bins |= {f">= {lows[-1]}": (lows[-1], np.inf), "all": (0, np.inf)}
    rows = [
        _row(name, (lengths >= low) & (lengths <= high), values, gold, bootstrap) for name, (low, high) in bins.items()
    ]
    return Results(
        kind="lengths",
        model=results.model,
        tables={"Longer side": rows},
        data=results.data,
        weights=results.weights,
        notes=[
            f"Over the pairs of {counted(len(chosen), 'set')} together: {', '.join(each.title for each in chosen)}."
        ],
    )


def longer_side(sets: Sequence[StsSet]) -> np.ndarray:
    """Number of tokens of the longer sentence of each pair, set after set [pair]."""
    left = [sentence for sts_set in sets for sentence in sts_set.left]
    right = [sentence for sts_set in sets for sentence in sts_set.right]
    one, other = WordTokenizer().tables(left, right)
    return np.maximum(one.lengths, other.lengths)


def _label(low: int, high: int) -> str:
    if low == 0:
        return f"<= {high}"
    return str(low) if low == high else f"{low} to {high}"


def _row(name: str, inside: np.ndarray, values: np.ndarray, gold: np.ndarray, bootstrap: int) -> Row:
    """A row for a bin; without scores if it has fewer than two pairs or one side is constant."""
    own, judged = values[inside], gold[inside]
    if len(own) < 2 or np.ptp(own) == 0 or np.ptp(judged) == 0:
        return Row(name=name, values={}, items=len(own))
    interval = bootstrap_interval(own, judged, resamples=bootstrap) if bootstrap else None
    return Row(name=name, values={"pearson": pearson(own, judged)}, items=len(own), interval=interval)
