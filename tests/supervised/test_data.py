"""The STS benchmark as a supervised task: ParaNMT-50M, table 16."""

import numpy as np
import pytest

from paranmt_hf import InputError, SuperviseConfig, supervise
from paranmt_hf.evaluation.transfer_heads import target_distributions
from paranmt_hf.supervised.data import VALUES, read_task
from tests.evaluation.toys import WORDS, write
from tests.refused import refused

# Genre, score and the second sentence; the first one is "zero".
ROWS = {
    "train": [("main-captions", "5.0", "one"), ("main-news", "0.0", "two"), ("main-captions", "1.6", "three")] * 4,
    "dev": [("main-news", "2.5", "one"), ("main-captions", "0.5", "two"), ("main-captions", "4.75", "one")],
    "test": [("main-captions", "3.0", "two"), ("main-forums", "1.0", "one"), ("main-captions", "0.25", "three")],
}


@pytest.fixture
def benchmark(tmp_path):
    def write_rows(rows=ROWS):
        for split, own in rows.items():
            lines = [
                f"{genre}\tfile\t2017\t{n}\t{score}\tzero\t{other}" for n, (genre, score, other) in enumerate(own)
            ]
            write(tmp_path / "sts" / "STSBenchmark" / f"sts-{split}.csv", lines)
        return tmp_path / "sts"

    return write_rows


def test_all_parts_are_filtered(benchmark):
    folder = benchmark()
    found = {name: read_task(folder, name) for name in ("STSB", "STSB-captions", "STSB-no-captions")}
    sizes = {name: [len(part) for part in task.parts.values()] for name, task in found.items()}
    assert sizes == {"STSB": [12, 3, 3], "STSB-captions": [8, 2, 2], "STSB-no-captions": [4, 1, 1]}
    captions = found["STSB-captions"].parts["dev"]
    assert captions.sides == (["zero"] * 2, ["two", "one"]) and captions.labels.tolist() == [0.5, 4.75]
    assert len({task.checksum for task in found.values()}) == 3
    # The folder of its files does too.
    assert read_task(folder / "STSBenchmark", "STSB").checksum == found["STSB"].checksum


def test_scores_from_0_to_5():
    shares = target_distributions(np.array([0.0, 0.25, 4.75, 5.0]), VALUES["STSB"])
    np.testing.assert_allclose(shares @ np.arange(6), [0, 0.25, 4.75, 5])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert shares[1].tolist() == [0.75, 0.25, 0, 0, 0, 0]


def test_a_model_of_the_benchmark(benchmark, tmp_path):
    config = SuperviseConfig("STSB-captions", epochs=2, hidden=4)
    done = supervise(benchmark(), tmp_path / "out", config=config, encoder={"dimension": 4})
    assert done.record.items == {"train": 8, "dev": 2, "test": 2}
    assert set(done.record.figures["test"]) == {"pearson", "spearman", "mse"}
    predicted = done.load().predict(["zero"] * 2, list(WORDS[1:3]))
    assert ((predicted >= 0) & (predicted <= 5)).all() and done.load().head.config.classes == list("012345")


@pytest.mark.parametrize(
    ("rows", "task", "split"),
    [
        ({**ROWS, "train": [("main-news", "5.5", "one")]}, "STSB", "train"),
        ({**ROWS, "dev": ROWS["dev"][:1]}, "STSB-captions", "dev"),
        ({**ROWS, "dev": ROWS["dev"][1:]}, "STSB-no-captions", "dev"),
    ],
)
def test_damaged_benchmarks(benchmark, rows, task, split):
    folder = benchmark(rows)
    with pytest.raises(InputError) as error:
        read_task(folder, task)
    assert error.value.path == folder / "STSBenchmark" / f"sts-{split}.csv"


def test_no_benchmark(tmp_path):
    with refused():
        read_task(tmp_path, "STSB")
