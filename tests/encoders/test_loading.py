"""Saved encoders: equal vectors everywhere, no code or pickle from outside, broken folders named."""

import json
import os
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest
from safetensors import safe_open
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

from paranmt_hf import InputError, StaticEncoder, load
from paranmt_hf.encoders.saving import CLASSES, save
from tests.encoders.toys import EVERY, REDUCED, SENTENCES, STOCK, Payload, encoder, foreign_table, rows, word
from tests.refused import refused
from tests.toys import bytes_of

# What the files keep of a float32 table.
TOLERANCE = {"float16": 2e-3, "int8": 0.02, "int4": 0.3}


def tolerance(name):
    return next((value for kind, value in TOLERANCE.items() if name.endswith(kind)), 1e-6)


@pytest.mark.parametrize("name", EVERY)
def test_saved_encoder_gives_equal_vectors(saved, name):
    original, loaded = encoder(name), load(saved / name)
    expected = original.encode(SENTENCES)
    assert np.abs(expected).sum() > 1
    np.testing.assert_allclose(loaded.encode(SENTENCES), expected, atol=tolerance(name))
    slow = SentenceTransformer.encode(loaded, SENTENCES)
    np.testing.assert_allclose(slow, loaded.encode(SENTENCES), atol=1e-3 if name in REDUCED else 1e-6)
    assert not loaded.training


@pytest.mark.parametrize("name", EVERY)
def test_saving_what_was_loaded_changes_nothing(saved, name, tmp_path):
    """Also where rows were quantised: what is on disk is what they are, to the last byte."""
    save(load(saved / name), tmp_path)
    assert bytes_of(tmp_path) == bytes_of(saved / name)


@pytest.mark.parametrize("name", STOCK)
def test_stock_encoder_loads_without_flag_or_package(saved, name):
    plain = SentenceTransformer(str(saved / name), device="cpu")
    np.testing.assert_allclose(plain.encode(SENTENCES), load(saved / name).encode(SENTENCES), atol=2e-3)
    assert not list((saved / name).rglob("*.py"))
    types = [entry["type"] for entry in json.loads((saved / name / "modules.json").read_text())]
    assert all(kind.startswith("sentence_transformers.") for kind in types)


@pytest.mark.parametrize("name", ["word+trigram", "plstm-without", "blstm-average-max"])
def test_own_modules_need_the_flag(saved, name):
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        SentenceTransformer(str(saved / name), device="cpu")


