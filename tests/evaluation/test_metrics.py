"""The metrics for `evaluate`: no network, several at once."""

import numpy as np
import pytest

from tests.evaluation.toys import DIAGONAL, Plane
from tests.refused import refused

pytest.importorskip("evaluate")


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Anything that opens a connection fails."""
    import socket

    def refuse(*arguments: object, **settings: object) -> None:
        raise AssertionError("a metric tried to reach the network")

    for owner, name in ((socket.socket, "connect"), (socket, "getaddrinfo")):
        monkeypatch.setattr(owner, name, refuse)


def test_correlation():
    from paranmt_hf.evaluation.metrics import StsCorrelation

    found = StsCorrelation().compute(predictions=[1, 2, 3], references=[1, 2, 6])
    assert found == pytest.approx({"pearson": 5 / 28**0.5, "spearman": 1})
    with refused():
        StsCorrelation().compute(predictions=[1.0, 1.0], references=[1.0, 2.0])


def test_several_instances_fill_up_side_by_side():
    from paranmt_hf.evaluation.metrics import StsCorrelation

    first, second = StsCorrelation(), StsCorrelation()
    first.add_batch(predictions=[1, 2], references=[1, 2])
    second.add_batch(predictions=np.array([1.0, 2.0]), references=[2, 1])
    first.add(prediction=3, reference=6)
    assert second.compute()["pearson"] == pytest.approx(-1)
    assert first.compute()["pearson"] == pytest.approx(5 / 28**0.5)
    first.add_batch(predictions=[1, 2], references=[5, 4])
    assert first.compute()["pearson"] == pytest.approx(-1)


def test_paraphrase_score():
    from paranmt_hf.evaluation.metrics import ParaphraseScore

    metric, other = ParaphraseScore(Plane()), ParaphraseScore(Plane())
    found = metric.compute(predictions=["x", "x", "w"], references=["x", "d", "x"])
    assert found["scores"] == pytest.approx([1, DIAGONAL, -1])
    assert found["paraphrase_score"] == pytest.approx(DIAGONAL / 3)
    metric.add_batch(predictions=["x"], references=["y"])
    other.add_batch(predictions=["y"], references=["y"])
    metric.add_batch(predictions=["x"], references=["x"])
    assert metric.compute()["scores"] == pytest.approx([0, 1])
    assert other.compute()["scores"] == pytest.approx([1])
    with refused():
        metric.compute(predictions=["broken"], references=["x"])
