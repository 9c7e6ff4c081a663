"""The head: its layers by hand, its files, and what is wrong with one."""

import json

import numpy as np
import pytest
import torch

from paranmt_hf.supervised.model import Head
from tests.refused import refused
from tests.supervised.toys import head_of


def layers(head):
    return {name: weight.numpy() for name, weight in head.state_dict().items()}


def by_hand(head, first, second=None):
    own = layers(head)
    if "project.weight" in own:
        first, second = (
            None if side is None else side @ own["project.weight"].T + own["project.bias"] for side in (first, second)
        )
    features = first if second is None else np.concatenate([np.abs(first - second), first * second], axis=1)
    hidden = 1 / (1 + np.exp(-(features @ own["hidden.weight"].T + own["hidden.bias"])))
    logits = hidden @ own["output.weight"].T + own["output.bias"]
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("projection", [None, 6])
@pytest.mark.parametrize("sides", [1, 2])
def test_layers_are_those_of_the_paper(sides, projection):
    head = head_of(sides=sides, projection=projection)
    vectors = [np.random.default_rng(side).standard_normal((5, 4)).astype(np.float32) for side in range(sides)]
    found = head(*map(torch.from_numpy, vectors)).detach().numpy()
    np.testing.assert_allclose(found, by_hand(head, *vectors), atol=1e-6)
    assert found.shape == (5, 3)


def test_the_order_of_two_sentences_changes_nothing():
    head, (left, right) = head_of(), torch.randn(2, 5, 4)
    torch.testing.assert_close(head(left, right), head(right, left))


@pytest.mark.parametrize("projection", [None, 6])
def test_saved_and_loaded(tmp_path, projection):
    head = head_of(projection=projection, classes=["1", "2"], values=[1.0, 2.0])
    head.save(tmp_path)
    again = Head.load(tmp_path)
    assert again.config == head.config and not again.training
    vectors = torch.randn(2, 5, 4)
    assert torch.equal(again(*vectors), head(*vectors))


@pytest.mark.parametrize("values", [{"hidden": "3"}, {"hidden": 10**12}, {"projection": 5}, {"classes": ["a"]}])
def test_damaged_configurations(tmp_path, values):
    head_of().save(tmp_path)
    path = tmp_path / "head" / "head.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    with refused():
        Head.load(tmp_path)


def test_damaged_files(tmp_path):
    with refused(path=tmp_path / "head/head.json"):
        Head.load(tmp_path)
    head_of().save(tmp_path)
    path = tmp_path / "head" / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    with refused(path=path):
        Head.load(tmp_path)
    path.unlink()
    with refused(path=path):
        Head.load(tmp_path)
    path.write_bytes(whole)
    for content in ("[]", "{", "null"):
        (tmp_path / "head" / "head.json").write_text(content)
        with refused(path=tmp_path / "head/head.json"):
            Head.load(tmp_path)
