"""The blocks of README.md run word for word, each on what those before it made, or say what they need."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def needs(code):
    """What a block says it needs: extras, files or a server that are not made by the blocks before it."""
    return code.startswith("# needs: ")


def test_a_screen_for_each_reader():
    sections = {part.split("\n", 1)[0]: part for part in README.split("\n## ")[1:]}
    assert list(sections)[:3] == ["Encode sentences", "Make a corpus", "Train an encoder"]
    assert len(README.splitlines()) <= 170
    assert all(len(part.splitlines()) <= 50 for part in sections.values())


def test_results_have_places_of_their_own():
    places = re.findall(r"--out (\S+)", "".join(code for _, code in BLOCKS))
    assert len(places) == len(set(places)) >= 10


@pytest.mark.slow
def test_blocks_run(tmp_path):
    command = tmp_path / "bin" / "paranmt"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m paranmt_hf.cli "$@"\n')
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(tmp_path / "cache"),
    }
    ran = []
    for language, code in BLOCKS:
        if language == "python":
            program = [sys.executable, "-c", code]
        elif not needs(code) and "pytest" not in code:
            # The package is installed already.
            program = ["bash", "-ec", re.sub(r"^pip install .*\n", "", code, flags=re.MULTILINE)]
        else:
            continue
        done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{code}\n{done.stderr}"
        ran.append(code)
    assert len(ran) >= 6 and (tmp_path / "models" / "word-trigram" / "modules.json").is_file()
