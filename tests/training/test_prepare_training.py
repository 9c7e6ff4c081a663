"""Before the first step: text is cut once, models are hashed once, and the token store holds what was read."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.units import UnitCounter, count_units
from paranmt_hf.errors import InputError
from paranmt_hf.hub import repository
from paranmt_hf.text.definitions import words
from paranmt_hf.text.tokens import TokenHashes, WordTokenizer, sentence_keys
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.pair_store import read_keys, write_tokens
from paranmt_hf.training.train import train
from tests.training.toys import SMALL, random_text, small, synonyms, write_data


@pytest.fixture
def data(tmp_path):
    return write_data(tmp_path / "pairs.parquet", synonyms(60))


def batches(sides, size):
    for start in range(0, len(sides[0]), size):
        yield tuple(pa.array(side[start : start + size]) for side in sides)


@pytest.mark.parametrize("size", [7, 30, 100])
def test_tokens_are_read_back(tmp_path, size):
    sides = random_text(60)
    counter = UnitCounter(["word", "trigram"])
    store = write_tokens(batches(sides, size), tmp_path, counter.add)
    assert store.pairs == 60
    texts = ([], [])
    for tables in store.tables():
        for table, text in zip(tables, texts, strict=True):
            text += [
                [table.vocabulary[token] for token in table.ids[start:stop]]
                for start, stop in zip(table.offsets, table.offsets[1:], strict=False)
            ]
    assert texts == tuple([words(sentence) for sentence in side] for side in sides)
    assert counter.result() == count_units([pa.array(side) for side in sides], ["word", "trigram"])
    expected = [sentence_keys(table, TokenHashes().of(table)) for table in WordTokenizer().tables(*sides)]
    np.testing.assert_array_equal(read_keys(tmp_path), np.stack(expected, axis=1))
    store.drop_tokens()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["keys", "keys.sha256"]


def test_ids_hold_when_the_tokenizer_forgets(tmp_path, monkeypatch):
    """A tokenizer that forgets numbers its tokens anew; those of the store go on."""
    monkeypatch.setattr("paranmt_hf.training.pair_store.WordTokenizer", lambda: WordTokenizer(capacity=3))
    sides = random_text(40)
    store = write_tokens(batches(sides, 5), tmp_path)
    stored = [[table.vocabulary[token] for token in table.ids] for tables in store.tables() for table in tables]
    expected = []
    for start in range(0, 40, 5):
        for side in sides:
            expected.append([token for sentence in side[start : start + 5] for token in words(sentence)])
    assert stored == expected


def test_cut_off_tokens_are_noticed(tmp_path):
    store = write_tokens(batches(random_text(20), 20), tmp_path)
    (tmp_path / "ids").write_bytes((tmp_path / "ids").read_bytes()[:-4])
    with pytest.raises(InputError, match="is cut off; remove that folder and run again"):
        list(store.tables())


def test_text_is_cut_once_and_models_are_hashed_once(tmp_path, data, monkeypatch):
    """For counts, rows and the teacher's sentences together; and a model that starts and teaches at once."""
    train(data, tmp_path / "first", **small())
    cut, hashed = Counter(), Counter()
    tables, digest = WordTokenizer.tables, repository._checksum_of

    def counted_tables(self, *columns):
        for column in columns:
            cut.update(len(column) * [type(column).__name__] if isinstance(column, pa.ChunkedArray) else [])
        return tables(self, *columns)

    def counted_digest(folder, files):
        hashed[folder.name] += 1
        return digest(folder, files)

    monkeypatch.setattr(WordTokenizer, "tables", counted_tables)
    monkeypatch.setattr(repository, "_checksum_of", counted_digest)
    settings = {
        "encoder": EncoderConfig(init_from=str(tmp_path / "first")),
        "config": TrainConfig(**{**SMALL, "epochs": 1, "teacher": "embedded", "teacher_weight": 0.5}),
    }
    train(data, tmp_path / "second", **settings)
    assert cut == {"ChunkedArray": 2 * 60}
    # The initial encoder in the work folder is a model of its own.
    del hashed["initial"]
    assert hashed == {"first": 1, "word-trigram-small": 1}
