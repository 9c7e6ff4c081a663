"""Training from word vectors: their width, their unknown row, and files that are not for the text."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from paranmt_hf import EncoderConfig, train
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.text.definitions import rows_of_word
from tests.refused import refused
from tests.training.toys import small, synonyms, write_data

VECTORS = "left1 1 0 2\nright1 0 1 2\nother 1 1 2\n"


@pytest.fixture
def train_on(tmp_path):
    """Train on a file of vectors, with rates that move nothing."""

    data = write_data(tmp_path / "pairs.parquet", synonyms(60))

    def make(vectors, **settings):
        (tmp_path / "v.txt").write_text(vectors)
        return train(
            data,
            tmp_path / "out",
            encoder=EncoderConfig(vectors=str(tmp_path / "v.txt"), **settings),
            config=small(epochs=1, learning_rate=1e-9)["config"],
        )

    return make


@pytest.mark.parametrize(
    ("settings", "dimension", "table"),
    [
        ({}, 3, 3),
        ({"model": "word,trigram", "trigram_dimension": 2}, 5, 3),
        ({"model": "lstm", "dimension": 4, "word_dimension": 3}, 4, 3),
    ],
)
def test_dimension_is_that_of_the_vectors(train_on, settings, dimension, table):
    made = train_on(VECTORS, **settings)
    assert made.record.dimension == dimension
    assert made.record.settings.encoder.dimension == settings.get("dimension", 3)
    part = take_apart(made.load()).parts[0]
    assert part.table.weight.shape[1] == table
    row = part.vocabulary.row_of["left1"]
    np.testing.assert_allclose(part.table.weight[row].detach(), [1, 0, 2], atol=1e-6)
    assert " --dimension " in (made.folder / "README.md").read_text(encoding="utf8")


def test_dimension_without_vectors():
    assert EncoderConfig().resolved().dimension == 300
    assert EncoderConfig(model="lstm", word_dimension=5).resolved(5).dimension == 300
    assert EncoderConfig(model="lstm").resolved(5).dimension == 5
    assert EncoderConfig(model="word,lstm", word_dimension=5).resolved(5).dimension == 5
    assert EncoderConfig(dimension=7).resolved(5).dimension == 7


def test_unknown_words_share_the_vector_of_the_file(train_on):
    model = train_on(VECTORS + "UUUNKKK 3 3 3\n", unknown="share", words=60).load()
    part = take_apart(model).parts[0]
    assert part.vocabulary.units == ["[UNK]", "left1", "right1", "other"]
    found = model.encode(["left1", "left2", "zebra", "left1 right2"])
    np.testing.assert_allclose(found, [[1, 0, 2], [3, 3, 3], [3, 3, 3], [2, 1.5, 2.5]], atol=1e-5)


def test_a_vector_for_unknown_words_that_is_left_out_is_said(train_on, caplog):
    with caplog.at_level("INFO"):
        train_on("UUUNKKK 3 3 3\n" + VECTORS, words=60)
    assert "has a vector for unknown words, which is left out; `unknown` share takes it" in caplog.text


def test_unknown_words_need_a_vector_in_the_file(train_on):
    with refused():
        train_on(VECTORS, unknown="share")
    with refused():
        EncoderConfig(unknown="share")


@pytest.mark.parametrize(
    "vectors",
    [
        "kočka 1 0\npes 0 1\n",
        "left1 1e-25 0\nright1 0 1e-25\n",
    ],
)
def test_vectors_that_are_of_no_use(train_on, tmp_path, vectors):
    with refused():
        train_on(vectors)
    assert not (tmp_path / "out").exists()


def test_an_encoder_larger_than_the_memory(train_on, memory):
    with refused("dimension"):
        EncoderConfig(dimension=1_000_000_000)
    memory(61 * 3 * 12 - 1)
    with refused():
        train_on(VECTORS, words=60)
    memory(61 * 3 * 12)
    assert train_on(VECTORS, words=60).record.parameters == 183


@pytest.mark.parametrize("model", ["word", "lstm", "word,trigram"])
def test_words_without_a_row_are_read_as_pieces(train_on, model):
    made = train_on("left25 1 0 2\nright25 0 1 2\n", model=model, words=3, pieces=400)
    (part, *_) = take_apart(made.load()).parts
    assert part.vocabulary.units[:3] == ["[UNK]", "left25", "right25"]
    assert part.vocabulary.has_pieces and len(part.vocabulary) <= 404
    stock = SentenceTransformer(str(made.folder), device="cpu", trust_remote_code=model == "word,trigram")
    texts = ["left7 left8", "lefts right1", "zebra"]
    found = made.load().encode(texts)
    np.testing.assert_allclose(stock.encode(texts), found, atol=1e-6)
    rows = [rows_of_word(word, part.vocabulary.find) for word in ("left7", "left8")]
    assert len(rows[0]) > 1 and rows[0] != rows[1]
    if model == "word":
        weight = part.table.weight.detach().numpy()
        np.testing.assert_allclose(found[0], weight[rows[0] + rows[1]].mean(axis=0), atol=1e-6)


def test_pieces_are_of_words():
    with refused("pieces"):
        EncoderConfig(model="trigram", pieces=10)


def test_with_pieces_longer_words_have_no_row(train_on):
    made = train_on(f"left25 1 0\n{'x' * 101} 0 1\n", words=60, pieces=20)
    (part,) = take_apart(made.load()).parts
    assert "left25" in part.vocabulary.units and max(map(len, part.vocabulary.units)) <= 100
