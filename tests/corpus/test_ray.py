"""The same shards on a Ray cluster of two nodes, one of which is lost in the middle."""

import json
import threading
import time
from pathlib import Path

import pytest

from tests.corpus import fakes
from tests.corpus.test_shards import contents

pytestmark = pytest.mark.slow
ray = pytest.importorskip("ray", reason="needs the extra `ray`")


@pytest.fixture
def cluster(monkeypatch):
    from ray.cluster_utils import Cluster

    # Workers import the tests' stage by its module name.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent.parent))
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
    fakes.run(tmp_path / "whole")
    fakes.run(tmp_path / "ray", engine="ray")
    manifest = tmp_path / "ray" / "output" / "manifest.json"
    content = json.loads(manifest.read_text())
    # What a kill between a rename and the manifest leaves: shards without an entry.
    for name in list(content["shards"])[2:]:
        del content["shards"][name]
    content["complete"] = False
    manifest.write_text(json.dumps(content))
    fakes.run(tmp_path / "ray", engine="ray")
    assert contents(tmp_path / "ray" / "output") == contents(tmp_path / "whole" / "output")
    assert len((tmp_path / "ray" / "log").read_text().split()) == 20 + 10


def test_error_on_ray_is_the_users_sentence(cluster, tmp_path):
    from paranmt_hf.corpus.engine import EngineConfig, run_job
    from paranmt_hf.errors import InputError

    source = fakes.make_input(tmp_path / "input")
    stage = fakes.UpperStage(str(tmp_path / "log"), poison="row 7")
    with pytest.raises(InputError, match="^cannot write 'row 7' in capitals$"):
        run_job(source, tmp_path / "output", stage, EngineConfig("ray", 1, 1))
