"""The encoders that the package carries, by language."""

import numpy as np
import pytest

from paranmt_hf import StaticEncoder, load
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.hub.repository import ASSETS, LANGUAGES_OF, MULTILINGUAL, encoder_for
from tests.refused import refused

# Three sentences in each language: what the first two say is about the same.
SENTENCES = {
    "en": ("A man is playing a guitar.", "Someone plays the guitar.", "It will rain tomorrow."),
    "de": ("Ein Mann spielt Gitarre.", "Jemand spielt auf einer Gitarre.", "Morgen wird es regnen."),
    "fr": ("Un homme joue de la guitare.", "Quelqu'un joue de la guitare.", "Il va pleuvoir demain."),
    "es": ("Un hombre toca la guitarra.", "Alguien está tocando la guitarra.", "Mañana va a llover."),
    "cs": ("Muž hraje na kytaru.", "Někdo hraje na kytaru.", "Zítra bude pršet."),
    "it": ("Un uomo suona la chitarra.", "Qualcuno sta suonando la chitarra.", "Domani pioverà."),
    "nl": ("Een man speelt gitaar.", "Iemand speelt op een gitaar.", "Morgen gaat het regenen."),
    "pl": ("Mężczyzna gra na gitarze.", "Ktoś gra na gitarze.", "Jutro będzie padać."),
    "pt": ("Um homem toca violão.", "Alguém está tocando violão.", "Amanhã vai chover."),
}


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(("name", "language"), [(name, one) for name, all in LANGUAGES_OF.items() for one in all])
def test_what_means_the_same_is_near(name, language):
    same, alike, other = unit(StaticEncoder.from_pretrained(name).encode(list(SENTENCES[language])))
    assert same @ alike > 0.7 > same @ other + 0.3


def test_translations_are_near_each_other():
    encoder = StaticEncoder.from_pretrained(MULTILINGUAL)
    vectors = {code: unit(encoder.encode([first, last])) for code, (first, _, last) in SENTENCES.items()}
    for one in vectors.values():
        for other in vectors.values():
            assert (np.diag(one @ other.T) > 0.4).all()
            assert (np.argmax(one @ other.T, axis=1) == [0, 1]).all()


@pytest.mark.parametrize("name", LANGUAGES_OF)
def test_they_load_with_and_without_torch(name):
    texts = [text for three in SENTENCES.values() for text in three]
    loaded = load(name)
    np.testing.assert_allclose(loaded.encode(texts), StaticEncoder.from_pretrained(name).encode(texts), atol=1e-6)
    size = sum(path.stat().st_size for path in (ASSETS / name).iterdir())
    assert size <= (4e6 if len(name) == 2 else 14e6)


def test_the_encoder_for_a_language():
    assert [encoder_for(code).name for code in ("en", "de", "cs", "ja")] == ["small", "de", MULTILINGUAL, MULTILINGUAL]
    assert NamedEncoder.of(None, "fr").model.name == "fr"
    assert NamedEncoder.of("base", "fr").model.name == "base"


@pytest.mark.parametrize(("name", "language"), [("de", "en"), ("small", "de"), (MULTILINGUAL, "ja"), ("fr", "es")])
def test_an_encoder_for_another_language_is_refused(name, language):
    with refused():
        NamedEncoder(name).check_language(language)
    for code in LANGUAGES_OF[name]:
        NamedEncoder(name).check_language(code)
