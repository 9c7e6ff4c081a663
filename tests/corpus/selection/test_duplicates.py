"""Exact copies against a dictionary, and near-duplicates against brute force: the first row is kept."""

import itertools
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paranmt_hf.corpus.selection.column_files import ColumnFile
from paranmt_hf.corpus.selection.minhash import MinHash, Shingler, jaccard
from paranmt_hf.corpus.selection.near_duplicates import CandidateFiles, NearDuplicateSearch, decide_pairs, sharing
from paranmt_hf.corpus.selection.repeated_rows import FirstCopies
from paranmt_hf.text.definitions import words
from paranmt_hf.util.progress import Progress
from tests.corpus.selection.toys import chosen

pytest.importorskip("duckdb")


def judged(one, table, work, size):
    """What a filter keeps, and the ids of the rows that dropped ones repeat."""
    work.mkdir()
    one.prepare(lambda: (table.slice(start, 900) for start in range(0, len(table), 900)), work)
    verdicts = [one.judge(table.slice(start, size)) for start in range(0, len(table), size)]
    kept = np.concatenate([verdict.kept for verdict in verdicts])
    return kept, np.concatenate([verdict.number for verdict in verdicts])[~kept]


@pytest.mark.parametrize("compared", ["pair", "reference", "translation"])
def test_the_first_copy_by_id_is_kept(tmp_path, compared):
    random = np.random.default_rng(2)
    sides = [[f"word {number}" for number in random.integers(0, 40, 3000)] for _ in range(2)]
    # Equal when joined, and not as pairs; and upper case counts.
    sides[0][:3], sides[1][:3] = ["a b", "a", "A"], ["c", "b c", "b c"]
    table = pa.table({"id": np.arange(3000) * 2 + 5, "reference": sides[0], "translation": sides[1]})
    first: dict[tuple[str, ...], int] = {}
    keys = zip(
        *(table[name].to_pylist() for name in (["reference", "translation"] if compared == "pair" else [compared])),
        strict=True,
    )
    rows = list(zip(table["id"].to_pylist(), keys, strict=True))
    for row, key in rows:
        first.setdefault(key, row)
    kept, numbers = judged(chosen(drop_copies=(compared,)), table, tmp_path / "work", 333)
    assert kept.tolist() == [first[key] == row for row, key in rows]
    assert numbers.tolist() == [first[key] for row, key in rows if first[key] != row] and 0 < kept.sum() < len(kept)


def test_nothing_is_repeated_and_nothing_is_there(tmp_path):
    table = pa.table({"id": [3, 4], "reference": ["a", "a"], "translation": ["b", "c"]})
    assert judged(chosen(drop_copies=("pair",)), table, tmp_path / "work", 1)[0].all()
    chosen(drop_copies=("pair",)).prepare(lambda: iter(()), tmp_path)


def test_without_duckdb(without, tmp_path):
    without("duckdb")
    with pytest.raises(Exception, match=r"pip install 'paranmt-hf\[select\]'"):
        FirstCopies("pair").prepare(lambda: iter(()), tmp_path)


SENTENCES = [
    "The old man walks slowly down the long road to the sea.",
    "Two dogs play in the snow.",
    "The old man walks slowly down the long road to the lake.",
    "the old man walks slowly, down the long road to the sea",
    "Nothing like the others at all.",
    "Two dogs play in the snow!",
]
TABLE = pa.table({"id": [10, 20, 30, 40, 50, 60], "reference": SENTENCES, "translation": SENTENCES[::-1]})


@pytest.mark.parametrize("size", [1, 4, 6])
def test_near_duplicates_by_hand(tmp_path, size):
    kept, firsts = judged(chosen(drop_near_duplicates="reference"), TABLE, tmp_path / "work", size)
    assert kept.tolist() == [True, True, False, False, True, False] and firsts.tolist() == [10, 10, 20]
    # Of pairs both sides count.
    assert judged(chosen(drop_near_duplicates="pair", similarity=0.9), TABLE, tmp_path / "pairs", size)[0].all()


