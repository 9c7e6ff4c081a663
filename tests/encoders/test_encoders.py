"""What each encoder computes: by hand, on odd sentences, alone and in a batch."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from torch import nn

from paranmt_hf import EncoderConfig, SentenceEncoder, load
from paranmt_hf.encoders.building import build_encoder
from paranmt_hf.encoders.modules.paranmt_averages import TrigramEmbedding, WordEmbedding
from paranmt_hf.encoders.modules.paranmt_combination import Combination
from paranmt_hf.encoders.modules.paranmt_tables import pack, restore, store, unpack
from paranmt_hf.encoders.prefixes import sequence_features
from paranmt_hf.encoders.saving import from_stock, to_stock
from paranmt_hf.encoders.units import lookup
from paranmt_hf.encoders.vocabulary import Vocabulary
from paranmt_hf.text.definitions import vocabulary_of, word_tokenizer, words
from paranmt_hf.text.tokens import WordTokenizer
from tests.encoders.toys import BIASED, EVERY, SENTENCES, WORDS, encoder, lstm, rows, trigram, word
from tests.refused import refused

TWO = WordEmbedding(["[UNK]", "a", "b"], [[0, 0], [1, 2], [3, 6]])
PAIRS = TrigramEmbedding(["[UNK]", " a ", "a b", " b "], [[0, 0], [1, 0], [0, 4], [5, 7]])


def encode(*modules, sentences):
    return SentenceEncoder(modules=list(modules), device="cpu").encode(sentences)


def test_word_by_hand():
    found = encode(TWO, sentences=["A b", "a a b", "a zebra", "zebra", ""])
    np.testing.assert_allclose(found, [[2, 4], [5 / 3, 10 / 3], [0.5, 1], [0, 0], [0, 0]], rtol=1e-6)


def test_trigram_by_hand():
    # ` a `, `a b`, ` b `; for `b a` the trigram between the words is unknown and counts.
    found = encode(PAIRS, sentences=["a b", "b a", "a", "", "c"])
    np.testing.assert_allclose(found, [[2, 11 / 3], [2, 7 / 3], [1, 0], [0, 0], [0, 0]], rtol=1e-6)


def test_trained_vector_of_unknown_units_counts():
    known = WordEmbedding(["[UNK]", "a"], [[4, 4], [0, 2]])
    np.testing.assert_allclose(encode(known, sentences=["a x", "x"]), [[2, 3], [4, 4]])


def test_combinations_by_hand():
    added = encode(Combination([[TWO], [PAIRS]], "add"), sentences=["a b", "a", ""])
    np.testing.assert_allclose(added, [[4, 4 + 11 / 3], [2, 2], [0, 0]], rtol=1e-6)
    beside = encode(Combination([[PAIRS], [TWO]]), sentences=["a b", "a", ""])
    np.testing.assert_allclose(beside, [[2, 11 / 3, 2, 4], [1, 0, 1, 2], [0, 0, 0, 0]], rtol=1e-6)


def states_by_hand(cell: torch.nn.LSTM, inputs: np.ndarray, suffix: str = "") -> np.ndarray:
    """The equations of an LSTM, one word after the other; torch's order of gates is i, f, g, o."""
    weights = {name: value.detach().numpy().astype(np.float64) for name, value in cell.named_parameters()}
    squash = lambda value: 1 / (1 + np.exp(-value))  # noqa: E731
    hidden = memory = np.zeros(cell.hidden_size)
    states = []
    for vector in inputs:
        gates = weights[f"weight_ih_l0{suffix}"] @ vector + weights[f"bias_ih_l0{suffix}"]
        gates = gates + weights[f"weight_hh_l0{suffix}"] @ hidden + weights[f"bias_hh_l0{suffix}"]
        enter, forget, new, leave = np.split(gates, 4)
        memory = squash(forget) * memory + squash(enter) * np.tanh(new)
        hidden = squash(leave) * np.tanh(memory)
        states.append(hidden)
    return np.array(states)


