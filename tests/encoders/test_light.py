"""Averaging encoders without torch: equal to the encoder with torch, which the object becomes when it is needed."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch import nn

from paranmt_hf.encoders import light, module_loading
from paranmt_hf.encoders.contents import module_list
from paranmt_hf.encoders.light import LightEncoder
from paranmt_hf.encoders.loading import load
from paranmt_hf.encoders.module_loading import encoder_of, load_modules
from paranmt_hf.encoders.saving import save
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.encoders.tables import Tables, read_tables
from paranmt_hf.hub.repository import locate
from paranmt_hf.text.tokens import Bags
from tests.encoders.test_sent2vec import module as sent2vec
from tests.encoders.toys import AVERAGES, REDUCED, SENTENCES, encoder, rows, word

BAGS = [name for name in AVERAGES + REDUCED if "projection" not in name and "dan" not in name]
OTHERS = ["projection", "projection,trigram", "dan-two-layers", "lstm", "word,lstm", "rnn-relu"]
NGRAMS = {
    "sent2vec": ("words", 2, "float32"),
    "sent2vec-blanks": ("blanks", 3, "float16"),
    "words": ("blanks", 1, "int8"),
}
SETTINGS = {"prompts": {"query": None, "loud": "cat! "}, "similarity_fn_name": "dot", "truncate_dim": 3}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each kind of encoder."""
    top = tmp_path_factory.mktemp("encoders")
    for name in BAGS + OTHERS:
        save(encoder(name), top / name)
    for name, (cut, order, precision) in NGRAMS.items():
        save(SentenceEncoder(modules=[sent2vec(order, cut, precision)], device="cpu"), top / name)
    save(SentenceEncoder(modules=list(encoder("word,trigram")), device="cpu", **SETTINGS), top / "settings")
    return top


def tables_of(folder: Path) -> Tables | None:
    return read_tables(folder, module_list(folder, "model"))


def light_of(folder: Path) -> LightEncoder:
    tables = tables_of(folder)
    assert tables is not None
    return LightEncoder(tables, locate(folder))


def full_of(folder: Path) -> SentenceEncoder:
    """The encoder as its own modules read it."""
    return load_modules(locate(folder), module_list(folder, "model"), device=None, dtype=None)


def is_light(model: object) -> bool:
    return type(model) is LightEncoder


@pytest.mark.parametrize("name", [*BAGS, *NGRAMS, "settings"])
def test_vectors_and_encoder_are_those_of_the_modules(saved: Path, name: str) -> None:
    found, expected = light_of(saved / name), full_of(saved / name)
    vectors = expected.encode(SENTENCES)
    assert np.abs(vectors).sum() > 1
    assert found.encode(SENTENCES).dtype == np.float32
    np.testing.assert_allclose(found.encode(SENTENCES), vectors, atol=1e-6)
    np.testing.assert_allclose(found.encode(SENTENCES), SentenceTransformer.encode(expected, SENTENCES), atol=1e-6)
    assert is_light(found)
    made = encoder_of(vars(found)["_light"].tables, locate(saved / name))
    assert [type(module) for module in made.modules()] == [type(module) for module in expected.modules()]
    assert vars(made).keys() == vars(expected).keys()
    for own, other in zip(made.modules(), expected.modules(), strict=True):
        assert vars(own).keys() == vars(other).keys()
        for key in {"units", "precision", "mode", "order", "buckets", "cut", "training"} & set(vars(own)):
            assert getattr(own, key) == getattr(other, key)
    assert made.state_dict().keys() == expected.state_dict().keys()
    for key, weight in expected.state_dict().items():
        assert torch.equal(made.state_dict()[key], weight)
    for key in ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim", "source", "fast_dtype"):
        assert getattr(made, key) == getattr(expected, key)
    assert str(made.device) == str(expected.device) == "cpu"


@pytest.mark.parametrize("name", OTHERS)
def test_other_encoders_are_left_to_the_modules(saved: Path, name: str) -> None:
    assert tables_of(saved / name) is None


