"""No pickle is read and nothing beside a model, whatever its configuration says."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from paranmt_hf import InputError, TranslatorConfig, load
from paranmt_hf.corpus.translation.engines import load_translator
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.hub.repository import locate
from tests.corpus.translation.tiny_models import make_marian
from tests.encoders.toys import Payload, tiny_bert
from tests.refused import refused

SENTENCES = ["the cat", "a cat sat"]


def booby_trap(path):
    path.write_bytes(pickle.dumps(Payload()))


@pytest.fixture(autouse=True)
def no_torch_load(monkeypatch):
    def refuse(path, *_, **__):
        if Path(path).exists():
            pytest.fail("a pickle was read")
        raise FileNotFoundError(path)

    monkeypatch.setattr(torch, "load", refuse)


@pytest.fixture
def transformer(tmp_path):
    """A tiny BERT as sentence-transformers saves it, and its vectors."""
    folder = tiny_bert(tmp_path, ["the", "a", "cat", "sat"])
    return folder, SentenceTransformer(str(folder), device="cpu").encode(SENTENCES)


def set_keys(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    "asked",
    [
        {"model_kwargs": {"use_safetensors": False}},
        {"model_args": {"use_safetensors": False, "weights_only": False}},
        {"model_kwargs": {"variant": "other", "weights_only": False}},
        {"config_args": {"transformers_weights": "adapter_model.bin"}},
        {"config_kwargs": {"use_safetensors": False}, "use_safetensors": False},
    ],
)
def test_configuration_asks_for_a_pickle(transformer, asked):
    folder, expected = transformer
    for name in ("pytorch_model.bin", "pytorch_model.other.bin", "adapter_model.bin"):
        booby_trap(folder / name)
    np.testing.assert_array_equal(load(folder, device="cpu").encode(SENTENCES), expected)
    before = locate(folder).revision
    set_keys(folder / "sentence_bert_config.json", **asked)
    assert locate(folder).revision != before, "a configuration counts"
    for read in (lambda: load(folder, device="cpu"), NamedEncoder(str(folder)).load):
        try:
            np.testing.assert_array_equal(read().encode(SENTENCES), expected)
        except InputError as error:
            assert "cannot read its module" in str(error)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.safetensors.index.json", {"weight_map": {"x": "x.bin"}}),
        ("model.safetensors.index.json", {"weight_map": {"x": "../x.safetensors"}}),
        ("model.safetensors.index.json", {"weight_map": {"x": 1}}),
        ("adapter_config.json", {"base_model_name_or_path": "/elsewhere"}),
        ("sentence_bert_config.json", {"tokenizer_name_or_path": "x"}),
        ("sentence_xlnet_config.json", {"model_args": {"use_kernels": True}}),
    ],
)
def test_configuration_that_leads_out(transformer, file, content):
    folder, _ = transformer
    (folder / file).write_text(json.dumps(content))
    with refused():
        load(folder, device="cpu")


@pytest.mark.parametrize(
    "asked", [{"transformers_weights": "adapter_model.bin"}, {"use_safetensors": False, "weights_only": False}]
)
def test_translator_whose_configuration_asks_for_a_pickle(tmp_path, asked):
    make_marian(tmp_path / "mt")
    for name in ("pytorch_model.bin", "adapter_model.bin"):
        booby_trap(tmp_path / "mt" / name)
    before = locate(tmp_path / "mt").revision
    set_keys(tmp_path / "mt" / "config.json", **asked)
    assert locate(tmp_path / "mt").revision != before
    config = TranslatorConfig(name=str(tmp_path / "mt"), backend="transformers", device="cpu", beam=2)
    if "transformers_weights" in asked:
        with refused(path=tmp_path / "mt"):
            load_translator(config)
    else:
        load_translator(config)


def test_links_and_what_they_lead_to(transformer, tmp_path):
    """A link counts by the content that it leads to, and must not lead out but into the client's own cache."""
    folder, expected = transformer
    alone = locate(folder).revision
    weights = folder / "model.safetensors"
    weights.rename(tmp_path / "weights")
    weights.symlink_to(tmp_path / "weights")
    with refused():
        load(folder)
    weights.unlink()
    (tmp_path / "weights").rename(folder / "one.safetensors")
    other = {name: tensor + 1 for name, tensor in load_file(folder / "one.safetensors").items()}
    save_file(other, folder / "two.safetensors", {"format": "pt"})
    found = []
    for name in ("one.safetensors", "two.safetensors"):
        weights.symlink_to(folder / name)
        found.append((locate(folder).revision, load(folder, device="cpu").encode(SENTENCES)))
        weights.unlink()
    assert len({found[0][0], found[1][0], alone}) == 3
    np.testing.assert_array_equal(found[0][1], expected)
    assert not np.array_equal(found[1][1], expected)


def test_snapshot_of_the_client_is_links_into_its_blobs(transformer, tmp_path):
    folder, expected = transformer
    blobs, snapshot = tmp_path / "models--a--b" / "blobs", tmp_path / "models--a--b" / "snapshots" / "1234"
    for number, path in enumerate(sorted(path for path in folder.rglob("*") if path.is_file())):
        (snapshot / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
        blobs.mkdir(exist_ok=True)
        path.rename(blobs / str(number))
        (snapshot / path.relative_to(folder)).symlink_to(blobs / str(number))
    np.testing.assert_array_equal(load(snapshot, device="cpu").encode(SENTENCES), expected)
    (snapshot / "more.json").symlink_to(tmp_path / "bert" / "config.json")
    with refused():
        load(snapshot)
