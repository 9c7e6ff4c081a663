"""What clients of `paranmt serve` ask for, pages of browsers among them, and what keeps out those that only wait."""

import socket
import threading
import time
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse

import numpy as np
import pytest

from paranmt_hf import InputError, StaticEncoder
from paranmt_hf.apps.serve.serve import serve_encoder
from paranmt_hf.apps.serve.vectors import SentenceVectors, ServeLimits
from paranmt_hf.util.local_page import listen

orjson = pytest.importorskip("orjson")
pytest.importorskip("starlette")
uvicorn = pytest.importorskip("uvicorn")

from starlette.testclient import TestClient  # noqa: E402 - these may not be installed

from paranmt_hf.apps.serve.connections import LimitedServer  # noqa: E402
from paranmt_hf.apps.serve.routes import ServeApp  # noqa: E402

TEXT, TOKEN = "A man plays the guitar.", "a-token"
NAMES = ["small", "text-embedding-3-small", "you/word"]


@pytest.fixture(scope="module")
def vectors():
    return SentenceVectors(StaticEncoder.from_pretrained())


@pytest.fixture(scope="module")
def unit(vectors):
    return vectors.encoder.encode([TEXT], normalize_embeddings=True)[0]


def client_of(vectors, **options):
    return TestClient(ServeApp(vectors, NAMES, **options))


def embedded(client, **values):
    answer = client.post("/v1/embeddings", json={"input": TEXT, **values})
    return answer.json()["data"][0]["embedding"] if answer.status_code == 200 else answer.status_code


def test_aliases_are_names_of_the_model(vectors, unit):
    client = client_of(vectors)
    for name in NAMES:
        found = client.post("/v1/embeddings", json={"input": TEXT, "model": name}).json()
        assert found["model"] == name and np.array_equal(np.float32(found["data"][0]["embedding"]), unit)
    assert [model["id"] for model in client.get("/v1/models").json()["data"]] == NAMES
    assert embedded(client, model="other") == 404
    assert embedded(client, model=["small"]) == 400


def test_one_model_by_its_name(vectors):
    client = client_of(vectors)
    for path in ("/v1/models/small", "/v1/models/you/word", "/v1/models/you%2Fword", "/v1/models/small/"):
        answer = client.get(path)
        assert answer.status_code == 200 and answer.json()["object"] == "model" and answer.json()["id"] in NAMES
    missing = client.get("/v1/models/you/other")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")
    assert 'route="/v1/models",status="404"} 1' in client.get("/metrics").text


def test_a_slash_at_the_end_makes_no_difference(vectors, unit):
    client = client_of(vectors)
    answer = client.post("/v1/embeddings/", json={"input": TEXT}, follow_redirects=False)
    assert answer.status_code == 200
    assert client.post("/embed/", json={"inputs": TEXT}, follow_redirects=False).status_code == 200
    assert client.get("/v1/models/", follow_redirects=False).status_code == 200
    assert client.get("/health/", follow_redirects=False).status_code == 200


def test_half_a_surrogate_pair_does_not_cost_the_batch(vectors):
    """As JSON.stringify of JavaScript writes a text that slice() cut inside an emoji."""
    client = client_of(vectors)
    body = b'{"input": ["cut \\ud83d", "\\ud83d\\ude00", "A man"], "model": "small"}'
    found = client.post("/v1/embeddings", content=body)
    assert found.status_code == 200
    given = np.float32([each["embedding"] for each in found.json()["data"]])
    texts = ["cut \ufffd", "\U0001f600", "A man"]
    assert np.array_equal(given, vectors.encoder.encode(texts, normalize_embeddings=True))
    refused = client.post("/v1/embeddings", content=b'{"input": "a", "model": "\\ud83d"}')
    assert refused.status_code == 404 and refused.json()["error"]["message"]


PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}


