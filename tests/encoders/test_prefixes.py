"""LSTMs that read each distinct beginning of a sentence once: the same states and gradients as torch's."""

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer.modules import LSTM

from paranmt_hf import load
from paranmt_hf.encoders.building import trainable
from paranmt_hf.encoders.prefixes import PrefixLSTM, prefix_features, prefixes_of, sequence_features
from tests.encoders.toys import SENTENCES, WORDS, encoder


def batch():
    """40 sentences of 0 to 40 words; the first ten once more, and ten that begin like others."""
    generator = np.random.default_rng(1)
    lengths = generator.integers(0, 12, 30)
    lengths[::8], lengths[-1] = 40, 0
    sentences = [generator.integers(1, len(WORDS), length) for length in lengths]
    sentences += [*sentences[:10], *(np.append(sentence[:3], 1) for sentence in sentences[10:20])]
    return np.concatenate(sentences), np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])])


def trained(name, reads, active=slice(None), dtype=None):
    """Vectors of a batch, and gradients of a loss over some of them."""
    model = encoder(name).train()
    lstm = next(module for module in model.modules() if isinstance(module, LSTM))
    if reads:
        trainable(model)
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        make = {"bidirectional": lstm.bidirectional} if reads else {}
        vectors = model((prefix_features if reads else sequence_features)(*batch(), **make))["sentence_embedding"]
    rows = np.diff(batch()[1]) > 0
    factors = torch.zeros_like(vectors)
    factors[active] = torch.linspace(-1, 1, vectors.numel()).view_as(vectors)[active]
    (vectors * factors)[rows].sum().backward()
    return vectors.detach()[rows], [weight.grad for weight in model.parameters()]


@pytest.mark.parametrize("active", [slice(None), slice(0, None, 3), slice(0, 0)], ids=["all", "some", "none"])
@pytest.mark.parametrize("name", ["lstm", "lstm-max", "blstm", "blstm-average"])
def test_equal_to_the_stock_module(name, active):
    stock, ours = trained(name, False, active), trained(name, True, active)
    torch.testing.assert_close(ours[0], stock[0], atol=1e-6, rtol=0)
    assert stock[0].abs().sum() > 1
    for own, other in zip(ours[1], stock[1], strict=True):
        torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-5)


def test_the_same_bytes_again():
    first, second = trained("blstm", True), trained("blstm", True)
    assert torch.equal(first[0], second[0])
    assert all(torch.equal(one, other) for one, other in zip(first[1], second[1], strict=True))


def test_autocast_changes_products_alone():
    exact, rounded = trained("lstm", True), trained("lstm", True, dtype=torch.bfloat16)
    assert rounded[0].dtype == torch.float32
    assert 0 < (rounded[0] - exact[0]).abs().max() < 0.01
    for own, other in zip(rounded[1], exact[1], strict=True):
        torch.testing.assert_close(own, other, atol=0.02 * float(other.abs().max()), rtol=0)


@pytest.mark.parametrize("name", ["lstm", "word+lstm"])
def test_other_features_and_saved_files_are_those_of_the_stock_module(tmp_path, name):
    model, changed = encoder(name), trainable(encoder(name))
    assert any(isinstance(module, PrefixLSTM) for module in changed.modules())
    np.testing.assert_array_equal(changed.encode(SENTENCES), model.encode(SENTENCES))
    model.save_pretrained(str(tmp_path / "stock"))
    changed.save_pretrained(str(tmp_path / "changed"))
    files = sorted(path.relative_to(tmp_path / "stock") for path in (tmp_path / "stock").rglob("*.*"))
    assert files == sorted(path.relative_to(tmp_path / "changed") for path in (tmp_path / "changed").rglob("*.*"))
    for file in files:
        if file.suffix in (".json", ".safetensors"):
            assert (tmp_path / "changed" / file).read_bytes() == (tmp_path / "stock" / file).read_bytes()
    np.testing.assert_array_equal(load(tmp_path / "changed").encode(SENTENCES), model.encode(SENTENCES))


def test_prefixes_by_hand():
    # "a b c", "a b", "", "a c", "b".
    words, offsets = np.array([0, 1, 2, 0, 1, 0, 2, 1]), np.array([0, 3, 5, 5, 7, 8])
    found = prefixes_of(words, offsets)
    # The empty one; a, b; a b, a c; a b c.
    assert found.levels == [slice(1, 3), slice(3, 5), slice(5, 6)]
    assert found.words[1:].tolist() == [0, 1, 1, 2, 2]
    assert found.parents[1:].tolist() == [0, 0, 1, 1, 3]
    assert found.places.tolist() == [1, 3, 5, 1, 3, 1, 4, 2]
    turned = prefixes_of(words, offsets, backward=True)
    # b, c; b a, c a, c b; c b a.
    assert turned.levels == [slice(1, 3), slice(3, 6), slice(6, 7)]
    assert turned.places.tolist() == [6, 5, 2, 3, 1, 4, 2, 1]


def test_no_words():
    none = prefixes_of(np.zeros(0, np.int64), np.zeros(3, np.int64))
    assert none.levels == []
    assert none.places.tolist() == []
    model = encoder("lstm-max")
    features = prefix_features(np.zeros(0, np.int32), np.zeros(3, np.int64))
    assert not trainable(model)(features)["sentence_embedding"].any()
