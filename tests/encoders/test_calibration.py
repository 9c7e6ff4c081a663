"""Probabilities and thresholds of a calibration, and encoders with one."""

import copy
import dataclasses
import json
import logging
import pickle

import numpy as np
import pytest

from paranmt_hf import Calibration, InputError, StaticEncoder, load
from paranmt_hf.encoders.calibration import CalibrationData, CalibrationSettings
from paranmt_hf.encoders.model_folder import copy_model
from paranmt_hf.encoders.null_distribution import NullData, NullDistribution
from paranmt_hf.evaluation.contrast import wilson_interval
from paranmt_hf.hub.repository import ASSETS, locate
from paranmt_hf.util.records import made_with
from tests.refused import refused


@pytest.fixture
def calibration():
    return Calibration(
        settings=CalibrationSettings("", [CalibrationData("d", "", 100, 40)], 4.0),
        knots=[(0.2, 0.1), (0.6, 0.5), (0.8, 0.9)],
        counts=[(0.2, 100, 40), (0.6, 50, 35), (0.8, 30, 29)],
        error=0.01,
        dimension=2,
        pairs=100,
        positives=40,
        **made_with(),
    )


def test_probability_is_a_straight_line_between_knots(calibration):
    found = calibration.probability(np.array([-1, 0.2, 0.4, 0.7, 1]))
    np.testing.assert_allclose(found, [0.1, 0.1, 0.3, 0.7, 0.9])


def test_prior_follows_bayes(calibration):
    cosines = np.array([0.3, 0.6, 0.8])
    own = calibration.probability(cosines)
    np.testing.assert_allclose(calibration.probability(cosines, prior=0.4), own)
    # p(c | paraphrase) and p(c | other) are in proportion to p / prior and (1 - p) / (1 - prior).
    positive, negative = own / 0.4, (1 - own) / 0.6
    np.testing.assert_allclose(
        calibration.probability(cosines, prior=0.1), 0.1 * positive / (0.1 * positive + 0.9 * negative)
    )


def test_threshold_is_wilsons_bound(calibration):
    # A one-sided interval of 97.5 % has the lower end of the two-sided one of 95 %.
    low = wilson_interval(35, 50)[0]
    assert calibration.threshold(low - 1e-9, confidence=0.975) == 0.6
    assert calibration.threshold(low + 1e-9, confidence=0.975) == 0.8
    assert calibration.threshold(0.7, confidence=0.5) == 0.6 and calibration.threshold(0.2) == 0.2
    assert calibration.threshold(0.8, confidence=0.5, prior=0.7) == 0.6
    for wrong in ({"precision": 0.99}, {"precision": 1.0}, {"precision": 0.7, "prior": 0.01}, {"prior": 0}):
        with pytest.raises(InputError):
            calibration.threshold(**wrong)


@pytest.mark.slow
def test_bound_holds_on_new_pairs():
    """Of thresholds from small samples, nearly all reach the precision on the whole population."""
    from paranmt_hf.calibration.calibrate import counts_above

    generator = np.random.default_rng(1)
    cosines = generator.random(200_000)
    positive = generator.random(200_000) < cosines
    base = dict(settings=CalibrationSettings("", [], 4.0), knots=[(0.0, 0.5)], error=0.0, dimension=1)
    reached = []
    for _ in range(200):
        sample = generator.integers(0, len(cosines), 1000)
        good = int(positive[sample].sum())
        counts = counts_above(cosines[sample], positive[sample])
        found = Calibration(**base, counts=counts, pairs=1000, positives=good, **made_with()).threshold(0.8)
        reached.append(positive[cosines >= found].mean() >= 0.8)
    assert np.mean(reached) > 0.85


@pytest.fixture
def with_null(calibration):
    settings = dataclasses.replace(calibration.settings, null=NullData("t.txt", "", 5000, 1000, 100))
    counts = [(0.1, 5000), (0.25, 900), (0.3, 100), (0.4, 12)]
    return dataclasses.replace(
        calibration, settings=settings, null=NullDistribution(10_000, counts, 0.3, (0.2, 0.4), 7)
    )


def test_written_and_read(calibration, with_null, tmp_path):
    for each in (calibration, with_null):
        each.write(tmp_path)
        assert Calibration.read(tmp_path) == each


def test_null_threshold_is_reached_by_at_most_one_in_n(calibration, with_null):
    assert [with_null.null_threshold(one_in) for one_in in (None, 100, 101, 833, 11, 2)] == [
        0.3,
        0.3,
        0.4,
        0.4,
        0.25,
        0.1,
    ]
    for wrong in (834, 0):
        with refused("one_in"):
            with_null.null_threshold(wrong)
    with refused():
        calibration.null_threshold()


def test_distance_by_hand(calibration):
    # At or above 0.2, 0.6 and 0.8 are 100, 50 and 30 of 100 pairs; and 4, 1 and 1 of these four.
    assert calibration.distance([0.9, 0.5, 0.4, 0.3]) == pytest.approx(0.25)
    # Of paraphrases 40, 35 and 29 of 40 are; of others 60, 15 and 1 of 60. Half of each at 0.6: 0.875 / 2 + 0.25 / 2.
    assert calibration.distance([0.9, 0.5, 0.4, 0.3], prior=0.5) == pytest.approx(0.5625 - 0.25)
    assert calibration.distance([0.6] * 2 + [0.8] * 3 + [0.3] * 5, prior=0.4) == pytest.approx(0)
    for wrong in ([], [[0.1, 0.2]]):
        with refused():
            calibration.distance(wrong)
    with refused("prior"):
        calibration.distance([0.5], prior=1.0)