ROOMS = [
    f"The meeting of the team is on {day} at {hour} in room {room} of the main building."
    for day in ("Monday", "Friday")
    for hour in ("8 am", "9 am", "8 pm")
    for room in range(8, 18)
]


@pytest.mark.slow
@pytest.mark.parametrize("compared", ["reference", "pair"])
def test_sentences_of_one_template_are_kept(tmp_path, compared):
    # A sentence that says the same in other words, of each; none is like only one of the first.
    again = [room.replace("The meeting of the team", "The team meeting") for room in ROOMS[:50]]
    sentences = [*ROOMS, *again]
    table = pa.table({"id": range(len(sentences)), "reference": sentences, "translation": sentences})
    one = chosen(drop_near_duplicates=compared, similarity=0.5, same_meaning=True)
    kept, firsts = judged(one, table, tmp_path / "work", 40)
    assert kept.tolist() == [True] * len(ROOMS) + [False] * len(again)
    assert firsts.tolist() == list(range(len(again)))
    dropped = chosen(drop_near_duplicates=compared, similarity=0.5)
    assert judged(dropped, table, tmp_path / "all", 40)[0].sum() < len(ROOMS)
    assert one.identity != dropped.identity


WORDS = "the a man woman dog cat plays eats sees near under house garden small big red two three , .".split()


def documents_of(count: int, sides: int, seed: int) -> list[tuple[str, ...]]:
    """Random documents, many of which are others with some words changed, and a few of which are empty."""
    generator = np.random.default_rng(seed)
    made: list[tuple[str, ...]] = []
    for _ in range(count):
        if made and generator.random() < 0.6:
            tokens = [side.split() for side in made[generator.integers(len(made))]]
            for side in tokens:
                if side and generator.random() < 0.8:
                    side[generator.integers(len(side))] = str(generator.choice(WORDS))
        else:
            tokens = [generator.choice(WORDS, generator.integers(0, 25)).tolist() for _ in range(sides)]
        made.append(tuple(" ".join(side) for side in tokens))
    return made


def shingles(document: tuple[str, ...]) -> set[tuple[int, tuple[str, ...]]]:
    tokens = [words(sentence) for sentence in document]
    pairs = {(side, pair) for side, own in enumerate(tokens) for pair in zip(own, own[1:], strict=False)}
    return pairs | {(side, tuple(own)) for side, own in enumerate(tokens) if len(own) == 1}


def first_is_kept(alike: np.ndarray) -> np.ndarray:
    """For each document the first that is kept and like it, or -1, one after the other."""
    repeats = np.full(len(alike), -1)
    for later in range(len(alike)):
        found = [earlier for earlier in range(later) if alike[later, earlier] and repeats[earlier] < 0]
        repeats[later] = found[0] if found else -1
    return repeats


def find(documents, folder, batch=100) -> np.ndarray:
    folder.mkdir()
    with closing(NearDuplicateSearch(folder)) as found:
        for start in range(0, len(documents), batch):
            found.add([pa.array(column) for column in zip(*documents[start : start + batch], strict=True)])
        assert len(found) == len(documents)
        return found.repeats(Progress("compare"))


@pytest.mark.slow
@pytest.mark.parametrize("sides", [1, 2])
def test_equal_to_brute_force(sides, tmp_path):
    documents = documents_of(300, sides, 1)
    sets = [shingles(document) for document in documents]
    alike = [[bool(a and b) and len(a & b) / len(a | b) >= 0.7 for a in sets] for b in sets]
    expected = first_is_kept(np.array(alike))
    assert 30 < (expected >= 0).sum() < 250
    # With these documents MinHash misses no pair.
    assert find(documents, tmp_path / "work").tolist() == expected.tolist()


