"""The skill for coding agents: its header, its length, and its smoke test, which runs as it stands."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from paranmt_hf.cli import find_command
from tests.cli.test_documented_commands import BLOCK, in_blocks, in_sentences

ROOT = Path(__file__).parents[2]
SKILL = ROOT / "skills" / "paranmt" / "SKILL.md"
TEXT = SKILL.read_text(encoding="utf8")


def test_header():
    header = yaml.safe_load(TEXT.split("---\n")[1])
    assert set(header) == {"name", "description"} and header["name"] == SKILL.parent.name
    assert 100 < len(header["description"]) <= 1024
    assert len(TEXT.splitlines()) <= 150


def test_commands_exist():
    for words in [*in_blocks(TEXT), *in_sentences(TEXT)]:
        if words[0] not in ("COMMAND", "--version"):
            assert find_command(words)[0] is not None, shlex.join(words)
    assert len(list(in_blocks(TEXT))) >= 30


@pytest.mark.slow
def test_smoke_test_runs(tmp_path):
    (block,) = (block for block in BLOCK.findall(TEXT) if "SAMPLE=" in block)
    # The command and the Python of this process, whatever else is installed.
    (tmp_path / "bin").mkdir()
    for name, module in (("python", ()), ("paranmt", ("-m", "paranmt_hf.cli"))):
        path = tmp_path / "bin" / name
        path.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, *module])} "$@"\n')
        path.chmod(0o755)
    variables = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    work = tmp_path / "work"
    work.mkdir()
    options = {"capture_output": True, "text": True, "cwd": work, "env": {**os.environ, **variables}}
    done = subprocess.run(["bash", "-euc", block], timeout=1200, **options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "dry run: nothing was sent"
    assert json.loads((work / "smoke" / "corpus" / "build.json").read_text())["configs"]["default"]["rows"] == 475
    assert json.loads((work / "smoke" / "word" / "training.json").read_text())["dimension"] == 50
    results = json.loads((work / "smoke" / "results.json").read_text())
    scores = [each["tables"]["Set"][0]["values"]["pearson"] for each in results]
    assert len(scores) == 2 and 0.2 < scores[0] < scores[1]
