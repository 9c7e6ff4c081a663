"""The common commands on a system that has nothing of POSIX; see `sitecustomize.py`."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at open files in /proc")


def run(folder, *words, **environment):
    paths = [str(HERE), str(HERE.parents[1]), os.environ["PYTHONPATH"]]
    others = {"PARANMT_TEST_ROOT": str(folder), "PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "cp1252"}
    others |= {"PYTHONWARNDEFAULTENCODING": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, env=os.environ | others | environment, capture_output=True)


def check(folder, which):
    done = run(folder, HERE / "commands.py", which)
    assert done.returncode == 0, done.stderr.decode("cp1252", "replace")[-3000:]
    assert not [path.name for path in folder.iterdir() if path.name.endswith((".work", ".tmp"))]
    return done.stdout


def test_the_system_is_another(tmp_path):
    code = "import os, sys; exec('import os, sys, fcntl', {'__name__': 'paranmt_hf.toy'})"
    assert b"ModuleNotFoundError" in run(tmp_path, "-c", code).stderr
    code = "names = {'__name__': 'paranmt_hf.toy'}; exec('import os, sys', names); os = names['os']\n"
    code += "print(os.name, names['sys'].platform, hasattr(os, 'fork'), hasattr(os, 'getpid'))"
    assert run(tmp_path, "-c", code).stdout.split() == [b"nt", b"win32", b"False", b"True"]
    (tmp_path / "folder").mkdir()
    code = "import os; file = open('folder/file', 'w'); os.rename('folder', 'other')"
    assert b"PermissionError" in run(tmp_path, "-c", code).stderr
    assert b"Invalid argument" in run(tmp_path, "-c", "open('a:b', 'w')").stderr


@pytest.mark.slow
def test_import(tmp_path):
    check(tmp_path, "quick")
    assert (tmp_path / "corpus" / "build.json").is_file()


@pytest.mark.slow
def test_text_is_in_the_same_bytes_everywhere():
    """Files are written in UTF-8 with line ends of one character, whatever the system's are."""
    calls = [
        (path.name, node)
        for path in (HERE.parents[1] / "paranmt_hf").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "write_text"
    ]
    assert len(calls) > 10
    for name, call in calls:
        assert {keyword.arg for keyword in call.keywords} == {"encoding", "newline"}, (name, call.lineno)


@pytest.mark.slow
def test_common_commands(tmp_path):
    assert "žluťoučký" in check(tmp_path, "all").decode("utf8")
    assert (tmp_path / "results.json").is_file() and (tmp_path / "encoder" / "modules.json").is_file()
