"""The Space of `docs/examples/space` answers over HTTP."""

import os
import queue
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import paranmt_hf
from paranmt_hf import ParaphraserConfig, ParaphraserTraining, train_paraphraser

ROOT = Path(__file__).parents[2]
SPACE = ROOT / "docs" / "examples" / "space"
SECONDS = 180


@contextmanager
def started(*arguments, **variables):
    """Start the program, give a client of it, and end it."""
    client = pytest.importorskip("gradio_client", reason="needs gradio: pip install '.[space]'")
    pytest.importorskip("gradio", reason="needs gradio: pip install '.[space]'")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1", **variables}
    command = [sys.executable, SPACE / "app.py", *map(str, arguments)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": environment}
    with subprocess.Popen(command, **options) as process:
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(line) for line in process.stdout], daemon=True).start()
        try:
            while not (found := re.search(r"http://[\w.:]+", lines.get(timeout=SECONDS))):
                pass
            yield client.Client(found[0], verbose=False)
        finally:
            process.terminate()


@pytest.mark.slow
def test_without_a_paraphraser():
    with started() as client:
        assert set(client.view_api(return_format="dict")["named_endpoints"]) == {"/compare", "/search", "/encode"}
        encoder = paranmt_hf.load()
        pair = ["A dog runs.", "A dog is running."]
        vectors = encoder.encode(pair)
        expected = float(encoder.similarity(vectors, vectors)[0, 1])
        assert client.predict(*pair, api_name="/compare") == pytest.approx(expected, abs=1e-4)
        found = client.predict("music", "It rains.\n\nA band plays music.\n", 1, api_name="/search")["data"]
        assert [row[1] for row in found] == ["A band plays music."]
        table, whole = client.predict("\n".join(pair), api_name="/encode")
        assert [row[0] for row in table["data"]] == pair and len(table["data"][0]) == 7
        assert whole[0] == pytest.approx(vectors[0].tolist())
        from gradio_client.exceptions import AppError

        for wrong in ("", "x\n" * 501, "x" * 1_000_001):
            with pytest.raises(AppError):
                client.predict(wrong, api_name="/encode")
        assert client.predict(*pair, api_name="/compare") == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_with_a_paraphraser(tmp_path):
    path, folder = tmp_path / "pairs.parquet", tmp_path / "paraphraser"
    sides = [[f"the {word} is {other} ." for word in "abcdef" for other in "uvwxyz"] for _ in range(2)]
    pq.write_table(pa.table({"reference": sides[0], "translation": sides[1]}), path)
    shape, course = ParaphraserConfig(pieces=300, embedding=8, hidden=8), ParaphraserTraining(max_steps=1)
    train_paraphraser(path, folder, config=shape, training=course)
    with started("--encoder", "base", PARANMT_PARAPHRASER=str(folder)) as client:
        found = client.predict("the a is u .\nthe b is v .", 2, api_name="/paraphrase")["data"]
        sentences = {row[0] for row in found}
        assert sentences <= {"the a is u .", "the b is v ."} and all(len(row) == 3 for row in found)
        assert len(client.predict("dog", api_name="/encode")[1][0]) == 384


@pytest.mark.slow
def test_unknown_encoder_is_one_sentence(tmp_path):
    pytest.importorskip("gradio", reason="needs gradio: pip install '.[space]'")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PARANMT_ENCODER": str(tmp_path / "none")}
    done = subprocess.run([sys.executable, SPACE / "app.py"], env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr


def test_header_of_the_space():
    header = yaml.safe_load((SPACE / "README.md").read_text(encoding="utf8").split("---\n")[1])
    assert header["sdk"] == "gradio" and (SPACE / header["app_file"]).is_file()
    assert len(header["short_description"]) <= 60
    project = (ROOT / "pyproject.toml").read_text(encoding="utf8")
    wanted = Requirement(re.search(r'^space = \["(.+)"\]', project, re.MULTILINE)[1])
    assert wanted.name == "gradio" and Version(header["sdk_version"]) in wanted.specifier
    assert "paranmt-hf" in (SPACE / "requirements.txt").read_text(encoding="utf8").split()
    assert len((SPACE / "app.py").read_text(encoding="utf8").splitlines()) <= 150
