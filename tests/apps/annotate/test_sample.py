"""Samples for human evaluation, and the ranges of the score."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf import InputError
from paranmt_hf.apps.annotate.sample import (
    AnnotationConfig,
    AnnotationSample,
    ScoreRange,
    equal_ranges,
    given_ranges,
    range_of,
)
from paranmt_hf.corpus.statistics.draws import lottery
from tests.apps.annotate.toys import draw, toy_sample, write_pairs
from tests.refused import refused


def test_counts_of_the_whole_corpus_by_hand(tmp_path):
    scores = [-0.5, 0.1, 0.2, 0.3, 0.9, None, float("nan"), 1.0]
    overlaps = [0.9, 0.0, 0.5, None, 0.25, 0.9, 0.9, 0.75]
    path = write_pairs(tmp_path / "a.parquet", scores, overlaps, group=3)
    sample = draw([path], per_range=1, ranges=(-0.1, 0.2, 0.5, 1.0))
    low, middle, high = sample.ranges
    assert (low.pairs, low.mean_overlap, low.std_overlap) == (2, 0.25, 0.25)
    assert (middle.pairs, middle.mean_overlap, middle.std_overlap) == (1, None, None)
    assert (high.pairs, high.mean_overlap, high.std_overlap) == (2, 0.5, 0.25)
    assert (sample.pairs, sample.unscored, sample.outside) == (8, 2, 1)
    assert sorted(item.range for item in sample.items) == [0, 1, 2]


def test_the_pairs_with_the_smallest_numbers_are_drawn(tmp_path):
    generator = np.random.default_rng(0)
    scores = generator.random(200).astype(np.float32)
    files = [write_pairs(tmp_path / "a.parquet", scores[:150].tolist(), group=7)]
    files.append(write_pairs(tmp_path / "b.parquet", scores[150:].tolist(), first_id=150))
    sample = draw(files, per_range=5, ranges=(0.0, 0.3, 0.7, 1.0), seed=3)
    draws = lottery(np.arange(200), 3)
    for index, (low, high) in enumerate([(0.0, 0.3), (0.3, 0.7), (0.7, 1.0)]):
        inside = np.flatnonzero((scores > np.float32(low)) & (scores <= np.float32(high)))
        expected = sorted(inside[np.argsort(draws[inside])][:5].tolist())
        found = [item for item in sample.items if item.range == index]
        assert sorted(item.id for item in found) == expected
        for item in found:
            assert (item.reference, item.translation) == (f"reference {item.id}", f"translation {item.id}")
            assert np.float32(item.para_score) == scores[item.id]


def test_how_the_corpus_is_cut_changes_nothing(tmp_path):
    scores = np.random.default_rng(1).random(100).tolist()
    whole = draw([write_pairs(tmp_path / "a.parquet", scores, group=100)], ranges=[4], per_range=3)
    cut = [
        write_pairs(tmp_path / f"c{start}.parquet", scores[start : start + 25], first_id=start) for start in (0, 25)
    ]
    cut += [write_pairs(tmp_path / "d.parquet", scores[50:], first_id=50, group=9)]
    assert draw(cut, ranges=[4], per_range=3) == whole
    assert [part.pairs for part in whole.ranges] == [25] * 4


@pytest.mark.slow
def test_the_order_says_nothing_of_the_ranges(tmp_path):
    # Numbers in the lottery are smaller where more pairs are drawn from.
    path = write_pairs(tmp_path / "a.parquet", [0.1] * 1000 + [0.9] * 100, group=1100)
    first = Counter()
    for seed in range(60):
        sample = draw([path], per_range=20, ranges=(0.0, 0.5, 1.0), seed=seed)
        first.update(item.range for item in sample.items[:20])
    assert abs(first[0] / (60 * 20) - 0.5) < 0.05


def test_seeds(tmp_path):
    assert toy_sample(tmp_path) == toy_sample(tmp_path)
    ids = {tuple(item.id for item in toy_sample(tmp_path, seed=seed).items) for seed in range(5)}
    assert len(ids) > 1


def test_a_range_with_fewer_pairs_gives_all(tmp_path):
    sample = toy_sample(tmp_path, per_range=7)
    assert sorted(item.id for item in sample.items) == list(range(10))


def test_round_trip(tmp_path):
    sample = toy_sample(tmp_path)
    sample.write(tmp_path)
    assert AnnotationSample.read(tmp_path) == sample
    assert sample.checksum != toy_sample(tmp_path, per_range=1).checksum


def edited(folder, **changes):
    values = toy_sample(folder).to_json() | changes
    (folder / AnnotationSample.FILE).write_text(json.dumps(values))
    return folder


def test_what_is_no_sample(tmp_path):
    with refused(path=tmp_path):
        AnnotationSample.read(tmp_path)
    items = toy_sample(tmp_path).to_json()["items"]
    items[0]["translation"] = "another"
    with refused(path=tmp_path / "sample.json"):
        AnnotationSample.read(edited(tmp_path, items=items))
    with refused(path=tmp_path / "sample.json"):
        AnnotationSample.read(edited(tmp_path, items=3))
    (tmp_path / AnnotationSample.FILE).write_text("{")
    with refused(path=tmp_path / "sample.json"):
        AnnotationSample.read(tmp_path)


def test_empty_ranges_and_missing_scores(tmp_path):
    path = write_pairs(tmp_path / "a.parquet", [0.3, 0.9])
    with refused():
        draw([path])
    path = write_pairs(tmp_path / "b.parquet", [None, float("nan")])
    with refused():
        draw([path])
    with refused():
        draw([path], ranges=[2])
    # Most scores are equal, and nothing is above the median.
    path = write_pairs(tmp_path / "c.parquet", [0.1, 1.0, 1.0, 1.0])
    with refused():
        draw([path], ranges=[2])


def test_missing_columns(tmp_path):
    pq.write_table(pa.table({"id": [1], "reference": ["a"]}), tmp_path / "a.parquet")
    with refused():
        draw([tmp_path / "a.parquet"])


def test_a_null_sentence(tmp_path):
    table = pq.read_table(write_pairs(tmp_path / "a.parquet", [0.1]))
    index = table.column_names.index("translation")
    pq.write_table(table.set_column(index, "translation", pa.array([None], pa.string())), tmp_path / "a.parquet")
    with refused():
        draw([tmp_path / "a.parquet"], ranges=(0.0, 1.0))


def test_settings():
    with refused("per_range"):
        AnnotationConfig(per_range=0)
    for ranges in ((0.5,), (21,), (0.2, 0.2), (0.1, 0.4, 0.3), (-2, 0), (0, 1.5)):
        with pytest.raises(InputError) as error:
            AnnotationConfig(ranges=ranges)
        assert error.value.option == "ranges"


def test_the_ranges_of_the_paper():
    ranges = given_ranges(AnnotationConfig().ranges)
    assert [part.label for part in ranges] == ["(-0.1, 0.2]", "(0.2, 0.4]", "(0.4, 0.6]", "(0.6, 0.8]", "(0.8, 1.0]"]
    scores = np.array([-0.2, -0.1, -0.09, 0.2, 0.20001, 0.4, 0.6, 0.8, 1.0, 1.1, np.nan], np.float32)
    # An edge belongs to the lower range; what is on the lowest edge, or above the highest, is in none.
    assert range_of(scores, ranges).tolist() == [-1, -1, 0, 0, 1, 1, 2, 3, 4, -1, -1]


def test_labels():
    assert ScoreRange(None, 0.70092).label == "up to 0.7009"
    assert ScoreRange(0.9, None).label == "above 0.9"
    assert ScoreRange(None, None).label == "all"
    assert ScoreRange(-1.0, 0.0).label == "(-1.0, 0.0]"


def test_quintiles_by_hand():
    ranges = equal_ranges(np.arange(10, dtype=np.float32) / 10, 5)
    assert [part.label for part in ranges] == ["up to 0.1", "(0.1, 0.3]", "(0.3, 0.5]", "(0.5, 0.7]", "above 0.7"]
    assert equal_ranges(np.ones(3, np.float32), 1) == [ScoreRange(None, None)]


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=60), st.integers(1, 7))
def test_quantiles_are_exact(values, count):
    scores = np.array(values, np.float32)
    edges = [float(np.sort(scores)[-(-index * len(scores) // count) - 1]) for index in range(1, count)]
    if len(set(edges)) < len(edges):
        with refused("ranges"):
            equal_ranges(scores, count)
        return
    ranges = equal_ranges(scores, count)
    assert np.float32([part.high for part in ranges[:-1]]).tolist() == edges
    found = range_of(scores, ranges)
    expected = np.searchsorted(np.array(edges), scores, side="left")
    assert found.tolist() == expected.tolist()
