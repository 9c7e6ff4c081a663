"""The common commands on a system that has nothing of POSIX; see `sitecustomize.py`."""

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
    assert not [path.name for path in folder.iterdir() if path.name.endswith((".work", ".gone", ".tmp"))]
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


def test_import_select_and_search(tmp_path):
    out = check(tmp_path, "quick").decode("utf8")
    assert "žluťoučký" in out
    assert (tmp_path / "selected" / "build.json").is_file()


@pytest.mark.slow
def test_common_commands(tmp_path):
    check(tmp_path, "all")
    assert (tmp_path / "results.json").is_file() and (tmp_path / "encoder" / "modules.json").is_file()
    for file in tmp_path.rglob("*.json"):
        assert b"\r\n" not in file.read_bytes() and b"\\\\" not in file.read_bytes()
