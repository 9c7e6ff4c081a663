"""Damaged models: one sentence that names the model, whatever was done to which file."""

import shutil
import subprocess
import sys

import pytest
from safetensors.torch import load_file, save_file

from paranmt_hf import InputError, StaticEncoder, load
from tests.refused import refused

DAMAGES = {
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "garbage": lambda path: path.write_bytes(b"\xff\x00garbage" * 20),
    "nothing": lambda path: path.write_bytes(b""),
    "missing": lambda path: path.unlink(),
}
MODELS = [
    "word",
    "trigram",
    "word-int8",
    "word+trigram",
    "lstm",
    "blstm-average-max",
    "word,lstm",
    "plstm",
    "sent2vec",
]
# One of each way to read files; the others are slow tests.
DAMAGED = [name if name in ("trigram", "word,lstm") else pytest.param(name, marks=pytest.mark.slow) for name in MODELS]
# Without these the model is what it was.
OPTIONAL = ("average_config.json", "tokenizer_config.json", "config_sentence_transformers.json")


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", DAMAGED)
def test_every_damaged_file_is_refused(saved, tmp_path, name, how):
    folder = shutil.copytree(saved / name, tmp_path / "model")
    files = [path for path in folder.rglob("*") if path.suffix in (".json", ".safetensors")]
    assert len(files) >= 4
    for file in files:
        if how == "missing" and file.name in OPTIONAL and (name, file.name) != ("sent2vec", "average_config.json"):
            continue
        whole = file.read_bytes()
        DAMAGES[how](file)
        with pytest.raises(InputError) as caught:
            load(folder)
        assert caught.value.path in (folder, file, None), file
        assert "model" in str(caught.value) and "\n" not in str(caught.value)
        if name in ("trigram", "word+trigram", "sent2vec") and file.name not in OPTIONAL:
            with pytest.raises(InputError):
                StaticEncoder.from_pretrained(folder)
        file.write_bytes(whole)
    load(folder)


@pytest.mark.parametrize("rows", [slice(0, 3), (slice(None), slice(0, 1))], ids=["fewer rows", "fewer dimensions"])
@pytest.mark.parametrize("name", ["lstm", "trigram", "word"])
def test_files_of_two_models_are_refused(saved, tmp_path, name, rows):
    if name != "lstm" and rows != slice(0, 3):
        pytest.skip("another width is another model")
    folder = shutil.copytree(saved / name, tmp_path / "model")
    path = folder / "model.safetensors"
    ((key, table),) = load_file(path).items()
    save_file({key: table[rows].clone()}, path)
    with refused(path=folder):
        load(folder)


@pytest.mark.slow
def test_commands_print_one_sentence(saved, tmp_path):
    folder = shutil.copytree(saved / "word", tmp_path / "model")
    DAMAGES["half"](folder / "tokenizer.json")
    (tmp_path / "sts.tsv").write_text("3.0\ta\tb\n1.0\tc\td\n")
    arguments = ["evaluate", "sts", str(folder), "--data", str(tmp_path / "sts.tsv")]
    done = subprocess.run([sys.executable, "-m", "paranmt_hf.cli", *arguments], capture_output=True, text=True)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert str(folder) in done.stderr.strip().split("\n")[-1]
