"""Pieces of sentences, tokens of trees, pairs of pieces on disk, and batches of similar length."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from paranmt_hf.paraphrase.models import train_tokenizer, train_tree_tokenizer
from paranmt_hf.paraphrase.trainer import Batches, collate
from paranmt_hf.paraphrase.training_data import PieceStore, read_summary, write_pieces
from tests.refused import refused

TEXT = ["a man is playing a guitar .", "the man plays the guitar .", "a dog runs in the snow ."] * 5
TOKENIZER = train_tokenizer([TEXT], 300)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_no_character_is_unknown(text):
    ids = TOKENIZER(text, split_special_tokens=True).input_ids
    assert TOKENIZER.decode(ids, skip_special_tokens=True).removeprefix(" ") == text.removeprefix(" ")
    assert ids[-1] == 2 and max(ids) < 300 and not {0, 1} & set(ids)


def test_equal_text_gives_equal_pieces(tmp_path):
    halves = [TEXT[:4], TEXT[4:]]
    assert train_tokenizer(halves, 300).backend_tokenizer.to_str() == TOKENIZER.backend_tokenizer.to_str()
    TOKENIZER.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again("a dog plays").input_ids == TOKENIZER("a dog plays").input_ids
    assert (again.pad_token_id, again.bos_token_id, again.eos_token_id) == (0, 1, 2)


def test_tokens_of_trees():
    trees = ["(S(NP(DT)(NN))(VP(VBZ)(NP(DT)(NN)))(.))", "(SQ(VBZ)(NP(DT)(NN))(NP(DT)(NN))(?))"]
    tokenizer = train_tree_tokenizer([trees, ["(S)"]])
    ids = tokenizer(trees).input_ids
    assert [len(own) for own in ids] == [2 * tree.count("(") + 1 for tree in trees]
    assert tokenizer.batch_decode(ids, skip_special_tokens=True) == trees
    assert all(own[-1] == tokenizer.eos_token_id and tokenizer.unk_token_id not in own for own in ids)
    assert tokenizer.convert_ids_to_tokens(tokenizer("(S(NP))").input_ids) == ["(S", "(NP", ")", ")", "</s>"]
    assert tokenizer("(XX)").input_ids == [tokenizer.unk_token_id, tokenizer.convert_tokens_to_ids(")"), 2]


def write(folder, rows, *, most=10, held_out=0.0):
    """Pairs of lengths, whose ids are the number of the pair."""
    folder.mkdir(exist_ok=True)
    sources = [[number] * source for number, (source, _) in enumerate(rows)]
    targets = [[number + 100] * target for number, (_, target) in enumerate(rows)]
    numbers = pa.chunked_array([pa.array([str(number) for number in range(len(rows))])])

    def cut(items):
        return lambda texts: [items[int(text)] for text in texts]

    tables = [(part, part, part) for part in (numbers.slice(0, 3), numbers.slice(3))]
    return write_pieces(
        tables, folder, {"source": cut(sources), "target": cut(targets)}, longest=most, held_out=held_out
    )


def test_pairs_come_back(tmp_path):
    assert write(tmp_path, [(2, 3), (11, 1), (1, 1), (4, 2), (2, 12)]).too_long == 2
    store = PieceStore(tmp_path, "train")
    assert store.lengths.tolist() == [3, 1, 4]
    sources, targets = store.take(np.array([2, 0]))
    assert [ids.tolist() for ids in sources] == [[3] * 4, [0] * 2]
    assert [ids.tolist() for ids in targets] == [[103] * 2, [100] * 3]
    batch = collate([sources, targets], pad=9)
    assert batch["input_ids"].tolist() == [[3, 3, 3, 3], [0, 0, 9, 9]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert batch["labels"].tolist() == [[103, 103, -100], [100, 100, 100]]
    assert len(PieceStore(tmp_path, "held-out")) == 0
    assert read_summary(tmp_path).pairs == {"train": 3, "held-out": 0}
    # Files that are damaged are made again.
    (tmp_path / "train-source.ids").write_bytes(bytes((tmp_path / "train-source.ids").stat().st_size))
    assert read_summary(tmp_path) is None


def test_a_share_of_the_keys_is_held_out_whatever_else_is_there(tmp_path):
    found = []
    for count in (2000, 1000):
        write(tmp_path / str(count), [(1, 1)] * count, held_out=0.1)
        store = PieceStore(tmp_path / str(count), "held-out")
        found.append({int(ids[0]) for ids in store.take(np.arange(len(store)))[0]})
    assert 150 < len(found[0]) < 250
    assert {number for number in found[0] if number < 1000} == found[1]


def test_without_pairs_that_are_short_enough_there_is_nothing_to_train_on(tmp_path):
    with refused():
        write(tmp_path, [(11, 1), (1, 11)])


@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=40), budget=st.integers(1, 40), seed=st.integers(0, 5))
def test_each_epoch_has_each_pair_once_in_batches_within_the_budget(tmp_path_factory, lengths, budget, seed):
    folder = tmp_path_factory.mktemp("store")
    write(folder, [(length, 1) for length in lengths])
    store = PieceStore(folder, "train")
    batches = Batches(store, budget, epochs=3, seed=seed, pad=0)
    for epoch in range(3):
        seen = [batches.pairs(epoch * batches.per_epoch + step) for step in range(batches.per_epoch)]
        assert sorted(np.concatenate(seen)) == list(range(len(lengths)))
        for pairs in seen:
            assert len(pairs) == 1 or len(pairs) * max(lengths[pair] for pair in pairs) <= budget
    again = Batches(store, budget, epochs=3, seed=seed, pad=0)
    last = len(again) - 1
    assert again.pairs(last).tolist() == batches.pairs(last).tolist()


def test_epochs_differ(tmp_path):
    write(tmp_path, [(3, 3)] * 60)
    batches = Batches(PieceStore(tmp_path, "train"), 30, epochs=2, seed=1, pad=0)
    assert batches.per_epoch == 6
    assert sorted(batches.pairs(0)) != sorted(batches.pairs(6))
