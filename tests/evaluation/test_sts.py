"""STS results against hand-worked numbers, and on real data."""

import json

import numpy as np
import pytest

from paranmt_hf.encoders.scorer import FastScorer, tables_of
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation import similarities
from paranmt_hf.evaluation.correlation import pearson, spearman
from paranmt_hf.evaluation.results import compare, differences, mean_absolute_differences
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import StsSet, development_set
from paranmt_hf.text.word_vectors import read_vectors
from tests.evaluation.toys import DIAGONAL, PLANE, Knowing, Plane, write_benchmark, write_senteval


def sts_set(name: str, rows: list[tuple[float, str, str]], year: str | None = None) -> StsSet:
    gold, left, right = zip(*rows, strict=True)
    return StsSet(name, list(left), list(right), np.array(gold, float), year)


GOOD = [(5.0, "x", "x"), (3.0, "x", "d"), (0.0, "x", "y")]
BAD = [(5.0, "x", "y"), (0.0, "x", "x")]
COSINES = [1, DIAGONAL, 0]


def test_by_hand():
    """Cosines 1, 0.7, 0 against 5, 3, 0; and a second set that is wrong in every pair."""
    result = evaluate_sts(Plane(), [sts_set("good", GOOD, "STS12"), sts_set("bad", BAD, "STS12")], bootstrap=20)
    good = pearson(COSINES, [5, 3, 0])
    (year,) = result.years
    assert [one.pearson for one in result.sets] == pytest.approx([good, -1])
    assert year.mean == result.mean == pytest.approx((good - 1) / 2)
    assert year.weighted_mean == pytest.approx((3 * good - 2) / 5)
    assert year.all_pearson == pytest.approx(pearson([*COSINES, 0, 1], [5, 3, 0, 5, 0]))
    assert year.all_spearman == pytest.approx(spearman([*COSINES, 0, 1], [5, 3, 0, 5, 0]))
    assert (year.sets, year.pairs, result.development) == (2, 5, None)
    assert result.sets[1].interval == pytest.approx((-1, -1))
    assert result.sets[0].similarities == pytest.approx(COSINES)


def test_each_distinct_sentence_is_encoded_once_a_set():
    encoder = Plane()
    evaluate_sts(encoder, [sts_set("one", GOOD), sts_set("two", [*BAD, *BAD])], bootstrap=0)
    assert encoder.calls == [["x", "d", "y"], ["x", "y"]]


def test_mean_is_over_years_not_sets(tmp_path):
    write_senteval(tmp_path / "STS12", "a", [("5", "x", "x"), ("0", "x", "y")])
    write_senteval(tmp_path / "STS14", "a", [("5", "x", "y"), ("0", "x", "x")])
    write_senteval(tmp_path / "STS14", "b", [("5", "x", "y"), ("0", "x", "x"), ("", "x", "d")])
    result = evaluate_sts(Plane(), tmp_path, bootstrap=0)
    assert [year.mean for year in result.years] == pytest.approx([1, -1])
    assert result.mean == pytest.approx(0)
    assert [one.skipped for one in result.sets] == [0, 0, 1]
    assert "1 pairs without a gold score were skipped." in result.text()


def test_subsets_and_development(tmp_path):
    write_benchmark(tmp_path)
    result = evaluate_sts(Plane(), tmp_path, bootstrap=0)
    found = {one.name: one for one in result.sets}
    assert list(found)[:3] == ["STSB-dev", "STSB-dev captions", "STSB-dev no captions"]
    # Gold 4, 2, 3 against cosines 0, 1, 0.7.
    assert found["STSB-dev no captions"].pearson == pytest.approx(pearson([0, 1, DIAGONAL], [4, 2, 3]))
    assert (found["STSB-dev"].part_of, found["STSB-dev captions"].part_of) == (None, "STSB-dev")
    assert result.development == evaluate_sts(Plane(), [development_set(tmp_path)], bootstrap=0).sets[0].pearson
    # Gold 0, 1, 2 against cosines 0, 0.7, 1, over and over; each half of 125 begins anew.
    assert result.development == pytest.approx(pearson([0, DIAGONAL, 1], [0, 1, 2]), abs=1e-3)
    assert result.mean is None and not result.years


