"""What Sent2Vec counts, keeps and writes to disk before the first step."""

import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf.encoders.modules.paranmt_tables import ngram_buckets
from paranmt_hf.errors import InputError
from paranmt_hf.training.sent2vec.config import Sent2VecConfig
from paranmt_hf.training.sent2vec.corpus import WordCounter, read_corpus, write_corpus
from paranmt_hf.training.sent2vec.loop import negative_table
from tests.training.toys import random_text

# b occurs four times, a three times, c twice, x once; the tie of none.
LINES = ["b a b", "A c b", "x", "b, a c"]


def corpus(folder, lines=LINES, batch=2, **settings):
    folder.mkdir(exist_ok=True)
    config = Sent2VecConfig(**{"min_count": 2, "min_target_count": 1, **settings}).resolved()
    return write_corpus((pa.array(lines[at : at + batch]) for at in range(0, len(lines), batch)), folder, config)


def test_words_by_falling_count(tmp_path):
    text = corpus(tmp_path)
    assert text.words.names == ["[UNK]", "b", "a", "c"]
    assert text.words.counts.tolist() == [0, 4, 3, 2]
    # Eleven tokens, the comma and x among them, and four ends of lines.
    assert (text.words.lines, text.words.tokens) == (4, 15)


def test_sentences_of_known_words(tmp_path):
    text = corpus(tmp_path)
    blocks = list(text.blocks(size=2))
    assert [block.words.tolist() for block in blocks] == [[1, 2, 1, 2, 3, 1], [1, 2, 3]]
    assert [block.bounds.tolist() for block in blocks] == [[0, 3, 6], [0, 3]]
    assert [block.first for block in blocks] == [0, 6]
    (last,) = text.blocks(start=2)
    assert (last.words.tolist(), last.first) == ([1, 2, 3], 6)
    assert (text.sentences, text.known) == (3, 9)


@pytest.mark.parametrize(
    ("settings", "names"),
    [({"cut": "blanks", "min_count": 1}, ["b", "a", "c", "A", "b,", "x"]), ({"max_words": 2}, ["b", "a"])],
)
def test_which_words_are_known(tmp_path, settings, names):
    assert corpus(tmp_path, **settings).words.names == ["[UNK]", *names]


def test_targets_are_subsampled(tmp_path):
    # f = 4/15, 3/15, 2/15 and t = 0.05: t/f = 0.1875, 0.25, 0.375; c is too rare for a target.
    words = corpus(tmp_path).words
    keep = words.keep(Sent2VecConfig(threshold=0.05, min_target_count=3).resolved())
    assert keep.tolist() == pytest.approx([0, 0.1875**0.5 + 0.1875, 0.75, 0])


@pytest.mark.slow
def test_buckets_that_occur(tmp_path):
    lines, _ = random_text(40)
    text = corpus(tmp_path, lines, ngrams=3, buckets=5000, min_ngram_count=2)
    (block,) = text.blocks()
    found, _ = ngram_buckets(block.words, block.bounds, 3, 5000)
    buckets, counts = np.unique(found, return_counts=True)
    assert text.hashes.tolist() == buckets[counts > 1].tolist()
    assert 5 < len(text.hashes) < len(buckets)


def test_what_is_read_again_is_what_was_written(tmp_path):
    written = corpus(tmp_path, ngrams=2, buckets=100)
    found = read_corpus(tmp_path)
    assert (found.words.names, found.sentences, found.known) == (written.words.names, 3, 9)
    np.testing.assert_array_equal(found.words.counts, written.words.counts)
    np.testing.assert_array_equal(found.hashes, written.hashes)
    (tmp_path / "rows").write_bytes(b"\0" * 36)
    assert read_corpus(tmp_path) is None
    assert read_corpus(tmp_path / "nothing") is None


def test_batches_do_not_matter(tmp_path):
    lines, _ = random_text(60)
    one, other = (corpus(tmp_path / str(batch), lines, batch, ngrams=2, buckets=500) for batch in (60, 7))
    assert one.words.names == other.words.names
    assert (tmp_path / "60" / "rows").read_bytes() == (tmp_path / "7" / "rows").read_bytes()


def test_rare_words_are_forgotten_where_there_are_too_many():
    counter = WordCounter("words", most=20)
    numbers = []
    for start in range(0, 60, 10):
        rare = " ".join(f"rare{index}" for index in range(start, start + 10))
        numbers.append(counter.add(pa.array([f"common {rare} common"]))[0])
    assert counter.forgotten >= 40
    words, row_of = counter.choose(Sent2VecConfig(min_count=2, min_target_count=2).resolved(), 6)
    assert words.names == ["[UNK]", "common"]
    assert words.counts.tolist() == [0, 12]
    # Frequencies are shares of all that was read, the forgotten words too.
    assert words.tokens == 6 * 12 + 6
    assert [row_of[found].tolist() for found in numbers] == [[1, *[0] * 10, 1]] * 6


def test_negatives_follow_the_root_of_the_count():
    table = negative_table(np.array([0, 900, 100, 25]), np.random.default_rng(1), 4500)
    assert np.bincount(table).tolist() == [0, 3000, 1000, 500]
    assert table[:50].tolist() != sorted(table[:50].tolist())


def test_each_word_is_among_the_negatives():
    table = negative_table(np.array([0, 10**12, 1]), np.random.default_rng(1), 1000)
    assert np.bincount(table).tolist() == [0, 1000, 1]


def test_presets_are_table_5():
    names = ("dimension", "min_count", "min_target_count", "epochs", "threshold", "dropped_ngrams")
    for preset, ngrams, values in (
        ("books", 1, (700, 5, 8, 13, 1e-5, 0)),
        ("books", 2, (700, 5, 5, 12, 5e-6, 7)),
        ("wikipedia", 1, (600, 8, 20, 9, 1e-5, 0)),
        ("wikipedia", 2, (700, 8, 20, 9, 5e-6, 4)),
        ("twitter", 1, (700, 20, 20, 3, 1e-6, 0)),
        ("twitter", 2, (700, 20, 20, 3, 1e-6, 3)),
    ):
        found = Sent2VecConfig(preset=preset, ngrams=ngrams).resolved()
        assert tuple(getattr(found, name) for name in names) == values
    assert Sent2VecConfig(preset="twitter", epochs=4).resolved().epochs == 4


@pytest.mark.parametrize(
    ("lines", "settings", "message"),
    [
        (LINES, {"min_count": 5}, "no word occurs 5 times in the 4 sentences, the most frequent one 4 times"),
        (LINES, {"min_target_count": 5}, "no word can be a target: 'b', the most frequent one, occurs 4 times"),
        (["a b c"], {"min_count": 1}, "of 1 sentences 1 have two words"),
        (["a", "a", "b", "b"], {}, "of 4 sentences 0 have two words"),
    ],
)
def test_too_little_text(tmp_path, lines, settings, message):
    with pytest.raises(InputError, match=message):
        corpus(tmp_path, lines, **settings)


def test_ngrams_need_buckets():
    with pytest.raises(InputError, match="`buckets` is 0"):
        Sent2VecConfig(ngrams=2, buckets=0)
