"""Random samples: those of a lottery over ids, whatever way the rows come in."""

import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf.corpus.statistics.draws import Sample, lottery, sample_ids


def rows(ids):
    return pa.table({"id": pa.array(ids, pa.int64()), "sentence": [f"s{index}" for index in ids]})


@pytest.mark.parametrize("batch", [1, 7, 250])
@pytest.mark.parametrize("count", [1, 20, 249, 250, 300])
def test_a_sample_is_that_of_the_lottery(batch, count):
    ids = np.random.default_rng(0).permutation(1000)[:250]
    sample = Sample(count, 5, slack=3)
    for start in range(0, 250, batch):
        sample.add(rows(ids[start : start + batch]))
        assert sample.held <= count + 3 + batch
    table = sample.table()
    assert sample.seen == 250
    assert sorted(table["id"].to_pylist()) == sample_ids(ids, count, 5).tolist()
    assert np.all(np.diff(lottery(table["id"].to_numpy(), 5).astype(float)) >= 0)
    assert table["sentence"].to_pylist() == [f"s{index}" for index in table["id"].to_pylist()]


def test_a_smaller_sample_begins_a_larger_one_and_seeds_differ():
    def sampled(count, seed):
        sample = Sample(count, seed)
        sample.add(rows(range(100)))
        return sample.table()["id"].to_pylist()

    assert sampled(30, 1)[:10] == sampled(10, 1) != sampled(10, 2)


def test_a_sample_of_some_places():
    sample = Sample(3, 0)
    sample.add(rows(range(100)), np.array([4, 7, 9, 30]))
    assert sample.seen == 4 and set(sample.table()["id"].to_pylist()) < {4, 7, 9, 30}


def test_the_lottery_is_even():
    """The mean of 5,000 draws lies within four standard errors of the middle."""
    draws = lottery(np.arange(5000), 0) / 2**64
    assert abs(draws.mean() - 0.5) < 4 * 0.2887 / np.sqrt(5000)