def test_zero_vectors_count_as_zero_and_are_counted():
    rows = [*GOOD, (2.0, "nothing", "x"), (1.0, "nothing", "nothing")]
    (one,) = evaluate_sts(Knowing(), [sts_set("a", rows)], bootstrap=0).sets
    assert one.similarities.tolist()[3:] == [0, 0]
    assert (one.zero_vectors, one.unknown_sentences) == (3, 3)
    said = evaluate_sts(Knowing(), [sts_set("a", rows)], bootstrap=0).text().split("\n")[-1]
    assert said == (
        "3 sentences have no word that the model knows and does not leave out, so their vectors are zeros; the cosine "
        "of their pairs counts as 0."
    )
    result = evaluate_sts(Plane(), [sts_set("a", rows)], bootstrap=0)
    assert result.sets[0].unknown_sentences is None
    assert "3 sentences have a vector of zeros" in result.text()


def test_blocks_do_not_change_the_result(monkeypatch):
    rows = [*GOOD, *BAD]
    whole = evaluate_sts(Plane(), [sts_set("a", rows)], bootstrap=0).sets[0].similarities
    monkeypatch.setattr(similarities, "_BLOCK_PAIRS", 2)
    assert evaluate_sts(Plane(), [sts_set("a", rows)], bootstrap=0).sets[0].similarities.tolist() == whole.tolist()


def test_tiny_and_huge_vectors_have_the_same_cosine():
    """Squares of float32 vectors would overflow or vanish."""
    for scale in (1e-30, 1e30):
        vectors = {word: np.multiply(vector, scale) for word, vector in PLANE.items()}
        (one,) = evaluate_sts(Plane(vectors), [sts_set("a", GOOD)], bootstrap=0).sets
        assert one.similarities == pytest.approx(COSINES)


class Pairs:
    """A measure of pairs that gives what it is told."""

    notes = ("A note of the measure.",)

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def similarities(self, left: list[str], right: list[str]) -> np.ndarray:
        return np.array(self.values)


def test_a_measure_of_pairs():
    result = evaluate_sts(Pairs([3, 2, 1]), [sts_set("a", GOOD)], bootstrap=0, name="given")
    assert result.sets[0].pearson == pytest.approx(pearson([3, 2, 1], [5, 3, 0]))
    assert (result.model, result.notes) == ("given", ["A note of the measure."])


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (Plane({**PLANE, "d": [np.nan, 1]}), "STS12 a, pair 2: the similarity of 'x' and 'd' is nan"),
        (Plane({**PLANE, "y": [np.inf, 1]}), "STS12 a, pair 3: the similarity of 'x' and 'y' is nan"),
        (Plane(dict.fromkeys(PLANE, [1, 2])), "STS12 a: there is no correlation, because the model gives all 3 pairs"),
        (Plane(dict.fromkeys(PLANE, [0, 0])), "gives all 3 pairs the similarity 0"),
        (
            Plane(dict.fromkeys(PLANE, 1)),
            r"expected a vector for each of 3 sentences, got the shape \(3,\) from Plane",
        ),
        (Pairs([1, float("inf"), 0]), "STS12 a, pair 2: the similarity of 'x' and 'd' is inf"),
        (Pairs([1, 2]), r"STS12 a: expected 3 similarities, one a pair, got the shape \(2,\)"),
    ],
)
def test_broken_models_get_no_score(encoder, message):
    with pytest.raises(InputError, match=message):
        evaluate_sts(encoder, [sts_set("a", GOOD, "STS12")])


def test_constant_gold_scores():
    with pytest.raises(InputError, match="a .*the gold scores.* second values are all 5"):
        evaluate_sts(Plane(), [sts_set("a", [(5, "x", "x"), (5, "x", "y")])])