def test_pages_of_chosen_sites_may_ask(vectors):
    site, other = "https://site.example", "https://other.example"
    client = client_of(vectors, token=TOKEN, origins=[site])
    preflight = client.options("/v1/embeddings", headers={"Origin": site, **PREFLIGHT})
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == site
    assert "authorization" in preflight.headers["access-control-allow-headers"].lower()
    headers = {"Origin": site, "Authorization": f"Bearer {TOKEN}"}
    assert client.get("/v1/models", headers=headers).headers["access-control-allow-origin"] == site
    # A page learns of a wrong token too.
    refused = client.get("/v1/models", headers={"Origin": site})
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, site)
    assert "access-control-allow-origin" not in client.get("/v1/models", headers={**headers, "Origin": other}).headers
    plain = client_of(vectors)
    refused = plain.options("/v1/embeddings", headers={"Origin": site, **PREFLIGHT})
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert "access-control-allow-origin" not in plain.get("/v1/models", headers={"Origin": site}).headers
    anyone = client_of(vectors, origins=["*"]).get("/v1/models", headers={"Origin": other})
    assert anyone.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("origin", ["site.example", "https://site.example/page", "", "null"])
def test_what_is_no_origin(origin):
    with pytest.raises(InputError) as error:
        serve_encoder("small", port=0, origins=[origin])
    assert error.value.option == "origins"


