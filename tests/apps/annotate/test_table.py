import json
import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from paranmt_hf.apps.annotate.answers import Rating
from paranmt_hf.apps.annotate.table import agreement, annotation_table, weighted_kappa
from tests.apps.annotate.toys import toy_sample
from tests.refused import refused


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return toy_sample(tmp_path_factory.mktemp("toys"), per_range=3)


def of_range(sample, index):
    return [number for number, item in enumerate(sample.items) if item.range == index]


@pytest.fixture
def answers(sample):
    low, high = of_range(sample, 0), of_range(sample, 1)
    ada = dict(
        zip([*low, *high], [Rating(s, f) for s, f in ((0, 1), (1, 2), (3, 3), (5, 3), (4, 3), (3, 2))], strict=True)
    )
    grace = dict(zip(low, [Rating(2, 1), Rating(skipped=True), Rating(5, 2)], strict=True))
    grace |= dict(zip(high, [Rating(5, 3), Rating(5), Rating()], strict=True))
    return {"Ada": ada, "Grace": grace}


def test_counts_by_hand(sample, answers):
    table = annotation_table(sample, answers)
    assert [(found.paraphrase, found.fluency) for found in table.each["Ada"]] == [
        ((2, 1, 0), (1, 1, 1)),
        ((0, 1, 2), (0, 1, 2)),
    ]
    assert [(found.paraphrase, found.fluency) for found in table.each["Grace"]] == [
        ((1, 0, 1), (1, 1, 0)),
        ((0, 0, 2), (0, 0, 1)),
    ]
    assert [found.paraphrase for found in table.together] == [(3, 1, 1), (0, 1, 4)]
    progress = table.annotators["Grace"]
    assert (progress.rated, progress.skipped, progress.pairs) == (3, 1, 6)
    assert [part.pairs for part in table.ranges] == [5, 5]


def test_agreement(sample, answers):
    found = annotation_table(sample, answers).agreement
    # Both rated for strength: 0 and 2, 3 and 5; 5 and 5, 4 and 5.
    assert found["strength"].items == 4
    kappa = cohen_kappa_score([0, 3, 5, 4], [2, 5, 5, 5], labels=range(6), weights="quadratic")
    assert found["strength"].quadratic == pytest.approx(kappa)
    kappa = cohen_kappa_score([1, 2, 3, 3], [1, 3, 3, 3], labels=[1, 2, 3], weights="linear")
    assert found["paraphrase"].linear == pytest.approx(kappa)
    assert (found["paraphrase"].items, found["paraphrase"].same) == (4, 0.75)
    assert found["fluency"].items == 3
    assert found["paraphrase"].interval is not None


def plain(text):
    """Text without the padding of its tables."""
    return re.sub(" +", " ", text)


def test_summary(sample, answers):
    text = plain(annotation_table(sample, answers).summary())
    assert text.startswith(
        "toy: rated by Ada (6 of 6), Grace (3 of 6, 1 skipped)\n\n### all annotators\n\n| range | pairs |"
    )
    assert "| range | pairs | overlap | paraphrase 1 | 2 | 3 | fluency 1 | 2 | 3 |\n| -" in text
    assert "| (0.0, 0.5] | 5 | 0.50 ± 0.00 | 3 (60.0) | 1 (20.0) | 1 (20.0) | 2 (40.0) | 2 (40.0) | 1 (20.0) |" in text
    assert "### agreement of 2 annotators" in text
    alone = plain(annotation_table(sample, {"Ada": answers["Ada"]}).summary())
    assert "2 (66.7) | 1 (33.3) | 0 (0.0)" in alone
    assert alone.endswith("agreement needs two annotators") and "all annotators" not in alone


def test_json(sample, answers):
    values = json.loads(json.dumps(annotation_table(sample, answers).to_json()))
    assert values["ranges"][0] == {
        "range": "(0.0, 0.5]",
        "low": 0.0,
        "high": 0.5,
        "pairs": 5,
        "mean_overlap": 0.5,
        "std_overlap": 0.0,
    }
    assert values["each"]["Ada"][0] == {"paraphrase": [2, 1, 0], "fluency": [1, 1, 1]}
    assert values["agreement"]["fluency"]["pairs"][0]["first"] == "Ada"


def test_nothing_in_common(sample, answers):
    ada, grace = {0: answers["Ada"][0]}, {1: Rating(3, 3)}
    text = annotation_table(sample, {"Ada": ada, "Grace": grace}).summary()
    assert "agreement: Ada and Grace have no pair in common, so it cannot be measured" in text
    text = annotation_table(sample, {"Ada": ada, "Grace": grace, "Zoe": {2: Rating(3, 3)}}).summary()
    assert "agreement: no two annotators have any pair in common" in text


def test_more_than_two(sample, answers):
    three = {**answers, "Zoe": answers["Ada"]}
    table = annotation_table(sample, three)
    assert "agreement of 3 annotators, mean over each two" in table.summary()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.summary().split("\n")[-3:]]
    assert [row[0] for row in rows] == ["Ada, Grace", "Ada, Zoe", "Grace, Zoe"]
    assert rows[1][1:] == ["6", "1.00", "6", "1.00"] and rows[0][1:] == rows[2][1:]
    kappas = [pair.quadratic for pair in table.agreement["strength"].pairs]
    assert len(kappas) == 3 and table.agreement["strength"].quadratic == pytest.approx(np.mean(kappas))