def test_arguments_are_checked():
    with pytest.raises(InputError, match="nothing to evaluate"):
        evaluate_sts(Plane(), [])
    with pytest.raises(InputError, match="cannot be negative, got -1"):
        evaluate_sts(Plane(), [sts_set("a", GOOD)], bootstrap=-1)


def test_json_holds_every_figure_and_survives():
    result = evaluate_sts(Plane(), [sts_set("a", GOOD, "STS13"), sts_set("b", BAD)], bootstrap=50)
    plain = json.loads(json.dumps(result.to_json()))
    assert plain["mean"] == result.mean
    assert plain["years"][0]["all_spearman"] == pytest.approx(1)
    assert plain["sets"][0]["interval"] == list(result.sets[0].interval)
    assert (plain["sets"][1]["name"], plain["sets"][1]["pairs"], plain["sets"][1]["year"]) == ("b", 2, None)
    assert "without SMT" in plain["notes"][0]


def test_tables():
    result = evaluate_sts(Plane(), [sts_set("a|b", [*GOOD, *BAD], "STS12")], name="plane", bootstrap=0)
    one, figure = result.sets[0], f"{100 * result.mean:.1f}"
    row = f"| STS12 a\\|b | 5 | {figure} |  | {100 * one.spearman:.1f} |"
    assert row in result.markdown().splitlines()
    assert result.text().splitlines()[1].split() == ["STS12", "a|b", "5", figure, f"{100 * one.spearman:.1f}"]
    assert f"| plane | {figure} | {figure} |" in compare([result], style="markdown")
    assert compare([result, result]).count(figure) == 4


def test_differences_between_models():
    sets = [sts_set("a", GOOD, "STS12"), sts_set("b", BAD, "STS13"), sts_set("benchmark", GOOD)]
    first = evaluate_sts(Plane(), sets, bootstrap=0, name="one")
    second = evaluate_sts(Plane({**PLANE, "y": [-1, 0]}), sets, bootstrap=0, name="two")
    # The sets of a year alone: the benchmark is drawn from them.
    expected = 50 * sum(abs(first.sets[index].pearson - second.sets[index].pearson) for index in (0, 1))
    assert expected > 1
    found = mean_absolute_differences([first, second, first])
    assert found == pytest.approx(np.array([[0, expected, 0], [expected, 0, expected], [0, expected, 0]]))
    assert differences([first, second], style="markdown").splitlines()[2:] == [
        f"| one | 0.0 | {expected:.1f} |",
        f"| two | {expected:.1f} | 0.0 |",
    ]
    with pytest.raises(InputError, match="expected sets of the yearly competitions .* found none"):
        mean_absolute_differences([evaluate_sts(Plane(), sets[2:], bootstrap=0)])
    other = evaluate_sts(Plane(), sets[:1], bootstrap=0)
    for function in (mean_absolute_differences, compare):
        with pytest.raises(InputError, match="evaluated on different data"):
            function([first, other])
        with pytest.raises(InputError, match="no results to compare"):
            function([])


RECORDED_YEARS = [47.08, 41.37, 47.12]
RECORDED_MTEB = [50.34, 41.31, 39.67]
RECORDED_DEVELOPMENT = 39.51


def test_real_data_and_vectors(shared_data):
    """Averages of GloVe vectors; the figures were recorded when this test was written."""
    vectors = read_vectors(shared_data / "vectors" / "glove.100d.100k.txt.gz", limit=40_000)
    result = evaluate_sts(FastScorer(tables_of(vectors)), shared_data / "sts", bootstrap=200)
    assert [100 * year.mean for year in result.years] == pytest.approx(RECORDED_YEARS, abs=0.1)
    assert [100 * year.all_spearman for year in result.years] == pytest.approx(RECORDED_MTEB, abs=0.1)
    assert 100 * result.development == pytest.approx(RECORDED_DEVELOPMENT, abs=0.1)
    low, high = result.sets[0].interval
    assert low < result.sets[0].pearson < high < low + 0.2
