"""The environment of docs/without-torch.md: its size, and that commands work there with the usual results."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from paranmt_hf import ReleaseConfig, StaticEncoder, import_pairs, same_meaning
from paranmt_hf.hub.repository import ASSETS

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"^```\n(.*?)^```", (ROOT / "docs" / "without-torch.md").read_text(encoding="utf8"), re.M | re.S)
SENTENCES = (ASSETS / "sample" / "sample.en").read_text(encoding="utf8").splitlines()
PAIRS = [line.split("\t")[1:] for line in (ASSETS / "sample" / "similarity.tsv").read_text().splitlines()]
PROGRAM = """
import sys
import numpy as np
from paranmt_hf import StaticEncoder
sentences = open("sentences.txt").read().splitlines()
for name in "small", "base", "multilingual":
    np.save(name, StaticEncoder.from_pretrained(name).encode(sentences * 30))
    np.save(f"{name}-known", StaticEncoder.from_pretrained(name).known_tokens(sentences))
assert not {"torch", "numba", "sentence_transformers"} & sys.modules.keys()
"""


def megabytes(folder):
    """The size of a folder on the disk, as `du -sm` has it."""
    return sum(path.lstat().st_blocks for path in folder.rglob("*")) * 512 / 2**20


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The environment, made as the page says from a copy of the project, as the variables of its processes."""
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "paranmt_hf", source / "paranmt_hf", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, source)
    variables = {**os.environ, "HF_HUB_OFFLINE": "1"}
    # Otherwise the processes would import the package from the tree of the tests.
    variables.pop("PYTHONPATH", None)
    with_pip = {**variables, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{variables['PATH']}"}
    subprocess.run(["bash", "-ec", BLOCKS[0]], cwd=source, env=with_pip, check=True)
    return {**variables, "PATH": f"{source / 'light' / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with the files that the page names."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "sentences.txt").write_text("".join(f"{line}\n" for line in [*SENTENCES, *SENTENCES[:7]]))
    (folder / "pairs.tsv").write_text("".join(f"{first}\t{second}\n" for first, second in PAIRS))
    return folder


def run(words, environment, work):
    return subprocess.run(words, cwd=work, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_commands_give_what_they_give_elsewhere(environment, work):
    (packages,) = (Path(environment["PATH"].split(os.pathsep)[0]).parent / "lib").glob("python3*/site-packages")
    assert not {path.name for path in packages.iterdir()} & {"torch", "numba", "transformers", "sentence_transformers"}
    for command in BLOCKS[1].splitlines()[1:-1]:
        done = run(["bash", "-c", command], environment, work)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        if "search query" in command:
            assert "guitar" in done.stdout
    assert len((work / "distinct.txt").read_text().splitlines()) <= len(SENTENCES)
    found = pq.read_table(work / "corpus" / "data").to_pydict()
    release = ReleaseConfig(license="unknown")
    made = import_pairs(work / "pairs.tsv", work / "elsewhere", made_by="machine", release=release)
    wanted = pq.read_table(made.folder / "data").to_pydict()
    assert {name: found[name] for name in wanted} == wanted
    meanings = [
        same_meaning(first, second) for first, second in zip(found["reference"], found["translation"], strict=True)
    ]
    assert [number > 0 for number in found["meaning_mismatch"]] == [bool(each.reasons) for each in meanings]
    done = run(["python", "-c", PROGRAM], environment, work)
    assert done.returncode == 0, done.stderr
    for name in ("small", "base", "multilingual"):
        encoder = StaticEncoder.from_pretrained(name)
        lines = (work / "sentences.txt").read_text().splitlines()
        assert np.load(work / f"{name}.npy").tobytes() == encoder.encode(lines * 30).tobytes()
        assert np.load(work / f"{name}-known.npy").tolist() == encoder.known_tokens(lines).tolist()
    # With the bytecode of what was imported.
    assert 150 < megabytes(packages) <= 250


@pytest.mark.slow
def test_load_names_what_it_lacks(environment, work):
    program = (
        "from paranmt_hf import InputError, load\ntry:\n    load()\nexcept InputError as error:\n    print(error)"
    )
    done = run(["python", "-c", program], environment, work)
    assert done.returncode == 0 and "sentence_transformers" in done.stdout, done.stderr


@pytest.mark.slow
def test_serve(environment, work):
    command = ["paranmt", *BLOCKS[1].splitlines()[-1].split()[1:], "--port", "0"]
    server = subprocess.Popen(command, cwd=work, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+", server.stderr.readline())[0]

        def ask(route, **question):
            data = json.dumps(question).encode()
            headers = {"Content-Type": "application/json"}
            return json.load(urllib.request.urlopen(urllib.request.Request(address + route, data, headers)))

        encoder = StaticEncoder.from_pretrained()
        assert ask("/embed", inputs=SENTENCES[:3], normalize=False) == pytest.approx(encoder.encode(SENTENCES[:3]))
        (judged,) = ask("/same-meaning", first=["The door is open."], second=["The door is closed."])
        assert not judged["same"] and judged["reasons"]
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["train", "--data", "pairs.tsv", "--out", "x"],
        ["stats", "pairs.tsv"],
        ["evaluate", "sts", "small", "--data", "sample"],
    ],
)
def test_a_missing_package_is_named_in_one_sentence(environment, work, words):
    done = run(["paranmt", *words], environment, work)
    assert done.returncode == 1 and not done.stdout
    (*log, sentence) = done.stderr.splitlines()
    assert re.fullmatch("paranmt: .*'(torch|scipy|sentence_transformers)'.*pip install .*", sentence)
    assert len(log) < 2