def test_nobody(sample):
    for answers in ({}, {"Ada": {0: Rating(skipped=True), 1: Rating()}}):
        with refused():
            annotation_table(sample, answers)


def test_by_hand():
    # Rows are the labels of the one, columns of the other: 6 times both 1, once 1 against 3, 3 times both 3.
    counts = np.array([[6, 0, 1], [0, 0, 0], [0, 0, 3]])
    # Quadratic: weight 4. Observed 1 * 4 = 4. Expected (7 * 4 + 3 * 6) * 4 / 10 = 18.4.
    assert weighted_kappa(counts, "quadratic") == pytest.approx(1 - 4 / 18.4)
    assert weighted_kappa(counts, "linear") == pytest.approx(1 - 2 / 9.2)
    # 2 and 3 are nearer than 1 and 3. Linear: observed 1 + 1; expected (row, column): rows 2 1 1, columns 1 2 1.
    counts = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]])
    expected = (2 * 2 * 1 + 2 * 1 * 2 + 1 * 1 * 1 + 1 * 1 * 1 + 1 * 1 * 2 + 1 * 2 * 1) / 4
    assert weighted_kappa(counts, "linear") == pytest.approx(1 - 1 / expected)


def test_limits():
    assert weighted_kappa(np.diag([2, 3, 4]), "linear") == 1
    assert weighted_kappa(np.array([[0, 0, 5], [0, 0, 0], [5, 0, 0]]), "quadratic") == -1
    # Both gave label 3 throughout: there is nothing to agree on. Each gave one label, not the same: as good as chance.
    assert np.isnan(weighted_kappa(np.diag([0, 0, 5]), "linear"))
    assert weighted_kappa(np.array([[0, 0, 5], [0, 0, 0], [0, 0, 0]]), "linear") == 0
    assert np.isnan(weighted_kappa(np.zeros((3, 3)), "linear"))


labels = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=40)


@given(labels)
def test_as_scikit_learn(pairs):
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    found = agreement(["a", "b"], np.stack([first, second]), range(6))
    assert found.same == pytest.approx(np.mean(first == second))
    for weights in ("linear", "quadratic"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = cohen_kappa_score(first, second, labels=list(range(6)), weights=weights)
        ours = getattr(found, weights)
        assert (ours is None and np.isnan(theirs)) or ours == pytest.approx(theirs)


def test_only_what_both_labelled_counts():
    given = np.array([[1, 3, -1, 2, -1], [1, -1, 3, 3, -1]])
    found = agreement(["a", "b"], given, (1, 2, 3))
    assert (found.items, found.same) == (2, 0.5)
    assert found.quadratic == pytest.approx(cohen_kappa_score([1, 2], [1, 3], labels=[1, 2, 3], weights="quadratic"))


def test_no_item_in_common():
    found = agreement(["a", "b"], np.array([[1, -1], [-1, 2]]), (1, 2, 3), resamples=10)
    assert (found.items, found.same, found.linear, found.quadratic, found.interval) == (0, None, None, None, None)
    assert agreement(["a", "b"], np.empty((2, 0), int), (1, 2, 3), resamples=10).items == 0


def test_more_than_two_the_mean_over_each_two():
    generator = np.random.default_rng(0)
    given = generator.integers(1, 4, (3, 30))
    # The third has nothing in common with the first.
    given[0, :15], given[2, 15:] = -1, -1
    found = agreement(["a", "b", "c"], given, (1, 2, 3))
    assert [(pair.first, pair.second, pair.items) for pair in found.pairs] == [
        ("a", "b", 15),
        ("a", "c", 0),
        ("b", "c", 15),
    ]
    kappas = [
        cohen_kappa_score(given[0, 15:], given[1, 15:], weights="linear"),
        cohen_kappa_score(given[1, :15], given[2, :15], weights="linear"),
    ]
    assert found.linear == pytest.approx(np.mean(kappas))
    assert found.items == 30


@pytest.mark.slow
def test_the_interval_is_that_of_resampled_items():
    generator = np.random.default_rng(1)
    first = generator.integers(1, 4, 60)
    second = np.where(generator.random(60) < 0.7, first, generator.integers(1, 4, 60))
    found = agreement(["a", "b"], np.stack([first, second]), (1, 2, 3), resamples=2000, seed=5)
    low, high = found.interval
    kappas = []
    for _ in range(400):
        drawn = generator.integers(0, 60, 60)
        kappas.append(cohen_kappa_score(first[drawn], second[drawn], labels=[1, 2, 3], weights="quadratic"))
    assert low < found.quadratic < high
    assert (low, high) == pytest.approx(np.percentile(kappas, [2.5, 97.5]), abs=0.05)
    assert agreement(["a", "b"], np.stack([first, second]), (1, 2, 3), resamples=2000, seed=5) == found
    assert agreement(["a", "b"], np.stack([first, second]), (1, 2, 3), resamples=2000, seed=6).interval != (low, high)
