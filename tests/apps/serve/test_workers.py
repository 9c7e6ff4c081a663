"""Several processes of `paranmt serve` on one port."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from http.client import HTTPConnection

import numpy as np
import psutil
import pytest

from paranmt_hf import StaticEncoder
from paranmt_hf.apps.serve.serve import serve_encoder
from paranmt_hf.apps.serve.workers import listening_sockets
from paranmt_hf.encoders.saving import save
from tests.encoders.toys import encoder
from tests.refused import refused

orjson = pytest.importorskip("orjson")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from paranmt_hf.apps.serve.routes import Metrics  # noqa: E402 - starlette may not be installed

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
TEXTS = ["A man plays the guitar.", "", "a man , a dog and a cat"]


def figures(text):
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


@forks
def test_metrics_are_the_sums_over_processes():
    metrics = Metrics(["/embed", "/info"], workers=3)
    metrics.count("/embed", 200, 0.5)
    metrics.count_sentences(7)
    for worker in (1, 2):
        if not (process := os.fork()):
            metrics.worker = worker
            metrics.count("/embed", 200, 0.25)
            metrics.count("/embed", 413, 1)
            metrics.count_sentences(2)
            os._exit(0)
        os.waitpid(process, 0)
    assert figures(metrics.text()) == {
        'paranmt_requests_total{route="/embed",status="200"}': "3",
        'paranmt_requests_total{route="/embed",status="413"}': "2",
        "paranmt_sentences_total": "11",
        'paranmt_request_seconds_sum{route="/embed"}': "3.000000",
        'paranmt_request_seconds_count{route="/embed"}': "5",
    }


@pytest.mark.parametrize("count", [1, 3])
def test_the_port_of_several_processes_is_taken(count):
    sockets = listening_sockets(count, 0, "127.0.0.1")
    (port,) = {each.getsockname()[1] for each in sockets}
    for other in (1, 3):
        with refused("port"):
            listening_sockets(other, port, "127.0.0.1")
    for each in sockets:
        each.close()
    for each in listening_sockets(count, port, "127.0.0.1"):
        each.close()


def test_what_cannot_have_workers(tmp_path):
    with refused("workers"):
        serve_encoder("small", port=0, workers=0)
    save(encoder("lstm"), tmp_path / "lstm")
    with refused("workers"):
        serve_encoder(str(tmp_path / "lstm"), port=0, workers=2)


@contextmanager
def serving(workers):
    """A server with some processes; gives it, its port, and the ids of the processes."""
    command = [sys.executable, "-m", "paranmt_hf.cli", "serve", "small", "--port", "0", "--workers", str(workers)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)$", server.stderr.readline().strip())[1])
        yield server, port, children(server, workers)
    finally:
        server.kill()
        server.communicate()


def children(server, count):
    """Wait until a server has some processes, and return their ids."""
    for _ in range(200):
        found = [each.pid for each in psutil.Process(server.pid).children()]
        if len(found) == count:
            return found
        time.sleep(0.05)
    pytest.fail(f"{len(found)} processes")


def asked(port, method="POST", path="/embed", values=None):
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, orjson.dumps(values) if values else None)
        return connection.getresponse().read()
    finally:
        connection.close()


def have_ended(processes):
    """Whether processes end within some seconds; one that nobody has waited for counts too."""
    for _ in range(200):
        left = [each for each in processes if psutil.pid_exists(each)]
        if not [each for each in left if psutil.Process(each).status() != psutil.STATUS_ZOMBIE]:
            return True
        time.sleep(0.05)
    return False


@forks
@pytest.mark.slow
def test_several_processes_answer():
    unit = StaticEncoder.from_pretrained().encode(TEXTS, normalize_embeddings=True)
    with serving(3) as (server, port, workers):
        for _ in range(20):
            assert np.array_equal(np.float32(orjson.loads(asked(port, values={"inputs": TEXTS}))), unit)
        os.kill(workers[0], signal.SIGKILL)
        assert "SIGKILL" in [server.stderr.readline() for _ in range(3)][-1]
        replaced = children(server, 3)
        assert workers[0] not in replaced and set(workers[1:]) < set(replaced)
        for _ in range(20):
            assert np.array_equal(np.float32(orjson.loads(asked(port, values={"inputs": TEXTS}))), unit)
        # A request is counted after its answer was sent, and another process may be asked for the figures meanwhile.
        for _ in range(200):
            found = figures(asked(port, "GET", "/metrics").decode())
            if found['paranmt_requests_total{route="/embed",status="200"}'] == "40":
                break
            time.sleep(0.05)
        assert found['paranmt_request_seconds_count{route="/embed"}'] == "40"
        assert found["paranmt_sentences_total"] == "120"
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == -signal.SIGTERM and not any(map(psutil.pid_exists, replaced))
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", port))


@forks
@pytest.mark.slow
@pytest.mark.parametrize("whole_group", [True, False])
def test_ctrl_c_ends_all(whole_group):
    """A terminal sends it to all processes, `kill` to one."""
    with serving(2) as (server, port, workers), socket.create_connection(("127.0.0.1", port)):
        (os.killpg if whole_group else os.kill)(server.pid, signal.SIGINT)
        assert server.wait(20) == 0 and not any(map(psutil.pid_exists, workers))
        assert "Traceback" not in server.stderr.read()


@forks
@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them():
    with serving(2) as (server, _, workers):
        server.kill()
        server.wait()
        assert have_ended(workers)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not share out connections")
def test_connections_that_come_at_once_are_shared_out():
    """Of connections that come at once to one socket, one process takes nearly all."""
    with serving(3) as (_, port, workers):
        connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(30)]
        for _ in range(200):
            counts = [len(psutil.Process(each).net_connections()) - 3 for each in workers]
            if sum(counts) >= 30:
                break
            time.sleep(0.05)
        # All but one process would have none with a probability of 3 ** -29.
        assert sorted(counts)[-2] > 0
        for connection in connections:
            connection.close()