@pytest.mark.parametrize("width", [4, 7])
@pytest.mark.parametrize("pooling", ["mean", "max"])
@pytest.mark.parametrize("directions", ["forward", "concatenated", "averaged"])
def test_lstm_follows_the_equations(width, pooling, directions):
    join = "average" if directions == "averaged" else "concatenate"
    modules = lstm(width, name="lstm" if directions == "forward" else "blstm", pooling=pooling, directions=join)
    text = "The cat sat. zebra isn't it"
    inputs = rows(WORDS, 5)[[WORDS.index(token) if token in WORDS else 0 for token in words(text)]]
    cell = modules[1].encoder
    states = states_by_hand(cell, inputs)
    if directions != "forward":
        back = states_by_hand(cell, inputs[::-1], "_reverse")[::-1]
        states = (states + back) / 2 if directions == "averaged" else np.hstack([states, back])
    expected = states.mean(axis=0) if pooling == "mean" else states.max(axis=0)
    found = encode(*modules, sentences=["it", text, ""])
    np.testing.assert_allclose(found[1], expected, atol=1e-6)
    assert np.abs(expected).max() > 0.01


@pytest.mark.parametrize("name", EVERY)
def test_odd_sentences_give_finite_vectors_alone_and_in_a_batch(name):
    model = encoder(name)
    together = model.encode(SENTENCES)
    assert together.shape == (len(SENTENCES), model.get_embedding_dimension())
    assert np.isfinite(together).all()
    assert np.abs(together).sum() > 1
    for number, sentence in enumerate(SENTENCES):
        np.testing.assert_allclose(model.encode(sentence), together[number], atol=1e-6, err_msg=repr(sentence))
    for number in (SENTENCES.index(""), SENTENCES.index("   ")):
        assert together[number].any() == (name in BIASED), "a sentence without words is zeros"
    np.testing.assert_allclose(model.encode(SENTENCES[::-1])[::-1], together, atol=1e-6)
    assert model.encode(["", "  ", "\t\u00a0"]).any() == (name in BIASED)


def test_lstm_reads_the_words_of_the_definition():
    """The stock tokenizer of an LSTM, and the rows that training looks up by itself."""
    table = lstm()[0]
    found = lookup(Vocabulary("word", WORDS)).bags(WordTokenizer().tables(SENTENCES)[0])
    ours = sequence_features(found.rows, found.offsets)
    stock = table.preprocess(SENTENCES)
    assert set(ours) == set(stock)
    for name in ours:
        assert ours[name].tolist() == stock[name].tolist(), name


@pytest.mark.parametrize("name", ["word", "trigram", "word,trigram", "word+lstm", "blstm-average-max"])
def test_every_weight_gets_a_gradient(name):
    model = encoder(name).train()
    vectors = model(model.preprocess(["The cat sat.", "it is", ""]))["sentence_embedding"]
    vectors.square().sum().backward()
    found = {key: value.grad for key, value in model.named_parameters()}
    assert found
    assert all(grad is not None and torch.isfinite(grad).all() and grad.any() for grad in found.values())


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize(("precision", "largest"), [("int8", 127), ("int4", 7)])
def test_integers_are_off_by_half_a_step(precision, largest, scale):
    weight = rows(["[UNK]"] + ["x"] * 500, 30) * np.float32(scale)
    stored = store(weight, precision)
    integers = stored["embedding.weight"] if precision == "int8" else unpack(stored["embedding.weight"])
    assert integers.dtype == np.int8 and integers.shape == weight.shape
    assert (np.abs(integers.astype(int)).max(axis=1)[1:] == largest).all()
    step = np.abs(weight).max(axis=1, keepdims=True) / largest
    error = np.abs(restore(stored) - weight)
    assert (error <= 0.501 * step).all()
    assert error.max() > 0.4 * step.max() / 2
    assert not restore(stored)[0].any()


def test_two_integers_of_four_bits_share_a_byte():
    integers = np.array([[1, -7, 0, 7], [-1, -2, -3, 3]], np.int8)
    packed = pack(integers)
    # The first one is in the lower half; negative ones are 16 more.
    np.testing.assert_array_equal(packed, np.array([[1 + 16 * 9, 0 + 16 * 7], [15 + 16 * 14, 13 + 16 * 3]], np.uint8))
    np.testing.assert_array_equal(unpack(packed), integers)
    assert store(rows(["[UNK]", "a", "b"], 6), "int4")["embedding.weight"].nbytes == 9


