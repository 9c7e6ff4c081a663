"""Counts of words and of pairs of words, against every two words looked at."""

import numpy as np
import pytest

from paranmt_hf.lexicon import pmi, word_sets
from paranmt_hf.lexicon.pmi import count_word_pairs, merged, runs_of
from paranmt_hf.lexicon.word_sets import WordSets, write_word_sets
from paranmt_hf.text.tokens import WordTokenizer
from tests.lexicon.toys import Oracle, random_pairs, table


def write_sets(folder, pairs, limit=100, at_once=7):
    folder.mkdir()
    whole = table(pairs)
    write_word_sets((whole.slice(start, at_once) for start in range(0, len(pairs), at_once)), folder, limit)
    return WordSets(folder)


def counts_of(sets, runs):
    """The counts of all runs: across, in references, in translations, by pair of words."""
    found = {}
    for part in merged(runs, len(sets.words)):
        for row in zip(*(getattr(part, name).tolist() for name in part.__dataclass_fields__), strict=True):
            key = sets.words.words[row[0]], sets.words.words[row[1]]
            assert key not in found
            found[key] = row[2:]
    assert list(found) == sorted(found)
    return found


def expected(oracle):
    keys = set(oracle.across) | set(oracle.within[0]) | set(oracle.within[1])
    return {key: (oracle.across[key], oracle.within[0][key], oracle.within[1][key]) for key in keys}


def test_words_and_the_sentences_that_have_them(tmp_path):
    pairs = random_pairs(60)
    sets, oracle = write_sets(tmp_path / "sets", pairs), Oracle(pairs)
    assert sets.words.words == oracle.words
    assert sets.words.pairs == 60
    for side, counts in enumerate((sets.words.references, sets.words.translations)):
        assert counts.tolist() == [oracle.single[side][word] for word in oracle.words]


def test_equally_frequent_words_are_kept_in_the_order_of_their_characters(tmp_path):
    sets = write_sets(tmp_path / "sets", [("b a", "c"), ("d c b", "Ä é")], limit=3)
    assert sets.words.words == ["a", "b", "c"]


@pytest.mark.parametrize("seed", range(5))
def test_counts_equal_brute_force(tmp_path, seed, monkeypatch):
    pairs = random_pairs(80, seed=seed)
    # Small blocks, several runs, small ranges.
    monkeypatch.setattr(pmi, "BLOCK_PRODUCTS", 200)
    monkeypatch.setattr(pmi, "BLOCK_ROWS", 9)
    monkeypatch.setattr(pmi, "RANGE_ENTRIES", 50)
    sets = write_sets(tmp_path / "sets", pairs)
    runs = count_word_pairs(sets, tmp_path / "runs", 36 * 300, lambda count: None)
    assert len(runs) > 3
    assert [run.first for run in runs] == [0, *(run.last for run in runs[:-1])]
    assert runs[-1].last == 80
    assert counts_of(sets, runs) == expected(Oracle(pairs))


def test_memory_and_blocks_change_nothing(tmp_path, monkeypatch):
    pairs = random_pairs(80, seed=9)
    sets = write_sets(tmp_path / "sets", pairs, limit=12)
    one = count_word_pairs(sets, tmp_path / "one", 10**9, lambda count: None)
    assert len(one) == 1
    monkeypatch.setattr(pmi, "RUN_PAIRS", 13)
    monkeypatch.setattr(pmi, "BLOCK_ROWS", 5)
    several = count_word_pairs(sets, tmp_path / "several", 10**9, lambda count: None)
    assert [run.last - run.first for run in several] == [10] * 8
    found = counts_of(sets, one)
    assert found == counts_of(sets, several) == expected(Oracle(pairs, keep=12))


def test_counting_goes_on_after_the_last_run(tmp_path, monkeypatch):
    pairs = random_pairs(50, seed=3)
    monkeypatch.setattr(pmi, "BLOCK_ROWS", 4)
    monkeypatch.setattr(pmi, "RUN_PAIRS", 8)
    sets = write_sets(tmp_path / "sets", pairs)

    class StoppedError(Exception):
        pass

    def stop(count):
        if count == 24:
            raise StoppedError

    with pytest.raises(StoppedError):
        count_word_pairs(sets, tmp_path / "runs", 10**9, stop)
    done = runs_of(tmp_path / "runs")
    assert [run.last for run in done] == [8, 16]
    reported = []
    runs = count_word_pairs(sets, tmp_path / "runs", 10**9, reported.append)
    assert reported[0] == 16 and reported[-1] == 50
    assert counts_of(sets, runs) == expected(Oracle(pairs))


def test_a_run_holds_the_largest_counts_that_it_may(tmp_path, monkeypatch):
    # Two words on both sides of every pair: 2 are counted across for each pair, 1 on each side.
    monkeypatch.setattr(pmi, "BITS", 4)
    monkeypatch.setattr(pmi, "WEIGHTS", np.array([0, 1, 2**4, 2**4 + 1]))
    monkeypatch.setattr(pmi, "RUN_PAIRS", 7)
    monkeypatch.setattr(pmi, "BLOCK_ROWS", 7)
    monkeypatch.setattr(pmi, "MASK", 15)
    sets = write_sets(tmp_path / "sets", [("a b", "b a")] * 20)
    runs = count_word_pairs(sets, tmp_path / "runs", 10**9, lambda count: None)
    assert len(runs) == 3
    assert counts_of(sets, runs) == {("a", "b"): (40, 20, 20), ("b", "a"): (40, 20, 20)}


def test_a_tokenizer_that_forgets_changes_nothing(tmp_path, monkeypatch):
    pairs = random_pairs(60, seed=4)
    sets = write_sets(tmp_path / "sets", pairs)
    monkeypatch.setattr(word_sets, "word_tokenizer_for", lambda language: WordTokenizer(capacity=3))
    other = write_sets(tmp_path / "other", pairs)
    assert other.words.words == sets.words.words
    runs = [count_word_pairs(each, tmp_path / f"runs{n}", 10**9, print) for n, each in enumerate((sets, other))]
    assert counts_of(sets, runs[0]) == counts_of(other, runs[1])
