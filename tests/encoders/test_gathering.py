"""Sums of rows by torch and without it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.encoders.gathering import by_scipy, by_torch, gather
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.text.tokens import Bags

WITHOUT_TORCH = """
import sys
from paranmt_hf.cli import main
from paranmt_hf.encoders import scorer

scorer.FEW = int(sys.argv[1])
assert main(["import", sys.argv[2], "--out", sys.argv[3], "--license", "unknown", "--workers", "1"]) == 0
assert ("torch" in sys.modules) == (sys.argv[4] == "with"), sys.argv[4]
assert "transformers" not in sys.modules
"""


@given(st.lists(st.lists(st.integers(0, 19), max_size=30), max_size=12), st.sampled_from(["sum", "mean"]))
def test_both_ways_add_in_one_order(rows, mode):
    weight = np.random.default_rng(1).normal(size=(20, 7)).astype(np.float32)
    lengths = np.array([len(bag) for bag in rows], int)
    flat = np.array([row for bag in rows for row in bag], np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    found = by_scipy(weight, flat, offsets, mode)
    np.testing.assert_array_equal(found, by_torch(weight, flat, offsets, mode))
    for vector, bag in zip(found, rows, strict=True):
        expected = np.zeros(7, np.float32)
        for row in bag:
            expected += weight[row]
        np.testing.assert_array_equal(vector, expected / np.float32(max(len(bag), 1)) if mode == "mean" else expected)


@pytest.mark.parametrize("torch_is_there", [True, False])
def test_some_of_the_bags(monkeypatch, torch_is_there):
    weight = np.array([[1, 2], [10, 20], [100, 200]], np.float32)
    bags = Bags(np.array([0, 0, 1, 2, 2, 1], np.int32), np.array([0, 1, 3, 3, 6]))
    if not torch_is_there:
        monkeypatch.delitem(sys.modules, "torch")
    assert gather(weight, bags, 1, 4, "sum").tolist() == [[11, 22], [0, 0], [210, 420]]
    assert gather(weight, bags, 1, 4, "mean").tolist() == [[5.5, 11], [0, 0], [70, 140]]
    assert gather(weight, bags, 2, 2, "sum").shape == (0, 2)


def test_the_carried_encoder_scores_alike(monkeypatch):
    sentences = ["A man plays the guitar.", "", "zyx 3.5", "Somebody is playing an instrument, they say."] * 700
    scorer = ScorerConfig().load()
    found = scorer.encode(sentences)
    monkeypatch.delitem(sys.modules, "torch")
    without = ScorerConfig().load()
    np.testing.assert_array_equal(without.encode(sentences), found)


@pytest.mark.slow
def test_a_small_import_does_without_torch(tmp_path):
    pairs = {"reference": ["a cat sat", "two dogs"], "translation": ["the cat was sitting", "a pair of dogs"]}
    pq.write_table(pa.table(pairs), tmp_path / "pairs.parquet")
    for few, torch in (("5", "without"), ("4", "with")):
        words = [WITHOUT_TORCH, few, tmp_path / "pairs.parquet", tmp_path / torch, torch]
        # Without a driver nothing asks torch for GPUs.
        driver = "from paranmt_hf.corpus.jobs import engine; engine.has_driver = lambda: False\n"
        done = subprocess.run(
            [sys.executable, "-c", driver + words[0], *map(str, words[1:])],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    first, second = (next((tmp_path / name / "data").iterdir()).read_bytes() for name in ("without", "with"))
    assert first == second
