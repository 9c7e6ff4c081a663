"""The programs of `benchmarks/papers/` about mega-batches and overfitting, run small."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from paranmt_hf import EncoderConfig, TrainConfig, load, train
from tests.training.toys import random_text, synonyms, write_data

PROGRAMS = Path(__file__).parents[2] / "benchmarks" / "papers"


def run(name, *arguments):
    program = [sys.executable, str(PROGRAMS / name), *map(str, arguments)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.slow
def test_table_7(tmp_path):
    sides = random_text(90, words=300)
    (tmp_path / "corpus").mkdir()
    write_data(tmp_path / "corpus" / "pairs.parquet", sides)
    sentence, own = sides[0][3], sides[1][3]
    lines = run("paranmt_table7.py", sentence, "--data", tmp_path / "corpus", "--mega-batches", "1", "2", "4")
    assert lines[0] == sentence
    found = [line.split(None, 4) for line in lines[1:]]
    assert [int(line[2]) for line in found] == [1, 2, 4]
    cosines = [float(line[3]) for line in found]
    # A larger mega-batch holds the smaller ones; this one holds everything.
    assert cosines == sorted(cosines)
    encoder = load("small")
    others = [text for text in [*sides[0], *sides[1]] if text not in (sentence, own)]
    best = encoder.similarity(encoder.encode([sentence]), encoder.encode(others)).max()
    assert cosines[-1] == pytest.approx(float(best), abs=0.01)


@pytest.mark.slow
def test_a_long_training_sets_its_pairs_apart(tmp_path):
    data = write_data(tmp_path / "pairs.parquet", synonyms(60))
    other = write_data(tmp_path / "other.parquet", synonyms(30, seed=7))
    models = []
    for name, epochs in (("little", 1), ("long", 15)):
        config = TrainConfig(batch_size=10, mega_batch=1, epochs=epochs, learning_rate=0.02)
        models.append(train(data, tmp_path / name, encoder=EncoderConfig(dimension=8), config=config).folder)
    _, *rows = run("paragram_overfitting.py", *models, "--data", data, "--development", other, "--pool", "20")
    figures = np.array([row.split()[:3] for row in rows], float)
    assert (np.abs(figures[:, :2]) <= 4).all()
    np.testing.assert_allclose(figures[:, 2], figures[:, 0] - figures[:, 1], atol=0.002)
    assert figures[1, 0] > figures[0, 0]
