"""The recipes run, on data of the shape that they are for."""

import ast
import gzip
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from packaging.requirements import Requirement

from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.text.word_vectors import read_vectors

SCRIPTS = Path(__file__).parent.parent / "dataset_scripts"
SAMPLE = [(ASSETS / "sample" / f"sample.{side}").read_text(encoding="utf8").split("\n")[:20] for side in ("cs", "en")]


def run(script, *arguments, folder):
    command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.slow
def test_czeng(tmp_path):
    lines = [f"id{n}\t0.5\t0.6\t0.7\t{cs}\t{en}\n" for n, (cs, en) in enumerate(zip(*SAMPLE, strict=True))]
    (tmp_path / "czeng.gz").write_bytes(gzip.compress("".join(lines).encode()))
    shutil.copytree(ASSETS / "captions-cs-en", tmp_path / "translator")
    run("paranmt50m_czeng.py", "czeng.gz", "--translator", "translator", "--workers", 1, folder=tmp_path)
    table = pq.read_table(tmp_path / "paranmt50m" / "data")
    assert table["reference"].to_pylist() == SAMPLE[1]
    assert "source" not in table.column_names


def test_what_the_pairs_of_systems_are_made_of_is_told(tmp_path):
    pq.write_table(pa.table({"reference": ["a"]}), tmp_path / "systems.parquet")
    command = [sys.executable, str(SCRIPTS / "pairs_from_systems.py"), "systems.parquet", "none", "--out", "out"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.startswith("systems.parquet: expected Parquet with the columns reference, translation; ")
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_open(tmp_path):
    pairs = [{"cs": cs, "en": en} for cs, en in zip(*SAMPLE, strict=True)]
    (tmp_path / "tatoeba").mkdir()
    pq.write_table(pa.table({"translation": pairs}), tmp_path / "tatoeba" / "train.parquet")
    shutil.copytree(ASSETS / "captions-cs-en", tmp_path / "translator")
    arguments = ["--dataset", "tatoeba", "--translator", "translator", "--keep-source", "--workers", 1]
    run("paranmt50m_open.py", "tatoeba", "--out", "open", *arguments, folder=tmp_path)
    table = pq.read_table(tmp_path / "open" / "data")
    assert table["source"].to_pylist() == SAMPLE[0]
    assert "license: cc-by-2.0" in (tmp_path / "open" / "README.md").read_text()


@pytest.mark.slow
def test_recipe_of_the_embedded_translator(tmp_path):
    pytest.importorskip("sacrebleu")
    for part in ("train", "val"):
        for side, name in zip(SAMPLE, ("cs", "en"), strict=True):
            (tmp_path / f"{part}.{name}").write_text("\n".join(side) + "\n", encoding="utf8")
    settings = {
        "steps": 4,
        "pieces": 200,
        "width": 16,
        "heads": 2,
        "feed-forward": 32,
        "evaluate-every": 2,
        "warmup": 2,
    }
    options = [part for name, value in settings.items() for part in (f"--{name}", value)]
    run("train_captions_translator.py", "--data", ".", "--out", "one", *options, folder=tmp_path)
    run("train_captions_translator.py", "--data", ".", "--out", "two", *options, folder=tmp_path)
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two, "the same seed gives the same weights"
    from paranmt_hf.corpus.translation.engines import load_translator
    from paranmt_hf.corpus.translation.translator import TranslatorConfig

    # No sense is to be expected of four steps; the model must load and search.
    result = load_translator(TranslatorConfig(name=str(tmp_path / "one"), beam=2, max_target_tokens=8)).translate(
        SAMPLE[0][:2]
    )
    assert len(result.texts) == 2


def test_vectors_with_wordllama(tmp_path):
    pytest.importorskip("wordllama")
    (tmp_path / "own.txt").write_text("a 0 0 1\ndog 1 1 1\ncat 2 2 1\nruns 3 0 1\n")
    run("vectors_with_wordllama.py", "own.txt", "--dimension", 3, "--out", "joined.txt", folder=tmp_path)
    vectors = read_vectors(tmp_path / "joined.txt")
    assert vectors.words == ["a", "dog", "cat", "runs"]
    assert vectors.matrix.shape == (4, 3)
    # Lengths of 1, as the root of their mean square; centred.
    assert np.square(vectors.matrix).sum(axis=1).mean() == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(vectors.matrix.mean(axis=0), 0, atol=1e-3)


def test_text_that_anybody_may_use(tmp_path):
    wordnet, voices, speeches, book = (tmp_path / name for name in ("wordnet", "voices", "speeches", "book"))
    for folder in (wordnet, voices, speeches, book / "europe"):
        folder.mkdir(parents=True)
    for part in ("verb", "adj", "adv"):
        (wordnet / f"data.{part}").write_text("  1 licence\n", encoding="utf8")
    gloss = '1 06 n 02 big_cat 0 lion 0 002 @ 2 n 0000 | a cat; of Africa; "the lion slept all day"; "a lion"'
    (wordnet / "data.noun").write_text(
        f"  1 licence | of use\n{gloss}\n2 06 n 01 dog 0 000 | an animal that barks\n", encoding="utf8"
    )
    (voices / "one.txt").write_text("Two words\nalone\nTwo words\n", encoding="utf8")
    (speeches / "a.txt").write_text("Title here\n\nWe met. You, of the\nU.S. Senate, left.\n", encoding="latin-1")
    (book / "europe" / "ez.json").write_text(
        '{"a": {"text": "It lies in one valley. Area 15 km"}, "b": ["<b>no</b> coast at all"]}'
    )
    (tmp_path / "words").write_text("dog\n\nlion 0.1 0.2\n", encoding="utf8")
    (tmp_path / "sts" / "STS13-en-test").mkdir(parents=True)
    (tmp_path / "sts" / "STS13-en-test" / "STS.input.OnWN.txt").write_text("an animal that barks\ta dog\n")
    (tmp_path / "sts" / "STS13-en-test" / "STS.gs.OnWN.txt").write_text("3\n")
    sources = [
        "--exclude",
        "sts",
        "--wordnet",
        wordnet,
        "--common-voice",
        voices,
        "--addresses",
        speeches,
        "--factbook",
        book,
    ]
    run("free_text.py", *sources, "--words", "words", "--longest", 6, "--out", "free", folder=tmp_path)
    assert {path.stem: path.read_text(encoding="utf8").splitlines() for path in (tmp_path / "free").iterdir()} == {
        "definitions": ["big cat, lion: a cat; of"],
        "examples": ["the lion slept all day"],
        "common-voice": ["Two words"],
        "addresses": ["Title here", "We met.", "You, of the U.S. Senate, left."],
        "factbook": ["It lies in one valley.", "no coast at all"],
    }


def test_everyday_sentences_are_drawn_with_a_seed(tmp_path):
    for name, count in (("a", 500), ("b", 300)):
        run("everyday_sentences.py", "--count", count, "--seed", 3, "--out", name, folder=tmp_path)
    first, second = ((tmp_path / name).read_text(encoding="utf8").splitlines() for name in "ab")
    assert first[:300] == second
    assert len(set(first)) == 500
    # Every name of a list has been replaced.
    assert not any("{" in sentence or "|" in sentence for sentence in first)


HEADER = re.compile(r"\A# /// script\n((?:#(?: .*)?\n)+?)# ///\n")
PROJECT = tomllib.loads((SCRIPTS.parent / "pyproject.toml").read_text(encoding="utf8"))["project"]


def imported(text):
    """Packages that a program imports, wherever in it, without those of Python."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        names = [item.name for item in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        found |= {name.partition(".")[0] for name in names}
    return found - set(sys.stdlib_module_names)


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.py")), ids=lambda path: path.stem)
def test_headers_name_what_is_imported(script):
    """What `uv run` installs before it starts a recipe (PEP 723)."""
    text = script.read_text(encoding="utf8")
    header = tomllib.loads(re.sub(r"^# ?", "", HEADER.match(text)[1], flags=re.MULTILINE))
    assert set(header) == {"requires-python", "dependencies"}
    assert header["requires-python"] == PROJECT["requires-python"]
    needed = [Requirement(text) for text in header["dependencies"]]
    assert [requirement.name for requirement in needed] == sorted(requirement.name for requirement in needed)
    assert {requirement.name.replace("-", "_") for requirement in needed} == imported(text)
    bounds = [
        *PROJECT["dependencies"],
        *(text for extra in PROJECT["optional-dependencies"].values() for text in extra),
    ]
    known = {Requirement(text).name: Requirement(text).specifier for text in bounds}
    for requirement in needed:
        if requirement.name == PROJECT["name"]:
            assert not requirement.specifier
        elif requirement.name in known:
            assert requirement.specifier == known[requirement.name]
        else:
            assert [clause.operator for clause in requirement.specifier] == ["=="], "what pyproject lacks is pinned"