@pytest.mark.slow
def test_batches_make_no_difference(tmp_path):
    documents = documents_of(600, 1, 3)
    whole = find(documents, tmp_path / "whole", batch=600)
    assert (whole >= 0).any()
    assert find(documents, tmp_path / "parts", batch=7).tolist() == whole.tolist()


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(0, 2**63), st.integers(1, 30), st.integers(1, 9))
def test_parts_of_a_sort_make_no_difference(groups, factor, sorted_at_once, read_at_once):
    """Documents of one key are pairs, whatever is sorted and read at once."""
    with tempfile.TemporaryDirectory() as folder, closing(ColumnFile(Path(folder) / "keys", np.uint64)) as keys:
        # Odd, so that different groups have different keys, which differ in their upper bits too.
        keys.append(np.array(groups, np.uint64) * np.uint64(factor | 1) << np.uint64(8))
        sizes = {"sorted_at_once": sorted_at_once, "read_at_once": read_at_once}
        leave_out = np.zeros(len(groups), bool)
        found = [pair for parts in sharing(keys, 5, leave_out, **sizes) for pair in zip(*parts, strict=True)]
        whole = [pair for parts in sharing(keys, 5, leave_out) for pair in zip(*parts, strict=True)]
    assert sorted(found) == sorted(whole)
    assert all(groups[earlier] == groups[later] and earlier < later for earlier, later in found)


def test_pairs_are_read_by_their_later_documents(tmp_path):
    random = np.random.default_rng(4)
    later = random.integers(1, 300, 2000)
    earlier = (later * random.random(2000)).astype(np.int64)
    candidates = CandidateFiles(tmp_path, 300, block=64)
    for start in range(0, 2000, 700):
        candidates.append(earlier[start : start + 700], later[start : start + 700])
    parts = [part for block in range(candidates.blocks) for part in candidates.parts(block, at_once=11)]
    found = [(second, first) for part in parts for first, second in zip(*part, strict=True)]
    assert found == sorted(set(zip(later.tolist(), earlier.tolist(), strict=True)))
    assert all(one[1][-1] < two[1][0] for one, two in itertools.pairwise(parts))


def test_a_chain_by_hand():
    """1 is like 0, 2 is like 1 alone: so 2 is kept, because 1 is not."""
    repeats = np.full(6, -1, np.int64)
    decide_pairs(np.array([0, 1, 2, 0, 3]), np.array([1, 2, 3, 5, 5]), repeats)
    assert repeats.tolist() == [-1, 0, -1, 2, -1, 0]


def test_empty_documents_and_sides(tmp_path):
    assert find([("",), ("",), ("a b",), ("",)], tmp_path / "work").tolist() == [-1] * 4
    assert find([], tmp_path / "none").tolist() == []
    # A pair is not like the pair turned round.
    documents = [("a man eats", "two dogs"), ("two dogs", "a man eats"), ("a man eats", "two dogs")]
    assert find(documents, tmp_path / "sides").tolist() == [-1, -1, 0]


def test_similarity_by_hand():
    left = Shingler().sets([pa.array(["a b c d", "one", "one two", ""])])
    right = Shingler().sets([pa.array(["a b c e", "One", "two one", ""])])
    # ab bc cd with ab bc ce: two of four.
    assert jaccard(left, right).tolist() == [0.5, 1.0, 0.0, 1.0]
    assert np.diff(left.bounds).tolist() == [3, 1, 1, 0]


def test_minhash_estimates_similarity():
    """The share of equal minima estimates the Jaccard similarity: 40 of 79 word pairs, 19 each on one side alone."""
    sets = Shingler().sets([pa.array([" ".join(map(str, range(60))), " ".join(map(str, range(20, 80)))])])
    keys = MinHash(2000, 1).keys(sets)
    assert (keys[:, 0] == keys[:, 1]).mean() == pytest.approx(39 / 79, abs=0.035)