def test_loading_gives_the_light_one_until_sentence_transformers_is_there(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert type(load(saved / "word")) is SentenceEncoder
    monkeypatch.delitem(sys.modules, "sentence_transformers")
    assert is_light(load(saved / "word"))
    assert is_light(load(saved / "word", device="cpu"))
    for options in ({"dtype": torch.float32}, {"dtype": torch.float16}, {"device": "meta"}):
        assert type(load(saved / "word", **options)) is SentenceEncoder
    assert type(load(saved / "lstm")) is SentenceEncoder


OPTIONS = [
    {"normalize_embeddings": True},
    {"truncate_dim": 2},
    {"truncate_dim": 50},
    {"truncate_dim": -1},
    {"truncate_dim": 2, "normalize_embeddings": True},
    {"prompt": "The cat. "},
    {"prompt_name": "loud"},
    {"prompt_name": "query"},
    {"batch_size": 2, "show_progress_bar": False, "convert_to_numpy": True, "convert_to_tensor": False},
    {"output_value": "sentence_embedding", "precision": "float32", "device": None, "pool": None, "chunk_size": None},
    {"task": "query"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_usual_options(saved: Path, options: dict[str, object]) -> None:
    found, expected = light_of(saved / "settings"), full_of(saved / "settings")
    for inputs in (SENTENCES, "The cat’s", "", [], np.array(SENTENCES[:3]), tuple(SENTENCES)):
        vectors, others = found.encode(inputs, **options), expected.encode(inputs, **options)
        assert vectors.shape == others.shape
        np.testing.assert_allclose(vectors, others, atol=1e-6)
    assert is_light(found)


@pytest.mark.parametrize("task", ["encode_query", "encode_document"])
def test_queries_and_documents(saved: Path, tmp_path: Path, task: str) -> None:
    model = SentenceEncoder(modules=list(encoder("word")), device="cpu", prompts={"query": "cat ", "document": "it "})
    save(model, tmp_path / "model")
    for options in (
        {},
        {"prompt": "sat ", "prompt_name": None},
        {"prompt": None, "prompt_name": None},
        {"prompt_name": "document"},
        {"normalize_embeddings": True},
    ):
        found = light_of(tmp_path / "model")
        vectors = getattr(found, task)(SENTENCES, **options)
        assert is_light(found)
        np.testing.assert_allclose(vectors, getattr(model, task)(SENTENCES, **options), atol=1e-6)
    assert not np.allclose(model.encode_query("sat"), model.encode_document("sat"))
    found = light_of(tmp_path / "model")
    np.testing.assert_allclose(getattr(found, task)(sentences="sat"), getattr(model, task)("sat"), atol=1e-6)


def test_means_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.array([[0, 0], [1, 10], [2, 20], [6, 30]], np.float32)
    bags = Bags(np.array([1, 2, 3, 3, 0], np.int32), np.array([0, 3, 3, 5]))
    for piece in (4096, 2, 1):
        monkeypatch.setattr(light, "PIECE", piece)
        assert light.mean_rows(table, bags).tolist() == [[3, 20], [0, 0], [3, 15]]
    assert light.mean_rows(table, Bags(bags.rows[:0], bags.offsets[:1])).shape == (0, 2)


def test_vectors_of_a_call_belong_to_the_caller(saved: Path) -> None:
    found = light_of(saved / "word")
    first = found.encode(SENTENCES)
    kept = first.copy()
    found.encode(SENTENCES)[:] = 7
    first[:] = 7
    np.testing.assert_array_equal(found.encode(SENTENCES), kept)


def test_long_sentences_and_forgetting(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = [*SENTENCES, "the cat sat. zebra " * 40]
    expected = full_of(saved / "word,trigram").encode(sentences)
    for name, value in (("PIECE", 7), ("CHUNKS", 1), ("BATCH", 2)):
        monkeypatch.setattr(light, name, value)
    found = light_of(saved / "word,trigram")
    for _ in range(2):
        np.testing.assert_allclose(found.encode(sentences), expected, atol=1e-6)


ASKING = {
    "attribute": lambda model: model.prompts,
    "private attribute": lambda model: list(model._modules),
    "missing attribute": lambda model: getattr(model, "no_such_thing", 3),
    "method": lambda model: model.similarity(model.encode(["the cat"]), model.encode(["a cat"])).tolist(),
    "set": lambda model: (setattr(model, "truncate_dim", 2), model.encode(SENTENCES).tolist())[1],
    "delete": lambda model: (delattr(model, "_device_map"), hasattr(model, "_device_map"))[1],
    "repr": repr,
    "str": str,
    "format": lambda model: f"{model}",
    "dir": dir,
    "len": len,
    "bool": bool,
    "list": lambda model: [type(module) for module in model],
    "first": lambda model: type(model[0]),
    "in": lambda model: model[0] in model,
    "call": lambda model: model(model.preprocess(SENTENCES))["sentence_embedding"].tolist(),
    "sum": lambda model: len(model + nn.Sequential(nn.Identity())),
    "tensor": lambda model: model.encode(SENTENCES, convert_to_tensor=True).tolist(),
    "list of tensors": lambda model: [vector.tolist() for vector in model.encode(SENTENCES, convert_to_numpy=False)],
    "tokens": lambda model: sorted(model.encode("the cat", output_value=None)),
    "int8": lambda model: model.encode(SENTENCES * 30, precision="int8").tolist(),
    "device": lambda model: model.encode(SENTENCES, device="cpu").round(5).tolist(),
    "position": lambda model: model.encode(SENTENCES, "query").round(5).tolist(),
    "older name": lambda model: model.encode(sentences=SENTENCES).tolist(),
    "two prompts": lambda model: model.encode("sat", prompt="the ", prompt_name="query").tolist(),
    "state": lambda model: {key: value.tolist() for key, value in model.state_dict().items()},
    "inside another": lambda model: len(list(nn.Sequential(model, nn.Identity()).parameters())),
    "as a method": lambda model: SentenceTransformer.encode(model, SENTENCES).round(5).tolist(),
    "train": lambda model: model.train().training,
    "half": lambda model: str(model.half().dtype),
}


@pytest.mark.parametrize("asked", ASKING)
def test_whatever_else_is_asked_for_is_answered_by_the_full_encoder(saved: Path, asked: str) -> None:
    found = light_of(saved / "word,trigram")
    assert is_light(found)
    assert ASKING[asked](found) == ASKING[asked](full_of(saved / "word,trigram"))
    assert type(found) is SentenceEncoder


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_is_of_its_kind(saved: Path, copied: Callable[[SentenceEncoder], SentenceEncoder]) -> None:
    found, expected = light_of(saved / "word,trigram"), full_of(saved / "word,trigram").encode(SENTENCES)
    made = copied(found)
    assert made is not found and is_light(made) and is_light(found)
    np.testing.assert_allclose(made.encode(SENTENCES), expected, atol=1e-6)
    assert isinstance(made, SentenceTransformer) and made.get_embedding_dimension() == 7
    assert type(made) is SentenceEncoder and is_light(found), "each for itself"
    assert type(copied(made)) is SentenceEncoder


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt_name": "none"}, "Prompt name 'none' not found"),
        ({"batch_size": 0}, "batch_size|range"),
        ({"precision": "int3"}, "int3"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_errors_are_those_of_the_full_encoder(saved: Path, options: dict[str, object], message: str) -> None:
    errors = []
    for model in (light_of(saved / "word"), full_of(saved / "word")):
        with pytest.raises(Exception, match=message) as caught:
            model.encode(SENTENCES, **options)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]


def test_many_sentences_are_for_torch(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once or in several calls; those of a few do not count."""
    monkeypatch.setattr(light, "MANY", 20)
    monkeypatch.setattr(light, "FEW", 3)
    expected = full_of(saved / "word").encode(SENTENCES)
    found = light_of(saved / "word")
    for _ in range(20):
        found.encode(SENTENCES[:3])
        found.encode("a sentence of more characters than sentences are few")
    for _ in range(2):
        np.testing.assert_allclose(found.encode(SENTENCES), expected, atol=1e-6)
    assert is_light(found)
    np.testing.assert_allclose(found.encode(SENTENCES), expected, atol=1e-6)
    assert type(found) is SentenceEncoder
    found = light_of(saved / "word")
    found.encode(["cat"] * 21)
    assert type(found) is SentenceEncoder


def test_its_class(saved: Path) -> None:
    found = light_of(saved / "word")
    for kind in (SentenceEncoder, SentenceTransformer, nn.Sequential, nn.Module):
        assert isinstance(found, kind)
    assert not isinstance(found, nn.Linear)
    assert is_light(found), "asking for a class changes nothing"


def test_it_stays_the_same_object(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the encoder that was made for it is held by nobody."""
    made = []

    def noted(*args: object) -> SentenceEncoder:
        model = encoder_of(*args)  # type: ignore[arg-type]
        made.append(weakref.ref(model))
        return model

    monkeypatch.setattr(module_loading, "encoder_of", noted)
    found = light_of(saved / "word,trigram")
    before, bound, places = found.encode(SENTENCES), found.encode, {found: 1}
    assert found.get_embedding_dimension() == 7
    assert places[found] == 1
    assert found.model_card_data.model is found
    assert "_light" not in vars(found)
    assert vars(found).keys() == vars(full_of(saved / "word,trigram")).keys()
    gc.collect()
    assert [reference() for reference in made] == [None]
    np.testing.assert_allclose(bound(SENTENCES), before, atol=1e-6)
    assert light.become(found) is found
    assert len(made) == 1


def test_every_special_method_is_forwarded() -> None:
    """Python looks them up in the class of an object, so that one that is missing there would be overlooked."""
    classes = [kind for kind in SentenceEncoder.__mro__ if kind is not object]
    # What is not about an object's use: how it is made, and what `type` itself puts there or looks up elsewhere.
    apart = {"__init__", "__setstate__", "__getattr__", "__module__", "__annotations__", "__doc__", "__dict__"}
    apart |= {"__weakref__", "__abstractmethods__", "__slots__", "__static_attributes__", "__firstlineno__"}
    special = {name for kind in classes for name in vars(kind) if name.startswith("__") and name.endswith("__")}
    assert special - apart - set(vars(LightEncoder)) == set()
    assert {"__len__", "__call__", "__setattr__"} < special


def test_weights_are_shared_and_can_be_trained(saved: Path) -> None:
    found = light_of(saved / "word")
    before = found.encode(SENTENCES)
    with torch.no_grad():
        for weight in found.parameters():
            weight *= 2
    np.testing.assert_allclose(found.encode(SENTENCES), 2 * before, atol=1e-6)


def test_threads_meet_one_or_the_other(saved: Path) -> None:
    found = light_of(saved / "word,trigram")
    expected = full_of(saved / "word,trigram").encode(SENTENCES)
    errors, go = [], threading.Event()

    def work(number: int) -> None:
        try:
            for step in range(30):
                np.testing.assert_allclose(found.encode(SENTENCES), expected, atol=1e-6)
                if number and step == 5 * number:
                    go.set()
                    assert found.get_embedding_dimension() == 7
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert go.is_set()
    assert not errors
    assert type(found) is SentenceEncoder


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("config_sentence_transformers.json", {"default_prompt_name": "query"}),
        ("config_sentence_transformers.json", {"similarity_fn_name": "nearness"}),
        ("config_sentence_transformers.json", {"truncate_dim": 0}),
        ("config_sentence_transformers.json", {"prompts": {"query": 3}}),
        ("config_sentence_transformers.json", {"prompts": "query"}),
        ("combination_config.json", {"mode": "both"}),
        ("combination_config.json", {"mode": "add", "more": 1}),
        ("0_0_WordEmbedding/average_config.json", {"precision": "int4"}),
        ("0_0_WordEmbedding/average_config.json", {"more": 1}),
    ],
)
def test_what_is_unusual_is_left_to_the_modules(saved: Path, tmp_path: Path, file: str, change: dict) -> None:
    save(encoder("word,trigram"), tmp_path / "model")
    path = tmp_path / "model" / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert tables_of(tmp_path / "model") is None


def test_stock_modules_that_are_not_word(tmp_path: Path) -> None:
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
    from tokenizers import Tokenizer, models

    cased = Tokenizer(models.WordLevel({"[UNK]": 0, "Cat": 1}, unk_token="[UNK]"))
    other = StaticEmbedding(cased, embedding_weights=rows(["[UNK]", "Cat"], 4))
    wide = StaticEmbedding(word().stock().tokenizer, embedding_weights=torch.zeros(11, 4, dtype=torch.float64))
    for number, modules in enumerate([[other], [word().stock(), Normalize()], [wide]]):
        folder = tmp_path / str(number)
        SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
        assert tables_of(folder) is None
