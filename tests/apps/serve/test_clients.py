"""What clients of `paranmt serve` ask for, pages of browsers among them."""

import threading
from contextlib import contextmanager

import numpy as np
import pytest

from paranmt_hf import StaticEncoder
from paranmt_hf.apps.serve.serve import serve_encoder
from paranmt_hf.apps.serve.vectors import SentenceVectors
from paranmt_hf.errors import InputError
from paranmt_hf.util.local_page import listen

pytest.importorskip("orjson")
pytest.importorskip("starlette")
uvicorn = pytest.importorskip("uvicorn")

from starlette.testclient import TestClient  # noqa: E402 - these may not be installed

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
def running(vectors):
    """A server in a thread; gives its port."""
    config = uvicorn.Config(ServeApp(vectors, NAMES), log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    with listen(0) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(timeout=20)


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
