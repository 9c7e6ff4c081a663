"""STS results against hand-worked numbers, and on real data."""

import json

import numpy as np
import pytest

from paranmt_hf import Results, StaticEncoder, evaluate
from paranmt_hf.encoders.named_encoder import word_table
from paranmt_hf.evaluation.correlation import pearson, spearman
from paranmt_hf.evaluation.results import Evaluation
from paranmt_hf.evaluation.similarities import pair_cosines
from paranmt_hf.evaluation.sts import evaluate_sts
from paranmt_hf.evaluation.sts_data import DEVELOPMENT, StsSet, development_set
from paranmt_hf.text.word_vectors import read_vectors
from tests.evaluation.toys import DIAGONAL, PLANE, Knowing, Plane, write_benchmark, write_senteval
from tests.refused import refused


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
    year, mean = result.tables["Year"]
    assert [row["pearson"] for row in result.tables["Set"]] == pytest.approx([good, -1])
    assert year["mean"] == mean.main == result.mean == pytest.approx((good - 1) / 2)
    assert year["weighted_mean"] == pytest.approx((3 * good - 2) / 5)
    assert year["all_pearson"] == pytest.approx(pearson([*COSINES, 0, 1], [5, 3, 0, 5, 0]))
    assert year["all_spearman"] == pytest.approx(spearman([*COSINES, 0, 1], [5, 3, 0, 5, 0]))
    assert (year.details["sets"], year.items, result.value(DEVELOPMENT)) == (2, 5, None)
    assert result.tables["Set"][1].interval == pytest.approx((-1, -1))
    assert result.similarities["STS12 good"] == pytest.approx(COSINES)


def test_each_distinct_sentence_is_encoded_once_a_set():
    encoder = Plane()
    evaluate_sts(encoder, [sts_set("one", GOOD), sts_set("two", [*BAD, *BAD])], bootstrap=0)
    assert encoder.calls == [["x", "d", "y"], ["x", "y"]]


def test_mean_is_over_years_not_sets(tmp_path):
    write_senteval(tmp_path / "STS12", "a", [("5", "x", "x"), ("0", "x", "y")])
    write_senteval(tmp_path / "STS14", "a", [("5", "x", "y"), ("0", "x", "x")])
    write_senteval(tmp_path / "STS14", "b", [("5", "x", "y"), ("0", "x", "x"), ("", "x", "d")])
    result = evaluate_sts(Plane(), tmp_path, bootstrap=0)
    assert [row.main for row in result.tables["Year"]] == pytest.approx([1, -1, 0])
    assert result.mean == pytest.approx(0)
    assert [row.details["skipped"] for row in result.tables["Set"]] == [0, 0, 1]
    assert "1 pair without a gold score skipped." in result.text()


def test_subsets_and_development(tmp_path):
    write_benchmark(tmp_path)
    result = evaluate_sts(Plane(), tmp_path, bootstrap=0)
    found = {row.name: row for row in result.tables["Set"]}
    assert list(found)[:3] == ["STSB-dev", "STSB-dev captions", "STSB-dev no captions"]
    # Gold 4, 2, 3 against cosines 0, 1, 0.7.
    assert found["STSB-dev no captions"]["pearson"] == pytest.approx(pearson([0, 1, DIAGONAL], [4, 2, 3]))
    assert (found["STSB-dev"].group, found["STSB-dev captions"].group) == (None, "STSB-dev")
    alone = evaluate_sts(Plane(), [development_set(tmp_path)], bootstrap=0)
    assert result.value(DEVELOPMENT) == alone.value(DEVELOPMENT)
    # Gold 0, 1, 2 against cosines 0, 0.7, 1, over and over; each half of 125 begins again.
    assert result.value(DEVELOPMENT) == pytest.approx(pearson([0, DIAGONAL, 1], [0, 1, 2]), abs=1e-3)
    assert result.mean is None and not result.tables["Year"]


def test_zero_vectors_count_as_zero_and_are_counted():
    rows = [*GOOD, (2.0, "nothing", "x"), (1.0, "nothing", "nothing")]
    result = evaluate_sts(Knowing(), [sts_set("a", rows)], bootstrap=0)
    assert result.similarities["a"].tolist()[3:] == [0, 0]
    details = result.tables["Set"][0].details
    assert (details["zero_vectors"], details["unknown_sentences"]) == (3, 3)
    assert result.notes[0].startswith("3 sentences have no word that the model knows")
    result = evaluate_sts(Plane(), [sts_set("a", rows)], bootstrap=0)
    assert result.tables["Set"][0].details["unknown_sentences"] == 0
    assert "3 sentences have a vector of zeros" in result.text()


def test_blocks_do_not_change_the_result():
    vectors = np.random.default_rng(0).standard_normal((9, 5)).astype(np.float32)
    left, right = np.arange(8), np.arange(1, 9)
    whole = pair_cosines(vectors, left, right)
    assert pair_cosines(vectors, left, right, pairs=3).tolist() == whole.tolist()


def test_tiny_and_huge_vectors_have_the_same_cosine():
    """Squares of float32 vectors would overflow or vanish."""
    for scale in (1e-30, 1e30):
        vectors = {word: np.multiply(vector, scale) for word, vector in PLANE.items()}
        result = evaluate_sts(Plane(vectors), [sts_set("a", GOOD)], bootstrap=0)
        assert result.similarities["a"] == pytest.approx(COSINES)


class Pairs:
    """A measure of pairs that gives what it is told."""

    notes = ("A note of the measure.",)

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def similarities(self, left: list[str], right: list[str]) -> np.ndarray:
        return np.array(self.values)


