"""The programs of docs/examples and the notebooks of docs/notebooks run as a user runs them, without arguments."""

import ast
import importlib.util
import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from datasets import Dataset

from paranmt_hf.cli.pipeline import run_pipeline
from paranmt_hf.hub.repository import locate

DOCS = Path(__file__).parents[1] / "docs"
PROGRAMS = sorted((DOCS / "examples").glob("*.py"))
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
PAGE = (DOCS / "examples" / "README.md").read_text(encoding="utf8")
# Programs that train or translate.
SLOW = ["augment_labelled_data", "corpus_from_bitext", "hard_negatives", "lexicon", "train_on_pairs"]
SLOW += ["train_further", "train_with_teacher"]
# A result that each program prints, as a pattern of numbers and sentences of the sample.
PRINTED = {
    "augment_labelled_data": r"0\.\d\d  dog .*\bdog\b",
    "classifier": r"0\.\d\d  delivery +My package",
    "corpus_from_bitext": r"\b[34]\d\d of 475 pairs",
    "deduplicate": r"A man plays the guitar\..*A man is playing a guitar\.",
    "distil_domain": r"dog: .*\bdogs\b",
    "distil_encoder": r"0\.\d\d  .*\b[Cc]hildren\b",
    "encode_and_search": r"0\.\d\d  Two small children are playing with a ball",
    "hard_negatives": r"negative_3 +\w",
    "langchain_store": r"0\.\d\d  Two small children are playing with a ball",
    "lexicon": r"large +big +[1-9]",
    "near_duplicates": r"0\.9\d  \d+: A man is playing a guitar\..*\d+: A man plays the guitar\.",
    "probabilities": r"0\.9\d  0\.\d\d  A man is playing a guitar\.",
    "serve_and_ask": r"0\.\d\d  Two small children are playing with a ball",
    "train_further": r"(?s)before: 0\.\d+ .*after:  0\.[89]",
    "train_on_pairs": r"after: [89]\d\.\d%",
    "train_with_teacher": r"taught: 1\.00 .* 0\.[6-9]\d  Someone plays the guitar\.",
}


def marked(path, slow):
    return pytest.param(path, marks=[pytest.mark.slow] if slow else [], id=path.stem)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all, in which the corpus of the sample is kept."""
    return tmp_path_factory.mktemp("examples")


def absent(tree):
    """The first package that a program imports and that is not installed; None if all are."""
    names = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    packages = {name.partition(".")[0] for name in names}
    return next((name for name in sorted(packages) if importlib.util.find_spec(name) is None), None)


@pytest.mark.parametrize("path", [marked(path, path.stem in SLOW) for path in PROGRAMS])
def test_program(path, folder, tmp_path, monkeypatch, capsys):
    text, corpus = path.read_text(encoding="utf8"), Path("examples", "paraphrases")
    tree = ast.parse(text)
    if package := absent(tree):
        pytest.skip(f"needs {package}, which is no part of this package")
    # Each in an empty folder, but for the corpus that one has built.
    if str(corpus) in text and (folder / corpus).exists():
        shutil.copytree(folder / corpus, tmp_path / corpus)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    runpy.run_path(str(path), run_name="__main__")
    assert re.search(PRINTED[path.stem], capsys.readouterr().out)
    if (tmp_path / corpus).exists() and not (folder / corpus).exists():
        shutil.copytree(tmp_path / corpus, folder / corpus)


def test_near_duplicates_of_a_file(tmp_path, monkeypatch):
    path = next(path for path in PROGRAMS if path.stem == "near_duplicates")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(path), "mine.parquet", "text"])
    with pytest.raises(FileNotFoundError):
        runpy.run_path(str(path))
    Dataset.from_dict({"text": ["A man runs.", "A man runs!", "It rains."]}).to_parquet("mine.parquet")
    assert runpy.run_path(str(path))["mined"].record.pairs == 1


def test_programs_are_short_and_named():
    assert {path.stem for path in PROGRAMS} == PRINTED.keys()
    for path in PROGRAMS:
        text = path.read_text(encoding="utf8")
        assert len(text.splitlines()) <= 45, path.name
        described = ast.get_docstring(ast.parse(text))
        assert f"Run:   python docs/examples/{path.name}" in described
        assert "Needs: " in described
        assert f"[{path.name}]({path.name})" in PAGE
    for path in NOTEBOOKS:
        assert f"[{path.name}](../notebooks/{path.name})" in PAGE


def test_no_two_programs_write_one_file():
    """All write into one folder, in which only the corpus of the sample is the same for several."""
    owner = {}
    for path in PROGRAMS:
        for name in set(re.findall(r'"examples/([\w.-]+)"', path.read_text(encoding="utf8"))) - {"paraphrases"}:
            assert owner.setdefault(name, path.name) == path.name, f"examples/{name}"
    assert len(owner) > 8


@pytest.mark.parametrize("path", [marked(path, True) for path in NOTEBOOKS])
def test_notebook(path, folder, monkeypatch):
    pytest.importorskip("matplotlib")
    pytest.importorskip("ipykernel")
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2


@pytest.mark.slow
def test_german_pipeline(shared_data, tmp_path):
    """All steps on captions, with a small translator, and the carried encoder as teacher."""
    pytest.importorskip("sacrebleu")
    for language in ("de", "en"):
        lines = (shared_data / "bitext" / "multi30k" / f"train.{language}").read_text(encoding="utf8").split("\n")
        # The translator learns the lines of the corpus by heart.
        parts = {"half1": lines[:3000], "half2": lines[3000:3200], "train": lines[3000:3200], "val": lines[3000:3020]}
        for name, part in parts.items():
            (tmp_path / f"{name}.{language}").write_text("".join(f"{line}\n" for line in part), encoding="utf8")
    shutil.copytree(locate("base").folder, tmp_path / "all-MiniLM-L6-v2")
    script = DOCS.parent / "dataset_scripts" / "train_captions_translator.py"
    options = "--source en --target de --steps 200 --warmup 30 --width 64 --heads 4 --feed-forward 128 --pieces 800"
    command = [sys.executable, str(script), "--data", str(tmp_path), *options.split(), "--dropout", "0"]
    subprocess.run([*command, "--out", str(tmp_path / "captions-en-de")], check=True, capture_output=True)
    shutil.copy(DOCS / "examples" / "german.yaml", tmp_path)
    list(run_pipeline(tmp_path / "german.yaml"))
    likeness = json.loads((tmp_path / "scorer" / "distillation.json").read_text())["likeness"]
    assert likeness["encoder"] > likeness["start"] + 0.1
    assert pq.read_table(tmp_path / "corpus" / "data").num_rows == 200
    for name in ("scorer", "corpus", "encoder"):
        assert "language:\n- de\n" in (tmp_path / name / "README.md").read_text(encoding="utf8")
