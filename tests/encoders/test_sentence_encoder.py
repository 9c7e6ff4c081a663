"""`encode` of averages against that of sentence-transformers."""

import copy
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer

from paranmt_hf import InputError, SentenceEncoder, load
from paranmt_hf.encoders.modules.paranmt_averages import TrigramEmbedding, WordEmbedding
from paranmt_hf.encoders.modules.paranmt_combination import Combination
from paranmt_hf.encoders.units import count_units
from paranmt_hf.encoders.vocabulary import most_frequent
from paranmt_hf.text.definitions import character_ngrams, words
from tests.encoders.toys import AVERAGES, BIASED, SENTENCES, TRIGRAMS, WORDS, encoder, modules_of, rows

PROMPTED = {"prompts": {"quiet": "the cat ", "none": ""}}


@pytest.fixture
def threads():
    """Encode on two threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield 2
    torch.set_num_threads(before)


@pytest.fixture
def fast_calls(monkeypatch):
    """How often the fast path was taken."""
    calls = []
    original = SentenceEncoder._encode_fast

    def counted(self, *args, **kwargs):
        calls.append(kwargs)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(SentenceEncoder, "_encode_fast", counted)
    return calls


def assert_alike(found, expected, tolerance=1e-6):
    assert type(found) is type(expected)
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other, tolerance)
        return
    assert found.dtype == expected.dtype
    assert tuple(found.shape) == tuple(expected.shape)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), atol=tolerance)


OPTIONS = [
    dict(itertools.chain.from_iterable(chosen))
    for chosen in itertools.product(
        [[], [("convert_to_tensor", True)], [("convert_to_numpy", False)]],
        [[], [("normalize_embeddings", True)]],
        [[], [("truncate_dim", 2)]],
        [[], [("prompt_name", "quiet"), ("batch_size", 2)]],
    )
]


@pytest.mark.slow
@pytest.mark.parametrize("name", AVERAGES)
def test_every_combination_of_options_equals_the_slow_path(name, threads, fast_calls):
    model = SentenceEncoder(modules=list(encoder(name)), device="cpu", **PROMPTED)
    calls = 0
    # All combinations for one, for others every fifth.
    for options in OPTIONS if name == "word,trigram" else OPTIONS[::5]:
        for inputs in (SENTENCES, SENTENCES * 4, "The cat isn't"):
            # Dividing by the length of a vector much shorter than those it is made of magnifies its rounding.
            tolerance = 5e-6 if "normalize_embeddings" in options else 1e-6
            expected = SentenceTransformer.encode(model, inputs, **options)
            assert_alike(model.encode(inputs, **options), expected, tolerance)
            calls += 1
    assert calls == len(fast_calls) >= 10
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    "options",
    [
        {"task": "query"},
        {"show_progress_bar": False},
        {"precision": "float32"},
        {"output_value": "sentence_embedding"},
        {"device": None, "pool": None, "chunk_size": None},
        {"prompt": "", "prompt_name": None},
    ],
)
def test_usual_values_take_the_fast_path(options, fast_calls):
    model = encoder("word,trigram")
    assert_alike(model.encode(SENTENCES, **options), SentenceTransformer.encode(model, SENTENCES, **options))
    assert len(fast_calls) == 1


@pytest.mark.parametrize(
    "options", [{"device": "cpu"}, {"output_value": None}, {"normalize_embeddings": True, "precision": "uint8"}]
)
def test_other_options_are_delegated(options, fast_calls):
    model = encoder("word,trigram")
    found, expected = (call(SENTENCES, **options) for call in (model.encode, super(SentenceEncoder, model).encode))
    if options.get("output_value", "") is None:
        assert [sorted(item) for item in found] == [sorted(item) for item in expected]
        for one, other in zip(found, expected, strict=True):
            assert_alike(one["sentence_embedding"], other["sentence_embedding"])
    else:
        assert_alike(found, expected)
    assert not fast_calls


def test_old_name_of_the_argument(fast_calls):
    model = encoder("word")
    np.testing.assert_array_equal(model.encode(SENTENCES), model.encode(sentences=SENTENCES))
    assert len(fast_calls) == 2


def test_no_sentences(fast_calls):
    """The one difference: sentence-transformers forgets the width."""
    model = encoder("word,trigram")
    assert model.encode([]).shape == (0, 7)
    assert model.encode([], truncate_dim=3, normalize_embeddings=True).shape == (0, 3)
    assert model.encode([], convert_to_tensor=True).shape == (0, 7)
    assert model.encode([], convert_to_numpy=False) == []
    assert len(fast_calls) == 4


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.text().map(lambda text: text.encode("utf8", "replace").decode("utf8")), max_size=5, min_size=1))
def test_any_text_equals_the_slow_path(sentences):
    units = [["[UNK]", "never seen", *sorted({u for line in sentences for u in cut(line)} - {"[UNK]"})[::2]]
             for cut in (words, character_ngrams)]  # fmt: skip
    model = SentenceEncoder(
        modules=[
            Combination(
                [[WordEmbedding(units[0], rows(units[0], 3))], [TrigramEmbedding(units[1], rows(units[1], 3))]]
            )
        ],
        device="cpu",
    )
    assert_alike(model.encode(sentences), SentenceTransformer.encode(model, sentences))


@pytest.mark.slow
def test_real_text_equals_the_slow_path(shared_data):
    texts = (shared_data / "bitext" / "news" / "news.en").read_text(encoding="utf8").split("\n")[:2500]
    counts = count_units([texts], ["word", "trigram"])
    word_units = most_frequent("word", counts["word"], 3000).units
    trigram_units = most_frequent("trigram", counts["trigram"], 2000).units
    parts = [
        [WordEmbedding(word_units, rows(word_units, 20))],
        [TrigramEmbedding(trigram_units, rows(trigram_units, 30))],
    ]
    model = SentenceEncoder(modules=[Combination(parts)], device="cpu")
    assert_alike(model.encode(texts), SentenceTransformer.encode(model, texts, batch_size=500))
    stock = SentenceTransformer(modules=[parts[0][0].stock()], device="cpu").encode(texts, batch_size=500)
    np.testing.assert_allclose(model.encode(texts)[:, :20], stock, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in AVERAGES if name not in BIASED])
def test_changed_weights_are_seen(name):
    """After a step in place, after loading other weights, and after training."""
    model = encoder(name)
    before = model.encode(SENTENCES)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2)
    np.testing.assert_allclose(model.encode(SENTENCES), 2 * before, atol=1e-6)
    model.load_state_dict({key: value / 2 for key, value in model.state_dict().items()})
    np.testing.assert_allclose(model.encode(SENTENCES), before, atol=1e-6)
    model.train()
    for weight in model.parameters():
        weight.data = weight.data * 3
    model.eval()
    np.testing.assert_allclose(model.encode(SENTENCES), 3 * before, atol=1e-5)
    model.double()
    np.testing.assert_allclose(model.encode(SENTENCES), 3 * before, atol=1e-5)


@pytest.mark.parametrize("name", ["word-stock", "word,trigram"])
def test_copies_do_not_share_what_is_remembered(name):
    model = encoder(name)
    before = model.encode(SENTENCES)
    other = copy.deepcopy(model)
    assert "average" in model.__dict__
    assert "average" not in other.__dict__
    with torch.no_grad():
        for weight in other.parameters():
            weight.mul_(2)
    np.testing.assert_allclose(other.encode(SENTENCES), 2 * before, atol=1e-6)
    np.testing.assert_array_equal(model.encode(SENTENCES), before)


def test_vectors_can_be_trained_on():
    vectors = encoder("word").encode(SENTENCES, convert_to_tensor=True)
    assert not vectors.is_inference()
    layer = torch.nn.Linear(4, 1)
    layer(vectors).sum().backward()
    assert torch.isfinite(layer.weight.grad).all()


def known_by_definition(sentences, *kinds):
    cuts = {"word": (words, set(WORDS[1:])), "trigram": (character_ngrams, set(TRIGRAMS[1:]))}
    return [
        sum(unit in units for cut, units in (cuts[kind] for kind in kinds) for unit in cut(line)) for line in sentences
    ]


def test_known_tokens():
    assert encoder("word").known_tokens(["The cat's", "zebra", "", "cat cat dog"]).tolist() == [3, 0, 0, 2]
    assert encoder("word-stock").known_tokens(SENTENCES).tolist() == known_by_definition(SENTENCES, "word")
    assert encoder("trigram").known_tokens(SENTENCES).tolist() == known_by_definition(SENTENCES, "trigram")
    both = encoder("word,trigram").known_tokens(SENTENCES).tolist()
    assert both == known_by_definition(SENTENCES, "word", "trigram")
    assert sum(both) > 50
    assert not hasattr(encoder("lstm"), "known_tokens")
    assert not hasattr(encoder("word,lstm"), "known_tokens")


def test_a_call_may_truncate_less_than_the_model():
    model = SentenceEncoder(modules=list(encoder("word,trigram")), device="cpu", truncate_dim=3)
    for cut in (None, 2, 5, 50, -1):
        found = model.encode(SENTENCES, truncate_dim=cut)
        np.testing.assert_allclose(found, SentenceTransformer.encode(model, SENTENCES, truncate_dim=cut), atol=1e-6)


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 0), ("float16", 2e-3), ("int8", 2e-2)])
def test_stored_in_another_precision(precision, tolerance, tmp_path):
    settings = {"prompts": PROMPTED["prompts"], "default_prompt_name": "quiet", "truncate_dim": 5}
    made = SentenceEncoder(modules=modules_of("word,trigram"), device="cpu", similarity_fn_name="dot", **settings)
    made.stored_as(precision).save_pretrained(tmp_path)
    found = load(tmp_path, device="cpu")
    assert {part.modules[0].precision for part in found.composition.parts} == {precision}
    assert found.similarity_fn_name == "dot" and found.default_prompt_name == "quiet" and found.truncate_dim == 5
    np.testing.assert_allclose(found.encode(SENTENCES), made.encode(SENTENCES), atol=tolerance)


def test_what_is_not_stored_in_another_precision():
    for model, precision in (("lstm", "int8"), ("word", "int2"), ("word,trigram", "int4")):
        with pytest.raises(InputError):
            encoder(model).stored_as(precision)
