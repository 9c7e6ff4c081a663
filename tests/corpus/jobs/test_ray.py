"""The same shards on a Ray cluster of two nodes, one of which is lost in the middle."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from paranmt_hf import EngineConfig, InputError
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.errors import WriteError
from tests.corpus import fakes
from tests.corpus.jobs.test_shards import contents

pytestmark = pytest.mark.slow
ray = pytest.importorskip("ray", reason="needs the extra `ray`")


@pytest.fixture
def cluster(monkeypatch):
    from ray.cluster_utils import Cluster

    # Workers import the tests' stage by its module name.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.second = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def test_job_survives_the_loss_of_a_node(cluster, tmp_path):
    fakes.run(tmp_path / "whole", shards=8)
    manifest = tmp_path / "ray" / "output" / "manifest.json"
    lost = threading.Event()

    def lose_a_node():
        while not (manifest.exists() and len(json.loads(manifest.read_text())["shards"]) >= 2):
            time.sleep(0.05)
        cluster.remove_node(cluster.second, allow_graceful=False)
        lost.set()

    thread = threading.Thread(target=lose_a_node)
    thread.start()
    result = fakes.run(tmp_path / "ray", seconds=0.4, engine="ray", shards=8)
    thread.join()
    assert lost.is_set()
    assert result.rows == len([row for row in range(40) if row % 7 != 6])
    assert contents(tmp_path / "ray" / "output") == contents(tmp_path / "whole" / "output")
    log = (tmp_path / "ray" / "log").read_text().split()
    assert set(log) == {str(row) for row in range(40)}
    assert len(log) <= 40 + 2 * 5, "more was done twice than the shards in hand"


def test_killed_driver_continues(cluster, tmp_path):
    fakes.run(tmp_path / "whole", shards=4)
    folder, manifest = tmp_path / "ray", tmp_path / "ray" / "output" / "manifest.json"
    command = [sys.executable, "-m", "tests.corpus.fakes", str(folder), "0.4", "1", "ray"]
    driver = subprocess.Popen(command, env={**os.environ, "RAY_ADDRESS": cluster.address})
    while not (manifest.exists() and json.loads(manifest.read_text())["shards"]):
        assert driver.poll() is None, "the job ended before it could be killed"
        time.sleep(0.05)
    driver.kill()
    driver.wait()
    assert len(json.loads(manifest.read_text())["shards"]) < 4
    fakes.run(folder, engine="ray", shards=4)
    assert contents(folder / "output") == contents(tmp_path / "whole" / "output")
    rows = (folder / "log").read_text().split()
    assert set(rows) == {str(row) for row in range(20)}
    assert len(rows) <= 20 + 2 * 5, "more was done twice than the shards in hand"


def test_request_that_no_node_can_meet_is_told(cluster, tmp_path):
    source = fakes.make_input(tmp_path / "input")
    with pytest.raises(InputError, match="no node of the Ray cluster has 64 cores and 0 GPUs"):
        run_job(source, tmp_path / "output", fakes.UpperStage(str(tmp_path / "log")), EngineConfig("ray", 1, 64))


def test_error_on_ray_is_the_users_sentence(cluster, tmp_path):
    source = fakes.make_input(tmp_path / "input")
    stage = fakes.UpperStage(str(tmp_path / "log"), poison="row 7")
    with pytest.raises(WriteError, match="^cannot write 'row 7' in capitals$") as refused:
        run_job(source, tmp_path / "output", stage, EngineConfig("ray", 1, 1))
    assert (refused.value.option, refused.value.path) == ("poison", tmp_path / "log")