@pytest.mark.slow
def test_own_modules_run_where_the_package_is_not(saved, tmp_path):
    """Their code lies beside the weights. One process for all of them; importing the package fails in it."""
    program = tmp_path / "program.py"
    program.write_text(
        """
import importlib.abc, json, sys
import numpy as np

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "paranmt_hf":
            raise ImportError(f"{name} is not here")

sys.meta_path.insert(0, Refuse())
try:
    import paranmt_hf
    raise SystemExit("the package was imported")
except ImportError:
    pass
from sentence_transformers import SentenceTransformer

top, out, sentences, names = json.loads(sys.argv[1])
found = {}
for name in names:
    model = SentenceTransformer(f"{top}/{name}", device="cpu", trust_remote_code=True)
    found[name] = model.encode(sentences, batch_size=3)
assert not any(module.split(".")[0] == "paranmt_hf" for module in sys.modules)
np.savez(out, **found)
""",
        encoding="utf8",
    )
    environment = {
        **os.environ,
        "HF_MODULES_CACHE": str(tmp_path / "modules"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    argument = json.dumps([str(saved), str(tmp_path / "vectors.npz"), SENTENCES, [*EVERY, "sent2vec"]])
    command = [sys.executable, "-I", str(program), argument]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = np.load(tmp_path / "vectors.npz")
    assert set(found) == {*EVERY, "sent2vec"}
    for name in found:
        expected = load(saved / name).encode(SENTENCES)
        np.testing.assert_allclose(found[name], expected, atol=2e-3 if name in REDUCED else 1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("name", "file", "dtype", "width"),
    [
        ("word", "model.safetensors", "F32", 4),
        ("word-float16", "model.safetensors", "F16", 2),
        ("word-int8", "model.safetensors", "I8", 1),
        ("word-int4", "model.safetensors", "U8", 1),
        ("trigram-float16", "model.safetensors", "F16", 2),
        ("trigram-int8", "model.safetensors", "I8", 1),
        ("trigram,word-int8", "0_0_TrigramEmbedding/model.safetensors", "I8", 1),
        ("trigram,word-int8", "1_0_WordEmbedding/model.safetensors", "F16", 2),
    ],
)
def test_precision_of_the_files(saved, name, file, dtype, width):
    with safe_open(saved / name / file, "pt") as stored:
        table = stored.get_slice("embedding.weight")
        assert table.get_dtype() == dtype
        size, dimension = table.get_shape()
        extra = size * 4 if dtype in ("I8", "U8") else 0
    bytes_of_weights = size * dimension * width + extra
    assert bytes_of_weights < (saved / name / file).stat().st_size < bytes_of_weights + 400


def test_weights_are_safetensors_alone(saved):
    suffixes = {path.suffix for path in saved.rglob("*") if path.is_file()}
    assert suffixes == {".json", ".py", ".safetensors"}


def test_settings_of_the_model_are_kept(tmp_path):
    model = encoder("word,trigram")
    model.prompts["quiet"] = "the cat "
    model.default_prompt_name = "quiet"
    model.truncate_dim = 5
    model.similarity_fn_name = "dot"
    save(model, tmp_path)
    found = load(tmp_path)
    assert found.prompts == model.prompts
    assert (found.default_prompt_name, found.truncate_dim, found.similarity_fn_name) == ("quiet", 5, "dot")
    expected = encoder("word,trigram").encode(["the cat is"])[:, :5]
    np.testing.assert_allclose(found.encode(["is"]), expected, atol=1e-6)


def test_saving_leaves_the_model_as_it_is(tmp_path):
    model = encoder("trigram")
    before = model.encode(SENTENCES)
    save(model, tmp_path / "new" / "folder")
    assert not list((tmp_path / "new" / "folder").glob("README*"))
    np.testing.assert_array_equal(model.encode(SENTENCES), before)


def edit(folder, **changes):
    """Change the first entry of `modules.json`."""
    entries = json.loads((folder / "modules.json").read_text())
    entries[0].update(changes)
    (folder / "modules.json").write_text(json.dumps(entries))


@pytest.fixture
def copy(saved, tmp_path):
    def make(name):
        return shutil.copytree(saved / name, tmp_path / "model")

    return make


@pytest.mark.parametrize(
    "kind",
    [
        "mine.Module",
        "paranmt_hf.errors.InputError",
        "sentence_transformers_evil.Module",
        "sentence_transformers.evil",
        "sentence_transformers.util.misc.import_from_string",
        "",
    ],
)
def test_foreign_classes_are_refused(copy, kind):
    folder = copy("word")
    (folder / "mine.py").write_text("raise SystemExit('ran')")
    edit(folder, type=kind)
    with refused(path=folder):
        load(folder)


@pytest.mark.parametrize("path", ["..", "/etc", "a/b", "a\\b"])
def test_paths_out_of_the_folder_are_refused(copy, path):
    folder = copy("word")
    edit(folder, path=path)
    with refused(path=folder):
        load(folder)


@pytest.mark.parametrize(
    "entry", [{"folder": "../word", "type": "WordEmbedding"}, {"folder": "0_0_WordEmbedding", "type": "Transformer"}]
)
def test_parts_of_a_combination_are_checked(copy, entry):
    folder = copy("word,trigram")
    (folder / "parts.json").write_text(json.dumps([[entry]]))
    with refused(path=folder):
        load(folder)
    with refused(path=folder) if ".." in entry["folder"] else refused():
        StaticEncoder.from_pretrained(folder)


@pytest.mark.parametrize("name", ["word", "trigram", "word,trigram", "lstm"])
def test_pickles_are_refused(copy, name):
    folder = copy(name)
    weights = next(path for path in sorted(folder.rglob("model.safetensors")))
    weights.unlink()
    with (weights.parent / "pytorch_model.bin").open("wb") as file:
        pickle.dump(Payload(), file)
    with refused():
        load(folder)
    if name == "trigram":
        with pytest.raises(ValueError, match="has no model.safetensors"):
            CLASSES["paranmt_averages.TrigramEmbedding"].load(str(folder))


@pytest.mark.parametrize("text", ["", "[]", "[1]", '[{"name": "0"}]', '{"name": "0", "path": "", "type": "x"}'])
def test_broken_list_of_modules(copy, text):
    folder = copy("word")
    (folder / "modules.json").write_text(text)
    with refused(path=folder):
        load(folder)


def test_there_is_no_such_model(tmp_path):
    with refused():
        load(tmp_path / "nowhere")
    with pytest.raises(InputError):
        load(tmp_path)


def test_other_stock_models_are_loaded_too(tmp_path):
    """A StaticEmbedding that cuts text in another way: no fast path, but the same vectors as everywhere."""
    table = foreign_table(["[UNK]", "Cat", "cat"], rows(["[UNK]", "Cat", "cat"], 4))
    model = SentenceTransformer(modules=[table, Normalize()], device="cpu")
    model.save(str(tmp_path), create_model_card=False)
    found = load(tmp_path, device="cpu")
    assert found.average is None
    np.testing.assert_allclose(found.encode(["Cat cat", "cat"]), model.encode(["Cat cat", "cat"]), atol=1e-6)


def test_stock_modules_that_are_no_encoder_of_ours_stay(tmp_path):
    """WORD before a `Normalize` is no family of ours, and the stock module cuts text faster than ours without one."""
    model = SentenceTransformer(modules=[word().stock(), Normalize()], device="cpu")
    model.save(str(tmp_path))
    again = load(tmp_path)
    assert [type(module) for module in again] == [StaticEmbedding, Normalize]
    assert again.average is None
    np.testing.assert_allclose(again.encode(SENTENCES), model.encode(SENTENCES), atol=1e-6)


def test_none_is_the_encoder_that_the_package_carries():
    assert load(None).source == load("small").source == load().source


def test_a_link_to_a_folder_is_refused(copy, tmp_path):
    """The folder of a module, which could lead to weights that nobody looked at."""
    folder = copy("lstm")
    (inner,) = folder.glob("1_*")
    inner.rename(tmp_path / "elsewhere")
    inner.symlink_to(tmp_path / "elsewhere")
    with refused():
        load(folder)