def test_only_requests_for_this_host_are_answered(vectors):
    """A page whose name was made to lead to 127.0.0.1 sends its own name."""
    client = client_of(vectors, hosts=["127.0.0.1", "localhost", "[::1]", "Box.example"])
    for host in ("127.0.0.1:8000", "localhost", "LOCALHOST:9000", "[::1]:8000", "box.example", "BOX.example"):
        assert client.get("/info", headers={"Host": host}).status_code == 200
    for host in ("evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""):
        assert client.get("/info", headers={"Host": host}).status_code == 403
        assert client.post("/embed", json={"inputs": TEXT}, headers={"Host": host}).status_code == 403
    assert client.get("/health", headers={"Host": "evil.example"}).status_code == 200


@contextmanager
def running(vectors, http="auto", **limits):
    """A server with limits in a thread; gives its port."""
    limits = ServeLimits(**limits)
    app = ServeApp(vectors, NAMES, limits=limits)
    ends = {"timeout_keep_alive": limits.seconds, "timeout_graceful_shutdown": 1}
    config = uvicorn.Config(app, log_level="warning", lifespan="off", http=http, **ends)
    server = LimitedServer(config, connections=limits.connections, seconds=limits.seconds)
    with listen(0) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(timeout=20)


def opened(port, sent=b""):
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.sendall(sent)
    return connection


def is_closed(connection, seconds):
    """Whether the server closes a connection within some seconds; what it sends before is read."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            connection.settimeout(max(0.01, end - time.monotonic()))
            if not connection.recv(4096):
                return True
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return False


def answers(port):
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", "/embed", orjson.dumps({"inputs": TEXT}))
        return connection.getresponse().status
    finally:
        connection.close()


HEAD = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
HALVES = {
    "nothing": b"",
    "half a head": HEAD[:30],
    "half a body": HEAD + b'{"inputs": "a',
    "a body that nobody reads": HEAD.replace(b"POST /embed", b"GET /health"),
    "a second half": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" + HEAD[:30],
}


@pytest.mark.slow
@pytest.mark.parametrize("sent", HALVES.values(), ids=HALVES)
def test_half_a_request_is_ended(vectors, sent):
    with running(vectors, seconds=1) as port, opened(port, sent) as connection:
        assert answers(port) == 200
        assert is_closed(connection, seconds=6)
        assert answers(port) == 200


@pytest.mark.slow
@pytest.mark.parametrize("sent", [HEAD[:20], HEAD], ids=["head", "body"])
def test_a_byte_now_and_then_does_not_keep_a_connection(vectors, sent):
    with running(vectors, seconds=1) as port, opened(port, sent) as connection:
        ended = False
        for _ in range(20):
            try:
                connection.sendall(b"a")
            except ConnectionError:
                ended = True
                break
            if ended := is_closed(connection, seconds=0.3):
                break
        assert ended


@pytest.mark.slow
def test_a_body_that_comes_late_is_told_so(vectors):
    with running(vectors, seconds=1) as port, opened(port, HEAD + b'{"in') as connection:
        assert connection.recv(4096).startswith(b"HTTP/1.1 408 ")


@pytest.mark.slow
def test_a_large_body_over_a_slow_line(vectors):
    """It takes longer than the seconds of a small one, and arrives."""
    texts = [f"a man plays {number}" for number in range(3)]
    body = orjson.dumps({"inputs": texts}) + b" " * 60_000
    head = f"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with running(vectors, seconds=1) as port, opened(port, head) as connection:
        for start in range(0, len(body), 10_000):
            connection.sendall(body[start : start + 10_000])
            time.sleep(0.3)
        answer = HTTPResponse(connection)
        answer.begin()
        assert answer.status == 200
        unit = vectors.encoder.encode(texts, normalize_embeddings=True)
        assert np.array_equal(np.float32(orjson.loads(answer.read())), unit)


@pytest.mark.slow
@pytest.mark.parametrize("http", ["h11", "auto"])
def test_a_client_that_keeps_its_connection(vectors, http):
    with running(vectors, http, seconds=1) as port:
        client = HTTPConnection("127.0.0.1", port, timeout=10)
        client.connect()
        connection = client.sock
        for _ in range(6):
            for _ in range(2):
                client.request("GET", "/health")
                assert client.getresponse().read() == b""
            time.sleep(0.6)
        assert client.sock is connection
        client.close()


@pytest.mark.slow
def test_idle_connections_do_not_keep_others_out(vectors):
    with running(vectors, connections=5, seconds=30) as port:
        first = [opened(port, HEAD[: 5 * number]) for number in range(7)]
        time.sleep(1)
        last = [opened(port, HEAD[: 5 * number]) for number in range(5)]
        time.sleep(1)
        assert all(is_closed(connection, seconds=2) for connection in first), "those that came first are closed first"
        assert not any(is_closed(connection, seconds=0.1) for connection in last)
        assert answers(port) == 200
        for connection in [*first, *last]:
            connection.close()


@pytest.mark.slow
def test_a_client_that_does_not_read_its_answer(vectors):
    body = orjson.dumps({"inputs": ["a man"] * 4000})
    head = f"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with running(vectors, seconds=1, sentences=4000) as port, opened(port) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.sendall(head + body)
        time.sleep(4)
        assert answers(port) == 200
        received = connection.recv(4096)
        announced = int(received.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        with suppress(ConnectionError):
            while part := connection.recv(2**20):
                received += part
        assert 4096 <= len(received) < announced, "the answer was not sent to its end"


@pytest.fixture(scope="module")
def address(vectors):
    with running(vectors) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.slow
def test_the_openai_client_finds_models(address, unit):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{address}/v1/", api_key="none", max_retries=0)
    assert [client.models.retrieve(name).id for name in NAMES] == NAMES
    found = client.embeddings.create(model="text-embedding-3-small", input=[TEXT])
    assert np.array_equal(np.float32(found.data[0].embedding), unit) and found.model == "text-embedding-3-small"
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve("you/other")
    assert missing.value.code == "model_not_found"


@pytest.mark.slow
def test_the_client_of_mteb(address, vectors):
    """mteb 2.26 measures servers by its own client, in batches."""
    mteb = pytest.importorskip("mteb.models")
    if not hasattr(mteb, "OpenAIAPIEncodeWrapper"):
        pytest.skip("this mteb has no client of servers")
    import datasets
    from torch.utils.data import DataLoader

    model = mteb.OpenAIAPIEncodeWrapper(endpoint_url=address, model_name="small", use_chat_template=False)
    texts = [f"{TEXT} {number}" for number in range(70)]
    batches = DataLoader(datasets.Dataset.from_dict({"text": texts}), batch_size=32)
    found = model.encode(batches, task_metadata=None, hf_split="test", hf_subset="default")
    np.testing.assert_allclose(found, vectors.encoder.encode(texts, normalize_embeddings=True), atol=1e-6)
