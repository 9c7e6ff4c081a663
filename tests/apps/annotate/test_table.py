import json
import re

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from paranmt_hf.apps.annotate.answers import Rating
from paranmt_hf.apps.annotate.table import annotation_table, plot_table
from paranmt_hf.errors import InputError
from tests.apps.annotate.toys import toy_sample


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
    assert found["strength"].all.items == 4
    kappa = cohen_kappa_score([0, 3, 5, 4], [2, 5, 5, 5], labels=range(6), weights="quadratic")
    assert found["strength"].all.quadratic == pytest.approx(kappa)
    kappa = cohen_kappa_score([1, 2, 3, 3], [1, 3, 3, 3], labels=[1, 2, 3], weights="linear")
    assert found["paraphrase"].all.linear == pytest.approx(kappa)
    low, high = found["paraphrase"].ranges
    assert (low.items, low.same, high.items, high.same, high.linear) == (2, 0.5, 2, 1.0, None)
    assert found["fluency"].all.items == 3
    assert found["paraphrase"].all.interval is not None and low.interval is None


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
    assert values["agreement"]["fluency"]["all"]["pairs"][0]["first"] == "Ada"
    assert len(values["agreement"]["fluency"]["ranges"]) == 2


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
    kappas = [pair.quadratic for pair in table.agreement["strength"].all.pairs]
    assert len(kappas) == 3 and table.agreement["strength"].all.quadratic == pytest.approx(np.mean(kappas))


def test_nobody(sample):
    for answers in ({}, {"Ada": {0: Rating(skipped=True), 1: Rating()}}):
        with pytest.raises(InputError, match="nobody has rated a pair of this sample yet"):
            annotation_table(sample, answers)


@pytest.mark.slow
def test_picture(sample, answers, tmp_path, drawing):
    table = annotation_table(sample, answers)
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        plot_table(table, tmp_path / f"table.{kind}", kind)
        assert (tmp_path / f"table.{kind}").read_bytes().startswith(start)
    plot_table(table, tmp_path / "again.png", "png")
    assert (tmp_path / "again.png").read_bytes() == (tmp_path / "table.png").read_bytes()