def test_a_measure_of_pairs():
    result = evaluate_sts(Pairs([3, 2, 1]), [sts_set("a", GOOD)], bootstrap=0, name="given")
    assert result.value("a") == pytest.approx(pearson([3, 2, 1], [5, 3, 0]))
    assert (result.model, result.notes) == ("given", ["A note of the measure."])


@pytest.mark.parametrize(
    "encoder",
    [
        Plane({**PLANE, "d": [np.nan, 1]}),
        Plane({**PLANE, "y": [np.inf, 1]}),
        Plane(dict.fromkeys(PLANE, [1, 2])),
        Plane(dict.fromkeys(PLANE, [0, 0])),
        Plane(dict.fromkeys(PLANE, 1)),
        Pairs([1, float("inf"), 0]),
        Pairs([1, 2]),
    ],
)
def test_broken_models_get_no_score(encoder):
    with refused():
        evaluate_sts(encoder, [sts_set("a", GOOD, "STS12")])


def test_nothing_and_constant_scores():
    for sets in ([], [sts_set("a", [(5, "x", "x"), (5, "x", "y")])]):
        with refused():
            evaluate_sts(Plane(), sets)


def test_json_holds_every_figure_and_survives():
    result = evaluate_sts(Plane(), [sts_set("a", GOOD, "STS13"), sts_set("b", BAD)], bootstrap=50)
    plain = json.loads(json.dumps(result.to_json()))
    assert Results.from_json(plain, "") == result and "similarities" not in plain
    assert plain["tables"]["Year"][0]["values"]["all_spearman"] == pytest.approx(1)
    assert plain["tables"]["Set"][0]["interval"] == list(result.tables["Set"][0].interval)
    own = plain["tables"]["Set"][1]
    assert (own["name"], own["items"], own["group"]) == ("b", 2, None)
    assert any("without SMT" in note for note in result.notes)


def test_tables():
    result = evaluate_sts(Plane(), [sts_set("a|b", [*GOOD, *BAD], "STS12")], name="plane", bootstrap=0)
    one, figure = result.tables["Set"][0], f"{100 * result.mean:.1f}"
    for written in (result.markdown(), result.text()):
        assert written.splitlines()[2].split() == [
            *("|", "STS12", "a\\|b", "|", "5", "|", figure, "|", f"{100 * one['spearman']:.1f}", "|")
        ]
    compared = Evaluation([result, result]).summary().split("\n\n")[-1]
    assert [line.split() for line in compared.splitlines()[2:]] == [["|", "plane", "|", figure, "|", figure, "|"]] * 2
    sets = [sts_set(f"s{number}", GOOD) for number in range(13)]
    many = evaluate_sts(Plane(), sets, name="plane", bootstrap=0)
    lines = Evaluation([many, many]).summary().split("\n\n")[-1].splitlines()
    assert len(lines) == 15 and lines[2].split()[:4] == ["|", "s0", "|", f"{100 * many.value('s0'):.1f}"]


def test_differences_between_models():
    sets = [sts_set("a", GOOD, "STS12"), sts_set("b", BAD, "STS13"), sts_set("benchmark", GOOD)]
    first = evaluate_sts(Plane(), sets, bootstrap=0, name="one")
    second = evaluate_sts(Plane({**PLANE, "y": [-1, 0]}), sets, bootstrap=0, name="two")
    # The sets of a year alone: the benchmark is drawn from them.
    titles = ("STS12 a", "STS13 b")
    expected = 50 * sum(abs(first.value(title) - second.value(title)) for title in titles)
    assert expected > 1
    found = Evaluation([first, second, first]).mean_absolute_differences()
    assert found == pytest.approx(np.array([[0, expected, 0], [expected, 0, expected], [0, expected, 0]]))
    printed = evaluate({"one": Plane(), "two": Plane({**PLANE, "y": [-1, 0]})}, data=sets, bootstrap=0).summary()
    (table,) = [block for block in printed.split("\n\n") if "Mean absolute difference" in block]
    lines = [line.split()[1::2] for line in table.splitlines()]
    assert lines[2:] == [["one", "0.0", f"{expected:.1f}"], ["two", f"{expected:.1f}", "0.0"]]
    with refused():
        Evaluation([evaluate_sts(Plane(), sets[2:], bootstrap=0)]).mean_absolute_differences()
    other = evaluate_sts(Plane(), sets[:1], bootstrap=0)
    with refused():
        Evaluation([first, other]).summary()
    with refused():
        Evaluation([]).mean_absolute_differences()


RECORDED_YEARS = [47.08, 41.37, 47.12]
RECORDED_MTEB = [50.34, 41.31, 39.67]
RECORDED_DEVELOPMENT = 39.51


@pytest.mark.slow
def test_real_data_and_vectors(shared_data):
    """Averages of GloVe vectors; the figures were recorded when this test was written."""
    vectors = read_vectors(shared_data / "vectors" / "glove.100d.100k.txt.gz", limit=40_000)
    result = evaluate_sts(StaticEncoder([word_table(vectors)]), shared_data / "sts", bootstrap=200)
    assert [100 * row.main for row in result.tables["Year"][:3]] == pytest.approx(RECORDED_YEARS, abs=0.1)
    assert [100 * row["all_spearman"] for row in result.tables["Year"][:3]] == pytest.approx(RECORDED_MTEB, abs=0.1)
    assert 100 * result.value(DEVELOPMENT) == pytest.approx(RECORDED_DEVELOPMENT, abs=0.1)
    low, high = result.tables["Set"][0].interval
    assert low < result.tables["Set"][0].main < high < low + 0.2
