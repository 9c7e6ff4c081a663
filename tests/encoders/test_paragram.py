"""The architectures of PARAGRAM-PHRASE (arXiv:1511.08198, section 3): equations by hand, equivalences."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch import nn

from paranmt_hf import EncoderConfig, load
from paranmt_hf.encoders.building import build_encoder
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.modules.paranmt_recurrent import IdentityRNN, LastStateRNN, PeepholeLSTM
from paranmt_hf.encoders.prefixes import sequence_features
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.vocabulary import Vocabulary
from paranmt_hf.text.word_vectors import WordVectors
from tests.encoders.toys import SENTENCES, WORDS, dan, encoder, recurrent, rows
from tests.refused import refused

VOCABULARY = {"word": Vocabulary("word", WORDS)}
KINDS = ["rnn", "rnn-relu", "irnn", "plstm", "plstm-without"]


def build(model, **settings):
    return build_encoder(EncoderConfig(model=model, dimension=4, **settings), VOCABULARY)


def squash(value):
    return 1 / (1 + np.exp(-value))


def read(module, tokens):
    """The last state of one sentence [word, dimension]."""
    features = {"token_embeddings": torch.tensor(tokens)[None], "sentence_lengths": torch.tensor([len(tokens)])}
    return module(features)["sentence_embedding"][0].detach().numpy()


def test_two_steps_of_a_peephole_lstm_by_hand():
    """One dimension, numbers that can be followed: p_i and p_f see the cell before, p_o the cell after."""
    module = PeepholeLSTM(1, 1)
    with torch.no_grad():
        module.input.weight.copy_(torch.tensor([[1.0], [2.0], [3.0], [4.0]]))
        module.input.bias.copy_(torch.tensor([0.1, 0.2, 0.3, 0.4]))
        module.state.weight.copy_(torch.tensor([[0.5], [0.6], [0.7], [0.8]]))
        module.peepholes.copy_(torch.tensor([[-1.0], [1.5], [-2.0]]))
    # x = 0.5: i = s(0.6), c = i tanh(1.8) = 0.611311, o = s(2.4 - 2 c) = 0.764476, h = o tanh(c) = 0.416677.
    assert read(module, [[0.5]]) == pytest.approx([0.416677], abs=1e-6)
    cell = squash(0.6) * np.tanh(1.8)
    hidden = squash(2.4 - 2 * cell) * np.tanh(cell)
    assert hidden == pytest.approx(0.416677, abs=1e-6)
    # x = -0.25.
    enter = squash(-0.25 + 0.1 + 0.5 * hidden - cell)
    forget = squash(-0.5 + 0.2 + 0.6 * hidden + 1.5 * cell)
    cell = forget * cell + enter * np.tanh(-0.75 + 0.3 + 0.7 * hidden)
    hidden = squash(-1 + 0.4 + 0.8 * hidden - 2 * cell) * np.tanh(cell)
    assert read(module, [[0.5], [-0.25]]) == pytest.approx([hidden], abs=1e-6)
    assert abs(hidden) > 0.05


def test_without_output_gate_the_state_is_the_squashed_cell():
    module = PeepholeLSTM(1, 1, output_gate=False)
    assert {name: tuple(weight.shape) for name, weight in module.named_parameters()} == {
        "input.weight": (3, 1),
        "input.bias": (3,),
        "state.weight": (3, 1),
        "peepholes": (2, 1),
    }
    with torch.no_grad():
        for weight in module.parameters():
            weight.fill_(0.5)
    cell = squash(1.0) * np.tanh(1.0)
    hidden = np.tanh(cell)
    enter = squash(1 + 0.5 * hidden + 0.5 * cell)
    cell = enter * cell + enter * np.tanh(1 + 0.5 * hidden)
    assert read(module, [[1.0], [1.0]]) == pytest.approx([np.tanh(cell)], abs=1e-6)


@pytest.mark.parametrize("kind", ["tanh", "relu", "lstm"])
def test_equal_to_torchs(kind):
    """An RNN with an activation, and an LSTM whose peepholes are zeros."""
    if kind == "lstm":
        (words, module), theirs = recurrent(PeepholeLSTM, 5, 4), nn.LSTM(5, 4, batch_first=True)
    else:
        words, module = recurrent(LastStateRNN, 5, 4, kind)
        theirs = nn.RNN(5, 4, nonlinearity=kind, batch_first=True)
    with torch.no_grad():
        if kind == "lstm":
            module.peepholes.zero_()
        theirs.weight_ih_l0.copy_(module.input.weight)
        theirs.weight_hh_l0.copy_(module.state.weight)
        theirs.bias_ih_l0.copy_(module.input.bias)
        theirs.bias_hh_l0.zero_()
    tokens = words.emb_layer(torch.tensor([[1, 2, 3, 0, 5]]))
    wanted = theirs(tokens)[0][0, -1].detach().numpy()
    np.testing.assert_allclose(read(module, tokens[0].tolist()), wanted, atol=1e-6)
    assert np.abs(wanted).max() > 0.05


def test_identity_rnn_by_hand():
    module = IdentityRNN(2)
    with torch.no_grad():
        module.state.weight.copy_(torch.tensor([[0.0, 1.0], [2.0, 0.0]]))
        module.input.weight.mul_(3)
        module.input.bias.copy_(torch.tensor([1.0, -1.0]))
    # h_1 = (4, 2), h_2 = (2, 8) + (3, 5) + (1, -1) ... each word (1, 1) and then (1, 2).
    assert read(module, [[1.0, 1.0], [1.0, 2.0]]).tolist() == [(2 + 3 + 1) / 2, (8 + 6 - 1) / 2]


def test_identity_rnn_before_training_is_the_average():
    model, average = build("irnn", unknown="train"), build("word", unknown="train")
    np.testing.assert_allclose(model.encode(SENTENCES), average.encode(SENTENCES), atol=1e-7)
    assert np.abs(model.encode(SENTENCES)).sum() > 0.1


@pytest.mark.parametrize("name", KINDS)
def test_batches_of_all_lengths_equal_single_sentences(name):
    """Vectors and gradients."""
    words, module = encoder(name).train()
    generator = np.random.default_rng(1)
    lengths = np.array([0, 7, 1, 12, 7, 0, 3, 40, 2])
    ids = generator.integers(0, len(WORDS), lengths.sum())
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    weights = torch.linspace(-1, 1, module.out_features)
    found = []
    for batches in ([range(len(lengths))], [[number] for number in range(len(lengths))]):
        module.zero_grad()
        words.zero_grad()
        vectors = []
        for batch in batches:
            rows_of = [ids[bounds[number] : bounds[number + 1]] for number in batch]
            offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows_of])])
            features = module(words(sequence_features(np.concatenate(rows_of), offsets)))
            vectors.append(features["sentence_embedding"])
        (torch.cat(vectors) @ weights).sum().backward()
        gradients = [weight.grad.clone() for weight in [*words.parameters(), *module.parameters()]]
        found.append((torch.cat(vectors).detach(), gradients))
    torch.testing.assert_close(found[0][0], found[1][0], atol=1e-6, rtol=1e-5)
    assert not found[0][0][[0, 5]].any()
    for one, other in zip(found[0][1], found[1][1], strict=True):
        assert one.any()
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_dan_by_hand():
    """Each layer is f(W v + b), the first over the average."""
    table, first, second = dan(layers=2, activation="relu")
    the, cat = (table.weight[WORDS.index(unit)].numpy() for unit in ("the", "cat"))
    value = (the + cat) / 2
    for layer in (first, second):
        weight, bias = (part.detach().numpy() for part in (layer.linear.weight, layer.linear.bias))
        value = np.maximum(weight @ value + bias, 0)
    found = encoder("dan-two-layers").encode("the cat")
    np.testing.assert_allclose(found, value, atol=1e-6)
    assert found.any()


@pytest.mark.parametrize(
    ("model", "settings", "wanted"),
    [
        ("rnn", {"activation": "relu", "word_dimension": 3}, {"activation": "relu", "in_features": 3}),
        ("plstm", {"output_gate": "without"}, {"output_gate": False, "in_features": 4}),
        ("plstm", {}, {"output_gate": True, "out_features": 4}),
        ("irnn", {}, {"in_features": 4, "out_features": 4}),
    ],
)
def test_settings_reach_the_module_and_come_back(tmp_path, model, settings, wanted):
    made = build(model, **settings)
    save(made, tmp_path)
    for module in (made[1], load(tmp_path)[1]):
        assert {name: getattr(module, name) for name in wanted} == wanted
    remote = SentenceTransformer(str(tmp_path), device="cpu", trust_remote_code=True)
    np.testing.assert_allclose(remote.encode(SENTENCES), made.encode(SENTENCES), atol=1e-6)


@pytest.mark.parametrize("model", ["dan", "rnn", "irnn", "plstm", "projection"])
def test_unknown_words_share_the_row_of_the_file(model):
    vectors = WordVectors(["the", "cat"], rows(WORDS, 4)[1:3], np.full(4, 2.0, np.float32))
    config = EncoderConfig(model=model, dimension=4, vectors="v.txt", unknown="share")
    built = build_encoder(config, {"word": Vocabulary("word", ["[UNK]", "the", "cat"])}, vectors=vectors)
    assert take_apart(list(built)).parts[0].table.weight[0].tolist() == [2.0] * 4
    found = built.encode(["zebra", "the", "qqq"])
    np.testing.assert_allclose(found[0], found[2], atol=1e-7)
    assert not np.allclose(found[0], found[1])


@pytest.mark.parametrize(("std", "wanted"), [(None, 0.2), (0.7, 0.7)])
def test_words_that_the_file_lacks_start_a_tenth_as_long(std, wanted):
    units = ["[UNK]", *(f"w{number}" for number in range(100))]
    vectors = WordVectors(units[1:51], 2 * np.random.default_rng(1).standard_normal((50, 60)).astype(np.float32))
    config = EncoderConfig(dimension=60, vectors="v.txt", init_std=std)
    built = build_encoder(config, {"word": Vocabulary("word", units)}, vectors=vectors)
    weight = take_apart(list(built)).parts[0].table.weight.detach().numpy()
    assert (weight[1:51] == vectors.matrix).all()
    assert abs(weight[51:].std() - wanted) < 0.03 * wanted


def test_paragram_phrase_is_another_name_of_word():
    assert EncoderConfig(model="paragram-phrase").model == "word"
    assert EncoderConfig(model="paragram-phrase,trigram").parts == ["word", "trigram"]
    assert EncoderConfig(model="lstm+paragram-phrase").families[1].title == "WORD"
    with refused("model"):
        EncoderConfig(model="paragram")
