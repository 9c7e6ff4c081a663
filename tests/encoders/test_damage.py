"""Damaged models: the message names the file, whatever was done to which one."""

import json
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from tests.refused import refused

DAMAGES = {
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "garbage": lambda path: path.write_bytes(b"\xff\x00garbage" * 20),
    "nothing": lambda path: path.write_bytes(b""),
    "other": lambda path: path.write_text("[]" if path.name != "parts.json" else "{}"),
}
MODELS = ["word", "trigram", "word-int8", "word+trigram", "lstm", "blstm-average-max", "word,lstm", "plstm"]
# One of each way to read files; the others are slow tests.
DAMAGED = [
    name if name in ("trigram", "word,lstm", "plstm") else pytest.param(name, marks=pytest.mark.slow)
    for name in MODELS
]
# Without these the model is what it was; modules.json has a test of its own.
OPTIONAL = ("average_config.json", "tokenizer_config.json", "config_sentence_transformers.json")


def files_of(folder):
    paths = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in paths if path.suffix in (".json", ".safetensors") and path.name != "modules.json"]


@pytest.mark.parametrize("how", sorted(DAMAGES))
@pytest.mark.parametrize("name", DAMAGED)
def test_every_damaged_file_is_named(saved, tmp_path, name, how):
    files = files_of(saved / name)
    assert len(files) >= 3
    folder = shutil.copytree(saved / name, tmp_path / "model")
    for file in files:
        whole = (folder / file).read_bytes()
        DAMAGES[how](folder / file)
        with pytest.raises(InputError) as caught:
            load(folder)
        assert str(caught.value).startswith(f"model: {folder / file} is "), (file, str(caught.value))
        assert str(caught.value).endswith("; put a whole copy of the model in its place")
        assert "\n" not in str(caught.value)
        (folder / file).write_bytes(whole)


@pytest.mark.parametrize("name", DAMAGED)
def test_every_missing_file_is_named(saved, tmp_path, name):
    for file in files_of(saved / name):
        folder = tmp_path / str(file).replace("/", "-")
        shutil.copytree(saved / name, folder)
        (folder / file).unlink()
        if file.name in OPTIONAL:
            load(folder)
            continue
        with refused():
            load(folder)


def test_whole_files_that_do_not_fit(saved, tmp_path):
    folder = shutil.copytree(saved / "word,lstm", tmp_path / "model")
    part = folder / "0_0_WordEmbedding"
    save_file({"embedding.weight": torch.zeros(3, 3)}, part / "model.safetensors")
    with refused():
        load(folder)
    folder = shutil.copytree(saved / "lstm", tmp_path / "lstm")
    entries = json.loads((folder / "modules.json").read_text())
    config = folder / entries[1]["path"] / "lstm_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "hidden_dim": 9}))
    with refused():
        load(folder)


def test_files_of_two_models(saved, tmp_path):
    folder = shutil.copytree(saved / "lstm", tmp_path / "rows")
    rows = load_file(folder / "model.safetensors")["emb_layer.weight"]
    save_file({"emb_layer.weight": rows[:3].clone()}, folder / "model.safetensors")
    with refused():
        load(folder)
    folder = shutil.copytree(saved / "lstm", tmp_path / "width")
    save_file({"emb_layer.weight": rows[:, :1].clone()}, folder / "model.safetensors")
    with refused():
        load(folder)


@pytest.mark.parametrize("name", ["word", "lstm"])
def test_a_tokenizer_without_its_unknown_word(saved, tmp_path, name):
    folder = shutil.copytree(saved / name, tmp_path / "model")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["unk_token"] = "other"
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with refused():
        load(folder)


def test_modules_that_are_not_the_first(saved, tmp_path):
    folder = shutil.copytree(saved / "lstm", tmp_path / "model")
    entries = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(entries[1:]))
    with refused():
        load(folder)


@pytest.mark.slow
def test_commands_print_one_sentence(saved, tmp_path):
    folder = shutil.copytree(saved / "word", tmp_path / "model")
    DAMAGES["half"](folder / "tokenizer.json")
    (tmp_path / "sts.tsv").write_text("3.0\ta\tb\n1.0\tc\td\n")
    out = str(tmp_path / "out")
    for command in (
        ["evaluate", "sts", str(folder), "--data", str(tmp_path / "sts.tsv")],
        ["train", "--init-from", str(folder), "--data", str(tmp_path / "pairs.parquet"), "--out", out],
    ):
        if command[0] == "train":
            from tests.training.toys import synonyms, write_data

            write_data(tmp_path / "pairs.parquet", synonyms(20))
        done = subprocess.run([sys.executable, "-m", "paranmt_hf.cli", *command], capture_output=True, text=True)
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
        line = done.stderr.strip().split("\n")[-1]
        assert f"{folder / 'tokenizer.json'} is damaged" in line
