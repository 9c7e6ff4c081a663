"""Rows of any source cut into shards of equal size, once."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paranmt_hf.corpus.jobs.shards import Manifest, cut_into_shards
from paranmt_hf.errors import InputError


def tables(sizes):
    done = 0
    for size in sizes:
        yield pa.table({"id": pa.array(range(done, done + size), pa.int64())})
        done += size


def stored(manifest):
    return [pq.read_table(path)["id"].to_pylist() for path in manifest.paths()]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(st.lists(st.integers(0, 9), max_size=5), st.integers(1, 7))
def test_rows_stay_in_their_order(tmp_path_factory, sizes, rows):
    manifest = cut_into_shards(tables(sizes), tmp_path_factory.mktemp("cut"), {"made": "here"}, rows)
    total = sum(sizes)
    assert stored(manifest) == [list(range(at, min(at + rows, total))) for at in range(0, total, rows)]
    assert manifest.complete and manifest.rows == total


def test_what_is_cut_is_not_read_again(tmp_path):
    first = cut_into_shards(tables([5]), tmp_path, {"made": "here"}, 2, extra=lambda: {"left out": 3})
    assert first.extra == {"left out": 3}

    def unreadable():
        raise AssertionError
        yield

    again = cut_into_shards(unreadable(), tmp_path, {"made": "here"}, 2)
    assert again.extra == {"left out": 3} and again.shards == first.shards
    with pytest.raises(InputError, match="rows_per_shard: was 2, now 3"):
        cut_into_shards(unreadable(), tmp_path, {"made": "here"}, 3)
    # A shard that was lost makes all of them be cut anew.
    first.paths()[1].unlink()
    assert stored(cut_into_shards(tables([5]), tmp_path, {"made": "here"}, 2)) == [[0, 1], [2, 3], [4]]


def test_an_interrupted_cut_starts_again_with_any_settings(tmp_path):
    def stopped():
        yield from tables([4])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut_into_shards(stopped(), tmp_path, {"made": "here"}, 2)
    assert not Manifest.open(tmp_path, {"made": "here", "rows_per_shard": 2}).complete
    assert stored(cut_into_shards(tables([4]), tmp_path, {"made": "there"}, 3)) == [[0, 1, 2], [3]]
