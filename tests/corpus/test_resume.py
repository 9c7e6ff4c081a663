"""The real command, killed with -9 in the middle of translating, then run again."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from paranmt_hf.hub.repository import ASSETS

pytestmark = pytest.mark.slow
SAMPLE = ASSETS / "sample"


def command(out, workers):
    arguments = ["--source", SAMPLE / "sample.cs", "--reference", SAMPLE / "sample.en", "--translator", "embedded"]
    arguments += ["--license", "mit", "--out", out, "--engine", f"workers={workers},threads=1,shard_rows=40"]
    return [sys.executable, "-m", "paranmt_hf.cli", "build", *map(str, arguments)]


def done(out) -> int:
    path = out.with_name(f"{out.name}.work") / "1-translate" / "manifest.json"
    return len(json.loads(path.read_text())["shards"]) if path.exists() else 0


def data(folder) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


def stopped(out, signal_number, environment) -> bool:
    """Stop a build after two shards and then after six; whether it was stopped, and had not ended before."""
    for wanted in (2, 6):
        process = subprocess.Popen(command(out, 2), env=environment, stderr=subprocess.PIPE, text=True)
        while done(out) < wanted and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal_number)
        _, error = process.communicate()
        if process.returncode == 0:
            return False
        assert "Traceback" not in error
        assert process.returncode == (-9 if signal_number == signal.SIGKILL else 130), error
        assert 0 < done(out) < 12
        time.sleep(1)
    return True


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT])
def test_killed_build_ends_with_the_same_bytes(tmp_path, signal_number):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    whole = tmp_path / "whole" / "corpus"
    assert subprocess.run(command(whole, 1), env=environment, capture_output=True).returncode == 0
    # On a busy machine a build may end before the signal reaches it.
    folders = (tmp_path / str(attempt) / "corpus" for attempt in range(5))
    killed = next(folder for folder in folders if stopped(folder, signal_number, environment))
    last = subprocess.run(command(killed, 2), env=environment, capture_output=True, text=True)
    assert last.returncode == 0, last.stderr
    assert data(whole) == data(killed)
    assert (whole / "README.md").read_text() == (killed / "README.md").read_text()
    assert not killed.with_name("corpus.work").exists()
