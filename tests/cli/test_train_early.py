"""Mistakes in the options and names of `paranmt train` are told before torch is imported."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

# Each command of a mistake, and what is said of it.
MISTAKES = {
    "--data none.parquet": "none.parquet: there is no such file",
    "--data models/wort": "'models/word'",
    "--data pairs.txt --model wort": "model must be one to three different ones of word",
    "--data pairs.txt --batch-size 0": "--batch-size must be from 1 to",
    "--data pairs.txt --vectors none": "none: there is no such file",
    "--data none.parquet --vectors text.txt": "text.txt",
    "--data pairs.txt --init-from none": "no model 'none': expected a folder that exists",
    "--data pairs.txt --teacher ./models/wort": "'models/word'",
    "--data none.parquet --teacher models/wort": "'models/word'",
    "--data pairs.txt --development none": "there is no development set none",
    "--data pairs.txt --exclude none": "there is no file or folder none",
    "--text text.txt": "--text has sentences without paraphrases",
    "--text none.txt --teacher small": "none.txt: there is no such file",
    "--text models/wort --teacher small": "'models/word'",
    "--teacher small": "there is nothing to train on",
    "--recipe trigram --data none.parquet --teacher small": "none.parquet: there is no such file",
    "--data pairs.txt --out full": "full exists and was not made by this command",
}
PROGRAM = """
import sys
from contextlib import suppress
from paranmt_hf.cli import main

for line in sys.stdin.read().splitlines():
    with suppress(SystemExit):
        main(["train", "--out", "new", *line.split()])
    heavy = {"torch", "transformers", "sentence_transformers", "sklearn"} & sys.modules.keys()
    print(line, sorted(heavy), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What is said of each mistake, and which heavy packages are imported by then."""
    folder = tmp_path_factory.mktemp("early")
    (folder / "models" / "word").mkdir(parents=True)
    (folder / "full").mkdir()
    for name, line in {"pairs.txt": "big large\n", "text.txt": "a sentence\n", "full/other": "x\n"}.items():
        (folder / name).write_text(line)
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="\n".join(MISTAKES),
        cwd=folder,
        text=True,
        capture_output=True,
        check=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert sorted(path.name for path in folder.iterdir()) == ["full", "models", "pairs.txt", "text.txt"]
    return result.stderr


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes_are_told_before_torch_is_imported(told, line):
    said, _, after = told.partition(f"\n{line} [")
    assert after.startswith("]\n"), told
    assert MISTAKES[line] in said.splitlines()[-1]
