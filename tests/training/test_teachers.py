"""Teachers that are functions of files and modules, and prompts."""

import sys

import numpy as np
import pytest

from paranmt_hf.cli import main
from paranmt_hf.distillation.config import DistillConfig
from paranmt_hf.distillation.distill import distill
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.record import TrainingRecord
from paranmt_hf.training.teachers import check_teacher, find_teachers
from paranmt_hf.training.train import train
from tests.refused import refused

# A teacher that counts letters, and writes down what it reads.
CODE = """
import numpy as np

def letters(texts):
    with open({read!r}, "a", encoding="utf8") as file:
        file.writelines(f"{{text}}\\n" for text in texts)
    return np.array([[text.count(letter) + 0.25 for letter in "abcdefgh"] for text in texts], np.float32)

def flat(texts):
    return np.zeros(len(texts))

def whole(texts):
    return np.zeros((len(texts), 3), np.int64)

def endless(texts):
    return np.full((len(texts), 3), np.inf)

def raises(texts):
    raise RuntimeError("the server does not answer")

def ragged(texts):
    return [[1.0] * (1 + index % 2) for index, _ in enumerate(texts)]

calls = []
def wider(texts):
    calls.append(1)
    return np.ones((len(texts), len(calls)))

number = 3
"""
WORDS = ["ab", "abb", "cad", "fee", "head", "bag", "chef", "deaf", "gab", "each"]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "own teachers.py"
    path.write_text(CODE.format(read=str(tmp_path / "read.txt")), encoding="utf8")
    return path


@pytest.fixture
def text(tmp_path):
    generator = np.random.default_rng(1)
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{' '.join(generator.choice(WORDS, 6))}\n" for _ in range(600)), encoding="utf8")
    return path


def test_a_function_of_a_file_teaches(tmp_path, file, text):
    config = DistillConfig(epochs=30, teacher_prompt="ask: ", dimension=8)
    found = distill(f"{file}:letters", out=tmp_path / "out", text=text, config=config)
    sentences = set(text.read_text().splitlines())
    # It reads each sentence and each word once, after the prompt. The width of its vectors is found with one text.
    read = (tmp_path / "read.txt").read_text().splitlines()
    assert sorted(read) == sorted(f"ask: {each}" for each in [*sentences, *WORDS, "a"])
    assert found.record.likeness["encoder"] > max(0.7, found.record.likeness["start"])
    assert TrainingRecord.read(found.folder).inputs["teacher"] == "own teachers.py:letters"
    command = (
        "paranmt distill 'own teachers.py:letters' --text text.txt --dimension 8 --epochs 30 --teacher-prompt 'ask: '"
    )
    assert found.record.command == f"{command} --out FOLDER"
    # The same function is known again, another one is not.
    assert not distill(f"{file}:letters", out=tmp_path / "out", text=text, config=config).fresh
    file.write_text(file.read_text().replace("0.25", "0.5"))
    with refused("out", path=tmp_path / "out"):
        distill(f"{file}:letters", out=tmp_path / "out", text=text, config=config)


def test_several_teachers_of_training(tmp_path, file, text, monkeypatch):
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "other_teacher.py").write_text(
        "import numpy as np\ndef ends(texts):\n    return np.array([[len(t), ord(t[-1]), 1.0] for t in texts])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    config = TrainConfig(
        teacher=(f"{file}:letters", "other_teacher:ends"), teacher_prompt=("", "x"), epochs=1, batch_size=20
    )
    trained = train(None, tmp_path / "out", text=[text], config=config)
    assert trained.record.inputs["teacher"] == "own teachers.py:letters, other_teacher:ends"
    first, second = trained.record.settings.training.teacher
    assert first.startswith("sha256:") and first.endswith(":letters") and second.endswith(":ends")
    sys.modules.pop("other_teacher")


@pytest.mark.parametrize("name", ["missing", "number", "flat", "whole", "endless", "raises", "ragged"])
def test_what_is_no_teacher(tmp_path, file, text, name):
    with refused("teacher"):
        distill(f"{file}:{name}", out=tmp_path / "out", text=text, config=DistillConfig(epochs=1))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["missing.py:encode", "no_such_module.anywhere:encode", "sys:exit", "__main__:f"])
def test_a_place_that_is_missing(name):
    with refused("teacher"):
        check_teacher(name)


def test_what_a_function_raises_is_said_with_its_line(file):
    (teacher,) = find_teachers([f"{file}:raises"], None)
    encode, _ = teacher.open(None, "float32")
    with refused("teacher") as caught:
        encode(["a"])
    line = file.read_text().splitlines().index('    raise RuntimeError("the server does not answer")') + 1
    assert f"line {line} of {file}" in str(caught.value)
    (teacher,) = find_teachers([f"{file}:wider"], None)
    encode, _ = teacher.open(None, "float32")
    with refused("teacher"):
        encode(["a"] * 1001)
    file.write_text("def broken(:\n")
    (teacher,) = find_teachers([f"{file}:broken"], None)
    with refused("teacher"):
        teacher.open(None, "float32")


def test_a_file_without_the_name_of_its_function(file):
    with refused("teacher"):
        check_teacher(str(file))


def test_a_file_is_a_module_that_runs_once(tmp_path):
    (tmp_path / "beside_it.py").write_text("import numpy as np\nrun = []\n")
    (tmp_path / "own.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nimport beside_it\n"
        "@dataclass\nclass Model:\n    width: int\n"
        "beside_it.run.append(1)\n"
        "def encode(texts):\n    return beside_it.np.full((len(texts), Model(len(beside_it.run)).width), 1.5)\n"
    )
    (teacher,) = find_teachers([f"{tmp_path / 'own.py'}:encode"], None)
    for _ in range(2):
        encode, _ = teacher.open(None, "float32")
        # A function gets at most a thousand texts at once.
        assert encode(["a"] * 2500).shape == (2500, 1)


def test_a_file_of_options_runs_no_code_without_consent(tmp_path, file, text, capsys):
    (tmp_path / "options.yaml").write_text(f"teacher: {file}:letters\ntext: {text}\nepochs: 1\n")
    (tmp_path / "steps.yaml").write_text(
        f"steps:\n  one:\n    command: distill\n    teacher: {file}:letters\n    text: {text}\n"
    )
    words = ["--out", str(tmp_path / "out")]
    assert main(["distill", "--config", str(tmp_path / "options.yaml"), *words]) == 1
    assert main(["run", str(tmp_path / "steps.yaml")]) == 1
    assert not (tmp_path / "read.txt").exists() and "Python code" in capsys.readouterr().err
    typed = ["distill", f"{file}:letters", "--config", str(tmp_path / "options.yaml"), *words]
    assert main(typed) == 0 and (tmp_path / "read.txt").exists()


def test_identity_has_file_name_and_prompt(file):
    names, prompts = [f"{file}:letters", f"{file}:flat"], ["", "query: "]
    plain, prompted = find_teachers([names[0]] * 2, prompts)
    other, _ = find_teachers(names[::-1], None)
    assert len({plain.identity, prompted.identity, other.identity}) == 3
    assert plain == find_teachers([names[0]], None)[0]
    with refused("teacher_prompt"):
        find_teachers(names, ["query: "])