def test_distance_is_nearly_that_of_kolmogorov_and_smirnov():
    from scipy.stats import ks_2samp

    from paranmt_hf.calibration.calibrate import counts_above

    generator = np.random.default_rng(2)
    own, other = generator.beta(4, 2, 700), generator.beta(4, 3, 900)
    counts = counts_above(own, own > 0.5)
    base = dict(settings=CalibrationSettings("", [], 4.0), knots=[(0.0, 0.5)], error=0.0, dimension=1)
    found = Calibration(**base, counts=counts, pairs=700, positives=int((own > 0.5).sum()), **made_with())
    exact = ks_2samp(own, other).statistic
    assert exact - 0.015 < found.distance(other) <= exact and found.distance(own) == pytest.approx(0)


FIRST, SECOND = ["A man plays the guitar.", "It rains.", ""], ["A man is playing a guitar.", "I have a red car.", ""]


@pytest.mark.parametrize("name", ["small", pytest.param("base", marks=pytest.mark.slow)])
def test_carried_encoders(name):
    static, encoder = StaticEncoder.from_pretrained(name), load(name)
    found = static.probability(FIRST, SECOND)
    np.testing.assert_allclose(encoder.probability(FIRST, SECOND), found, atol=1e-3)
    assert found[0] > 0.8 and found[1] < 0.2
    assert static.probability(FIRST[0], SECOND[0]) == pytest.approx(found[0], abs=1e-3)
    assert pickle.loads(pickle.dumps(static)).probability(FIRST[0], SECOND[0]) == pytest.approx(found[0], abs=1e-3)
    assert len(static.probability([], [])) == 0
    assert (static.probability(FIRST, SECOND, prior=0.01) < found).all()
    for wrong in (("a", ["b"]), (["a"], ["b", "c"])):
        with pytest.raises(InputError):
            static.probability(*wrong)


def test_pairs_unlike_those_of_the_calibration_are_reported_once(caplog):
    caplog.set_level(logging.WARNING)
    encoder = StaticEncoder.from_pretrained("small")
    lines = (ASSETS / "calibration" / "pairs.tsv").read_text(encoding="utf8").splitlines()[1:]
    same, first, second = zip(*(line.split("\t") for line in lines), strict=True)
    encoder.probability(first, second)
    # Texts with themselves have a cosine of 1; few pairs are no distribution.
    encoder.probability(first[:199], first[:199])
    assert not caplog.records
    encoder.probability(first[:200], first[:200])
    encoder.probability(first, first)
    assert len(caplog.records) == 1
    # Given their share, paraphrases alone are what was expected.
    good = [row for row, label in enumerate(same) if label == "1"]
    other = StaticEncoder.from_pretrained("small")
    sides = [[side[row] for row in good] for side in (first, second)]
    other.probability(*sides, prior=0.999)
    assert len(caplog.records) == 1
    other.probability(*sides)
    assert len(caplog.records) == 2


@pytest.mark.parametrize("row", [1, -1])
def test_weights_changed_in_memory(row):
    encoder = load("small")
    assert encoder.probability("a", "b") == pickle.loads(pickle.dumps(encoder)).probability("a", "b")
    weight = encoder[0].weight.data
    weight[row] *= 2
    for changed in (encoder, copy.deepcopy(encoder)):
        with pytest.raises(InputError):
            changed.probability("a", "b")
    weight[row] /= 2
    assert encoder.calibration is not None
    weight[[1, 3]] = weight[[3, 1]]
    with pytest.raises(InputError):
        _ = encoder.calibration


def test_checksum_covers_the_vocabulary(tmp_path):
    copy_model(locate("small"), tmp_path)
    units = json.loads((tmp_path / "vocabulary.json").read_text())
    units[5], units[6] = units[6], units[5]
    (tmp_path / "vocabulary.json").write_text(json.dumps(units))
    for encoder in (load(tmp_path), StaticEncoder.from_pretrained(tmp_path)):
        with pytest.raises(InputError) as error:
            _ = encoder.calibration
        assert error.value.path == tmp_path


@pytest.mark.slow
def test_calibration_of_other_files_or_dimensions(tmp_path):
    copy_model(locate("small"), tmp_path)
    revision = locate(tmp_path).revision
    own = Calibration.read(tmp_path)
    dataclasses.replace(own, dimension=7).write(tmp_path)
    assert locate(tmp_path).revision == revision
    with pytest.raises(InputError):
        StaticEncoder.from_pretrained(tmp_path).probability("a", "b")
    dataclasses.replace(own, settings=dataclasses.replace(own.settings, encoder="sha256:0")).write(tmp_path)
    with pytest.raises(InputError) as error:
        _ = load(tmp_path).calibration
    assert error.value.path == tmp_path
    (tmp_path / "calibration.json").unlink()
    assert load(tmp_path).calibration is None
    with pytest.raises(InputError):
        load(tmp_path).probability("a", "b")
