"""Counts of words and of pairs of words, against every two words looked at."""

import pytest

from paranmt_hf.lexicon import word_sets
from paranmt_hf.lexicon.pmi import count_word_pairs, merge_runs, pairs_in, runs_of
from paranmt_hf.lexicon.word_sets import WordSets, write_word_sets
from paranmt_hf.text.tokens import WordTokenizer
from tests.lexicon.toys import Oracle, random_pairs, table


def write_sets(folder, pairs, limit=100, at_once=7):
    folder.mkdir()
    whole = table(pairs)
    write_word_sets((whole.slice(start, at_once) for start in range(0, len(pairs), at_once)), folder, limit)
    return WordSets(folder)


def counts_of(sets, runs, **sizes):
    """The counts of all runs: across, in references, in translations, by pair of words."""
    found = {}
    for part in merge_runs(runs, len(sets.words), **sizes):
        for row in part.to_pylist():
            key = sets.words.words[row["word"]], sets.words.words[row["other"]]
            assert key not in found
            found[key] = row["across"], row["references"], row["translations"]
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


def spans_of(runs):
    return [tuple(map(int, run.stem.split("-"))) for run in runs]


@pytest.mark.parametrize("seed", range(5))
def test_counts_equal_brute_force(tmp_path, seed):
    pairs = random_pairs(80, seed=seed)
    # Small blocks, several runs, small ranges.
    sets = write_sets(tmp_path / "sets", pairs)
    runs = count_word_pairs(sets, tmp_path / "runs", 36 * 300, lambda count: None, products=200)
    spans = spans_of(runs)
    assert len(spans) > 3 and [first for first, _ in spans] == [0, *(last for _, last in spans[:-1])]
    assert spans[-1][1] == 80
    assert counts_of(sets, runs, range_entries=50) == expected(Oracle(pairs))


def test_memory_and_blocks_change_nothing(tmp_path):
    pairs = random_pairs(80, seed=9)
    sets = write_sets(tmp_path / "sets", pairs, limit=12)
    one = count_word_pairs(sets, tmp_path / "one", 10**9, lambda count: None)
    assert len(one) == 1
    several = count_word_pairs(sets, tmp_path / "several", 10**9, lambda count: None, run_pairs=13)
    assert len(several) > 6 and all(last - first <= 13 for first, last in spans_of(several))
    found = counts_of(sets, one)
    assert found == counts_of(sets, several) == expected(Oracle(pairs, keep=12))


def test_counting_goes_on_after_the_last_run(tmp_path):
    pairs = random_pairs(50, seed=3)
    sets = write_sets(tmp_path / "sets", pairs)

    class StoppedError(Exception):
        pass

    def stop(count):
        if count >= 24:
            raise StoppedError

    with pytest.raises(StoppedError):
        count_word_pairs(sets, tmp_path / "runs", 10**9, stop, run_pairs=8)
    done = runs_of(tmp_path / "runs")
    assert 8 < pairs_in(done) < 24
    reported = []
    runs = count_word_pairs(sets, tmp_path / "runs", 10**9, reported.append, run_pairs=8)
    assert reported[0] == pairs_in(done) and reported[-1] == 50
    assert runs[: len(done)] == done
    assert counts_of(sets, runs) == expected(Oracle(pairs))


def test_a_tokenizer_that_forgets_changes_nothing(tmp_path, monkeypatch):
    pairs = random_pairs(60, seed=4)
    sets = write_sets(tmp_path / "sets", pairs)
    monkeypatch.setattr(word_sets, "word_tokenizer_for", lambda language: WordTokenizer(capacity=3))
    other = write_sets(tmp_path / "other", pairs)
    assert other.words.words == sets.words.words
    runs = [count_word_pairs(each, tmp_path / f"runs{n}", 10**9, print) for n, each in enumerate((sets, other))]
    assert counts_of(sets, runs[0]) == counts_of(other, runs[1])