def test_float16_error_is_that_of_rounding():
    weight = rows(["[UNK]"] + ["x"] * 100, 30)
    stored = store(weight, "float16")
    assert stored["embedding.weight"].dtype == np.float16
    assert (np.abs(restore(stored) - weight) <= np.abs(weight) * 2**-11).all()
    np.testing.assert_array_equal(restore(store(weight, "float32")), weight)


def test_tokenizers_of_other_models_are_not_ours():
    from tokenizers import Tokenizer, models, pre_tokenizers

    assert vocabulary_of(word_tokenizer(["[UNK]", "a"])) == ["[UNK]", "a"]
    assert vocabulary_of(Tokenizer(models.WordLevel({}, unk_token="[UNK]"))) is None
    other = word_tokenizer(["[UNK]", "a"])
    other.pre_tokenizer = pre_tokenizers.Whitespace()
    assert vocabulary_of(other) is None
    assert vocabulary_of(Tokenizer(models.WordLevel({"[UNK]": 0, "a": 2}, unk_token="[UNK]"))) is None
    unigram = word_tokenizer(["[UNK]", "a"])
    unigram.model = models.Unigram([("[UNK]", 0.0), ("a", -1.0)], unk_id=0)
    assert vocabulary_of(unigram) is None
    added = word_tokenizer(["[UNK]", "a"])
    added.add_tokens(["new york"])
    assert vocabulary_of(added) is None, "its added words are cut out of the text before our rules"


@pytest.mark.parametrize(
    "make",
    [
        lambda: WordEmbedding(["[UNK]", "a"], np.zeros((3, 2))),
        lambda: WordEmbedding(["[UNK]"], np.zeros((1, 2)), "int2"),
        lambda: WordEmbedding(["[UNK]"], np.zeros((1, 3)), "int4"),
        lambda: Combination([[word(3)], [trigram(4)]], "add"),
    ],
)
def test_wrong_arguments(make):
    with pytest.raises(ValueError):
        make()


def test_encoders_beside_each_other_have_widths_of_their_own():
    vocabularies = {
        "word": Vocabulary("word", ["[UNK]", "a", "b"]),
        "trigram": Vocabulary("trigram", ["[UNK]", " a ", " b "]),
    }
    config = EncoderConfig(model="word,trigram", dimension=4, trigram_dimension=3)
    encoder = build_encoder(config, vocabularies)
    assert encoder.get_embedding_dimension() == 7
    assert [part.table.weight.shape for part in encoder.composition.parts] == [(3, 4), (3, 3)]
    with refused("trigram_dimension"):
        EncoderConfig(trigram_dimension=0)


def test_averaged_directions_are_saved_as_stock_modules_and_read_as_ours(tmp_path):
    """A mean of the sentence vector's two halves behind the pooling is a mean of each word's halves before it."""
    model = encoder("blstm-average")
    sentences = ["The cat sat on the mat.", "it is", ""]
    wanted = model.encode(sentences)
    model.save(str(tmp_path / "model"))
    assert [type(module).__name__ for module in model] == ["WordEmbeddings", "LSTM", "AverageDirections", "Pooling"]
    plain = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert [type(module).__name__ for module in plain] == ["WordEmbeddings", "LSTM", "Pooling", "Dense"]
    np.testing.assert_allclose(plain.encode(sentences), wanted, atol=1e-6)
    again = load(tmp_path / "model")
    assert [type(module).__name__ for module in again] == [type(module).__name__ for module in model]
    assert sum(weight.numel() for weight in again.parameters()) == sum(w.numel() for w in model.parameters())
    np.testing.assert_array_equal(again.encode(sentences), wanted)


@pytest.mark.parametrize("change", ["weights", "bias", "activation"])
def test_another_layer_behind_an_lstm_is_no_mean_of_directions(change):
    words, lstm, pooling, mean = to_stock(encoder("blstm-average"))
    if change == "weights":
        mean.linear.weight.data[0, 0] = 1
    elif change == "bias":
        mean = Dense(
            mean.in_features, mean.out_features, activation_function=nn.Identity(), init_weight=mean.linear.weight
        )
    else:
        mean.activation_function = nn.Tanh()
    modules = [words, lstm, pooling, mean]
    assert from_stock(modules) == modules
