"""LSTM modules that run in groups of like length: the same states and gradients as the stock module's."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import LSTM
from torch import nn

from paranmt_hf.encoders import sequences
from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.sequences import directions_before, directions_behind, sequence_features, unpacked_sequences
from tests.encoders.toys import WORDS, encoder


def batch(count):
    """Sentences of 0 to 40 words, some of which are much longer."""
    generator = np.random.default_rng(1)
    lengths = generator.integers(0, 12, count)
    lengths[:: count // 4] = 40
    lengths[-1] = 0
    return generator.integers(1, len(WORDS), lengths.sum()), np.concatenate([[0], np.cumsum(lengths)])


@pytest.mark.parametrize("group", [1, 7, 32, 1000])
@pytest.mark.parametrize("name", ["lstm", "lstm-max", "blstm", "blstm-average"])
def test_groups_equal_the_stock_module(monkeypatch, name, group):
    monkeypatch.setattr(sequences, "GROUP", group)
    found = []
    for modules in (False, True):
        model = encoder(name).train()
        with unpacked_sequences(model.modules() if modules else ()):
            features = sequence_features(*batch(90))
            vectors = model(features)["sentence_embedding"]
            (vectors * torch.linspace(-1, 1, vectors.numel()).view_as(vectors)).sum().backward()
        found.append((vectors.detach(), [weight.grad for weight in model.parameters()]))
        assert not any("forward" in vars(module) for module in model.modules() if isinstance(module, LSTM))
    rows = np.diff(batch(90)[1]) > 0
    torch.testing.assert_close(found[0][0][rows], found[1][0][rows], atol=1e-6, rtol=0)
    assert found[0][0][rows].abs().sum() > 1
    for one, other in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


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
    words, lstm, pooling, mean = directions_behind(list(encoder("blstm-average")))
    if change == "weights":
        mean.linear.weight.data[0, 0] = 1
    elif change == "bias":
        mean = Dense(
            mean.in_features, mean.out_features, activation_function=nn.Identity(), init_weight=mean.linear.weight
        )
    else:
        mean.activation_function = nn.Tanh()
    modules = [words, lstm, pooling, mean]
    assert directions_before(modules) is modules
