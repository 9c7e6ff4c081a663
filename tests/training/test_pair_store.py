"""Pairs on disk: what is written is read again, in a seeded order that any place can be reached in."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf.encoders.units import UnitCounter, count_units, lookup
from paranmt_hf.encoders.vocabulary import Vocabulary
from paranmt_hf.text.definitions import words
from paranmt_hf.text.identity import keys_of
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.training.pair_store import PairStore, write_pairs
from paranmt_hf.training.token_store import read_keys, write_tokens
from tests.refused import refused
from tests.training.toys import random_text, write_text

WORDS = [f"w{number}" for number in range(2000)]


def write(folder, count=101, batch=17, readers=("word",), start=0):
    """Pair number n is `wn w1` and `wn w2 w3`: no two are alike, and a row names the pair."""
    references = [f"w{number} w1" for number in range(start, start + count)]
    translations = [f"w{number} w2 w3" for number in range(start, start + count)]
    known = {"word": Vocabulary("word", ["[UNK]", *WORDS])}
    if "trigram" in readers:
        known["trigram"] = Vocabulary("trigram", ["[UNK]", " w1", "w1 "])
    columns = (
        (pa.array(references[low : low + batch]), pa.array(translations[low : low + batch]))
        for low in range(0, count, batch)
    )
    return write_text(columns, folder, {name: lookup(known[name]) for name in readers})


def numbers(mega) -> list[int]:
    """Numbers of the pairs, checked on both sides."""
    bags = mega.bags["word"]
    texts = [bags.rows[low:high].tolist() for low, high in zip(bags.offsets, bags.offsets[1:], strict=False)]
    assert len(texts) == 2 * mega.pairs == len(mega.keys)
    assert bags.rows.dtype == np.int32
    found = []
    for reference, translation in zip(texts[: mega.pairs], texts[mega.pairs :], strict=True):
        assert reference[1:] == [2]
        assert translation == [reference[0], 3, 4]
        found.append(reference[0] - 1)
    return found


def epoch_of(store, size=10, **options):
    store.block_pairs, store.buffer_blocks = 8, 3
    return [numbers(mega) for mega in store.mega_batches(size, **{"seed": 1, "epoch": 0, **options})]


def test_every_pair_comes_once(tmp_path):
    store = write(tmp_path)
    assert (store.pairs, store.left_out) == (101, {})
    megas = epoch_of(store)
    assert [len(mega) for mega in megas] == [10] * 10 + [1]
    assert sorted(sum(megas, [])) == list(range(101))
    assert epoch_of(PairStore(tmp_path)) == megas


def test_order_depends_on_seed_and_epoch(tmp_path):
    store = write(tmp_path)
    orders = [sum(epoch_of(store, **options), []) for options in ({}, {"epoch": 1}, {"seed": 2}, {"epoch": 2})]
    for first in range(4):
        for second in range(first):
            assert np.mean(np.array(orders[first]) == orders[second]) < 0.2
    # The size of a mega-batch decides nothing but where it is cut.
    assert sum(epoch_of(store, size=7), []) == orders[0]


def test_pairs_are_shuffled_within_buffers_and_blocks_over_the_file(tmp_path):
    order = np.array(sum(epoch_of(write(tmp_path)), []))
    neighbours = np.abs(np.diff(order)) == 1
    assert neighbours.mean() < 0.15
    # A buffer of three blocks of eight holds whole blocks.
    first = Counter((order[:24] // 8).tolist())
    assert len(first) in (3, 4)


@pytest.mark.parametrize("size", [1, 7, 10, 24, 40, 101, 200])
def test_start_equals_skipping(tmp_path, size):
    store = write(tmp_path)
    whole = epoch_of(store, size=size)
    for start in range(len(whole) + 1):
        assert epoch_of(store, size=size, start=start) == whole[start:]


def test_several_readers_have_the_same_pairs(tmp_path):
    store = write(tmp_path, readers=("word", "trigram"))
    for mega in store.mega_batches(10, seed=1, epoch=0):
        words, trigrams = mega.bags["word"], mega.bags["trigram"]
        assert len(words) == len(trigrams) == 2 * mega.pairs
        # ` w1` of `wn w1` is known; the number of trigrams is that of the characters.
        for sentence in range(mega.pairs):
            row = words.rows[words.offsets[sentence]]
            text = f"{WORDS[row - 1]} w1"
            own = trigrams.rows[trigrams.offsets[sentence] : trigrams.offsets[sentence + 1]]
            assert len(own) == len(text)
            assert (own == 1).sum() == text.count(" w1") + text.startswith("w1")


def test_large_tables_have_rows_of_four_bytes(tmp_path):
    words = [f"w{number}" for number in range(70_000)]
    reader = {"word": lookup(Vocabulary("word", ["[UNK]", *words]))}
    column = pa.array(["w65534 w65535 w65536", "w69999"])
    store = write_text([(column, column)], tmp_path, reader)
    (mega,) = store.mega_batches(2, seed=1, epoch=0)
    assert sorted(mega.bags["word"].rows.tolist()) == sorted(2 * [65535, 65536, 65537, 70_000])


def test_pairs_without_a_known_word_on_a_side_are_counted(tmp_path):
    reader = {"word": lookup(Vocabulary("word", ["[UNK]", "a", "b"]))}
    references = pa.array(["a", "x", "a", "", "b x", "x"])
    translations = pa.array(["b", "a", "y", "a", "x a", "y"])
    store = write_text([(references, translations)], tmp_path, reader)
    assert (store.pairs, store.left_out) == (2, {"pairs without a known word on a side": 4})
    (mega,) = store.mega_batches(2, seed=1, epoch=0)
    bags = mega.bags["word"]
    rows = [tuple(bags.rows[bags.offsets[n] : bags.offsets[n + 1]]) for n in range(4)]
    assert {(rows[0], rows[2]), (rows[1], rows[3])} == {((1,), (2,)), ((2, 0), (0, 1))}
    with refused():
        write_text([(pa.array(["x"]), pa.array(["a"]))], tmp_path / "none", reader)
    with refused():
        write_pairs([], tmp_path / "empty", reader)


def test_keys_do_not_depend_on_what_was_read_before():
    text = ["The cat sat.", "the  cat sat .", "sat the cat.", ""]
    found = keys_of(text)[0].tolist()
    assert keys_of(["entirely other words stand here", *text])[0].tolist()[1:] == found
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("name", ["keys", "word.rows", "word.bounds"])
def test_files_that_are_cut_off(tmp_path, name):
    store = write(tmp_path)
    content = (tmp_path / name).read_bytes()
    assert store.is_whole()
    for length in (len(content) - 2, len(content) // 2, 0):
        (tmp_path / name).write_bytes(content[:length])
        assert not store.is_whole()
    (tmp_path / name).unlink()
    assert not store.is_whole()


def test_damaged_list(tmp_path):
    write(tmp_path)
    (tmp_path / "pairs.json").write_text('{"pairs": 1')
    with refused(path=tmp_path / "pairs.json"):
        PairStore(tmp_path)


def batches(sides, size):
    for start in range(0, len(sides[0]), size):
        yield tuple(pa.array(side[start : start + size]) for side in sides)


def test_tokens_are_read_back(tmp_path):
    sides = random_text(60)
    counter = UnitCounter(["word", "trigram"])
    store = write_tokens(batches(sides, 7), tmp_path, counter.add)
    texts, keys = ([], []), []
    for batch in store.batches():
        keys.append(batch.keys)
        for table, text in zip(batch.sides, texts, strict=True):
            text += [
                [table.vocabulary[token] for token in table.ids[start:stop]]
                for start, stop in zip(table.offsets, table.offsets[1:], strict=False)
            ]
    assert texts == tuple([words(sentence) for sentence in side] for side in sides)
    assert counter.result() == count_units([pa.array(side) for side in sides], ["word", "trigram"])
    np.testing.assert_array_equal(read_keys(tmp_path), keys_of(*sides).T)
    np.testing.assert_array_equal(np.concatenate(keys), keys_of(*sides).T)
    store.drop_tokens()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["keys", "keys.sha256"]


def test_ids_hold_when_the_tokenizer_forgets(tmp_path, monkeypatch):
    """A tokenizer that forgets numbers its tokens again; those of the store continue."""
    monkeypatch.setattr("paranmt_hf.training.token_store.WordTokenizer", lambda: WordTokenizer(capacity=3))
    sides = random_text(40)
    store = write_tokens(batches(sides, 5), tmp_path)
    stored = [[table.vocabulary[token] for token in table.ids] for batch in store.batches() for table in batch.sides]
    expected = []
    for start in range(0, 40, 5):
        for side in sides:
            expected.append([token for sentence in side[start : start + 5] for token in words(sentence)])
    assert stored == expected
