"""Families and taking encoders apart: each kind is recognised, named, and has what its record says."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling
from torch import nn

from paranmt_hf import EncoderConfig, load
from paranmt_hf.encoders.building import build_encoder
from paranmt_hf.encoders.composition import composition_of, take_apart
from paranmt_hf.encoders.config import FAMILIES, OF_PAIRS, title_of
from paranmt_hf.encoders.model_folder import MODULE_FILES
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.vocabulary import Vocabulary
from tests.encoders.toys import EVERY, PIECES, SENTENCES, TRIGRAMS, WORDS, encoder, lstm, projection, word
from tests.refused import refused

VOCABULARIES = {"word": Vocabulary("word", WORDS), "trigram": Vocabulary("trigram", TRIGRAMS)}
PLAIN = {"word-stock": "word", "lstm-wide": "lstm", "trigram,word-int8": "trigram,word"}


@pytest.mark.parametrize("name", EVERY)
def test_every_toy_is_recognised(name):
    composition = encoder(name).composition
    plain = PLAIN.get(name, name)
    for ending in ("-float16", "-int8", "-int4", "-pieces", "-average", "-max", "-relu", "-without", "-two-layers"):
        plain = plain.replace(ending, "")
    assert composition.name == plain
    assert composition.dimension == encoder(name).encode("the cat").shape[0]
    families = [part.family for part in composition.parts]
    assert composition.is_bag == (not any(family.ordered for family in families))
    assert composition.only_tables == (not any(family.layers for family in families))
    for part in composition.parts:
        words = PIECES if name.endswith("-pieces") else WORDS
        assert part.vocabulary.units == (words if part.unit_kind == "word" else TRIGRAMS)


@pytest.mark.parametrize("family", [FAMILIES[name] for name in OF_PAIRS], ids=lambda family: family.name)
def test_a_record_says_what_its_code_makes(family, tmp_path):
    config = EncoderConfig(model=family.name, dimension=3, **{"word_dimension": 2} if family.layers else {})
    model = build_encoder(config, VOCABULARIES)
    (part,) = take_apart(model).parts
    assert part.family is family
    assert part.dimension == model.encode("the cat").shape[0] >= 3
    assert (family.layers is not None) == any(weight is not part.table.weight for weight in model.parameters())
    assert tuple(part.table.weight.shape) == (len(part.vocabulary), config.table_dimension(family))
    if family.units == "word":
        if family.name == "irnn":
            # Before training it is an average.
            part.modules[1].state.weight.data.mul_(0.5)
        alike = np.allclose(model.encode("the cat sat is"), model.encode("is sat cat the"), atol=1e-6)
        assert family.ordered == (not alike)
    save(model, tmp_path)
    for path in tmp_path.rglob("*_*/*"):
        assert MODULE_FILES.fullmatch(path.relative_to(tmp_path).as_posix()), "it is published"
    if family.layers:
        # Each can be a part of a combination.
        combined = build_encoder(replace(config, model=f"trigram,{family.name}"), VOCABULARIES)
        save(combined, tmp_path / "combined")
        np.testing.assert_array_equal(load(tmp_path / "combined").encode(SENTENCES), combined.encode(SENTENCES))


def test_a_toy_has_each_family():
    """What is saved, loaded and exported in other tests are the toys."""
    assert {part.family.name for name in EVERY for part in encoder(name).composition.parts} == set(OF_PAIRS)


def test_titles():
    assert title_of(["word", "trigram"], "add") == "WORD+TRIGRAM"
    assert take_apart([word()]).title == "WORD"


def test_what_is_none_of_ours():
    two_layers = LSTM(5, 4, num_layers=2, bidirectional=False)
    words, _, pooling = lstm()
    with_activation = [word(), Dense(4, 3, activation_function=nn.Sigmoid())]
    other_key = [word(), Dense(4, 3, activation_function=nn.Identity(), module_output_name="other")]
    for modules in (
        other_key,
        [words, two_layers, Pooling(4)],
        [words, pooling],
        with_activation,
        [word(), word()],
        [nn.Identity()],
    ):
        assert composition_of(modules) is None
    with refused():
        take_apart(with_activation)


def test_projection_is_a_linear_layer_over_the_average():
    """Equation 3 of arXiv:1511.08198 by hand: W times the mean of the words' vectors, plus b."""
    table, layer = projection(3)
    model = encoder("projection")
    weight, bias = layer.linear.weight.detach().numpy(), layer.linear.bias.detach().numpy()
    the, cat = (table.weight[WORDS.index(unit)].numpy() for unit in ("the", "cat"))
    np.testing.assert_allclose(model.encode("the cat"), weight @ ((the + cat) / 2) + bias, atol=1e-6)
    np.testing.assert_allclose(model.encode(""), bias, atol=1e-6)


def test_projection_follows_the_weights_of_its_layer(tmp_path):
    model = encoder("projection")
    before = model.encode(SENTENCES)
    with torch.no_grad():
        model[1].linear.weight.mul_(2)
        model[1].linear.bias.mul_(2)
    np.testing.assert_allclose(model.encode(SENTENCES), 2 * before, atol=1e-6)
    save(model, tmp_path)
    np.testing.assert_allclose(load(tmp_path).encode(SENTENCES), 2 * before, atol=1e-6)
