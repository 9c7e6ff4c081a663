"""The routes of `paranmt serve`, and clients of other libraries against it."""

import base64
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection

import numpy as np
import pytest

from paranmt_hf import InputError, StaticEncoder, load, same_meaning
from paranmt_hf.apps.serve.serve import TOKEN_VARIABLE, serve_encoder
from paranmt_hf.apps.serve.vectors import SentenceVectors, ServeLimits
from paranmt_hf.encoders.saving import save
from tests.encoders.toys import SENTENCES, encoder

orjson = pytest.importorskip("orjson")
starlette = pytest.importorskip("starlette")

from starlette.testclient import TestClient  # noqa: E402 - these may not be installed

from paranmt_hf.apps.serve.routes import ServeApp  # noqa: E402
from tests.refused import refused  # noqa: E402

TEXTS = ["A man plays the guitar.", "", "zwölf Boxkämpfer \U0001f600", "a man , a dog and a cat"]
TOKEN = "a-token"


@pytest.fixture(scope="module")
def average():
    return StaticEncoder.from_pretrained()


@pytest.fixture(scope="module")
def unit(average):
    return average.encode(TEXTS, normalize_embeddings=True)


@pytest.fixture
def client(average):
    return TestClient(ServeApp(SentenceVectors(average, "r1"), ["small"]))


@pytest.fixture
def small(average):
    limits = ServeLimits(body=200, sentences=3, characters=10)
    return TestClient(ServeApp(SentenceVectors(average), ["small"], limits=limits))


@pytest.fixture(scope="module")
def address(average):
    """A server in a thread."""
    import uvicorn

    from paranmt_hf.util.local_page import listen

    app = ServeApp(SentenceVectors(average), ["small"], token=TOKEN)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    with listen(0) as listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def posted(client, path, **values):
    answer = client.post(path, json=values)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_embeddings_of_openai(client, unit):
    found = posted(client, "/v1/embeddings", input=TEXTS, model="small", user="someone")
    assert [each["index"] for each in found["data"]] == [0, 1, 2, 3]
    assert {each["object"] for each in found["data"]} == {"embedding"}
    vectors = np.array([each["embedding"] for each in found["data"]], np.float32)
    assert np.array_equal(vectors, unit) and vectors[0].any() and not vectors[1].any()
    assert (found["object"], found["model"]) == ("list", "small")
    assert found["usage"] == {"prompt_tokens": 16, "total_tokens": 16}
    coded = posted(client, "/v1/embeddings", input=TEXTS, encoding_format="base64")
    assert np.array_equal([np.frombuffer(base64.b64decode(e["embedding"]), "<f4") for e in coded["data"]], unit)


@pytest.mark.parametrize("form", ["float", "base64"])
def test_fewer_dimensions_are_of_length_1(client, average, form):
    (found,) = posted(client, "/v1/embeddings", input=TEXTS[0], dimensions=7, encoding_format=form)["data"]
    vector = found["embedding"] if form == "float" else np.frombuffer(base64.b64decode(found["embedding"]), "<f4")
    expected = average.encode(TEXTS[0:1], truncate_dim=7, normalize_embeddings=True)[0]
    assert np.array_equal(np.array(vector, np.float32), expected)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


def test_models_of_openai(client):
    (model,) = client.get("/v1/models").json()["data"]
    assert model["id"] == "small" and model["object"] == "model" and abs(model["created"] - time.time()) < 600


def test_embed(client, average, unit):
    assert np.array_equal(np.array(posted(client, "/embed", inputs=TEXTS), np.float32), unit)
    raw = posted(client, "/embed", inputs=TEXTS[0], normalize=False, truncate=True)
    assert np.array_equal(np.array(raw, np.float32), average.encode(TEXTS[:1]))
    fewer = posted(client, "/embed", inputs=TEXTS, normalize=False, dimensions=3)
    assert np.array_equal(np.array(fewer, np.float32), average.encode(TEXTS, truncate_dim=3))


def test_a_large_request_goes_to_a_thread_and_is_equal(client, average):
    sentences = [f"{text} {number}" for number in range(400) for text in TEXTS]
    expected = average.encode(sentences, normalize_embeddings=True)
    assert np.array_equal(np.array(posted(client, "/embed", inputs=sentences), np.float32), expected)


def test_similarity(client, average):
    found = posted(client, "/similarity", inputs={"source_sentence": TEXTS[0], "sentences": TEXTS})
    vectors = average.encode(TEXTS)
    assert found == pytest.approx(average.similarity(vectors[:1], vectors)[0], abs=1e-6)
    assert found[0] == pytest.approx(1, abs=1e-6) and found[1] == 0


def test_same_meaning():
    first, second = ["The shop is open.", "The shop is open."], ["The shop is closed.", "The store is open."]
    with TestClient(ServeApp(SentenceVectors.load("small"), ["small"])) as client:
        found = posted(client, "/same-meaning", first=first, second=second)
        expected = same_meaning(first, second)
        assert [(each["same"], each["probability"], tuple(each["reasons"])) for each in found] == [
            (each.same, each.probability, each.reasons) for each in expected
        ]
        assert [each.same for each in expected] == [False, True]
        strict = posted(client, "/same-meaning", first=first[1], second=second[1], threshold=1)
        assert [each["same"] for each in strict] == [False]
        for body in (
            {"first": "a"},
            {"first": ["a", "b"], "second": ["a"]},
            {"first": "a", "second": "b", "threshold": "x"},
        ):
            assert client.post("/same-meaning", json=body).status_code == 422


def test_info_and_health(client, average):
    info = client.get("/info").json()
    assert (info["model_id"], info["model_sha"], info["dimension"]) == ("small", "r1", average.dimension)
    assert (info["max_client_batch_size"], info["max_body"]) == (2048, 16 * 2**20)
    assert client.get("/health").status_code == 200


def test_metrics(client):
    posted(client, "/embed", inputs=TEXTS)
    posted(client, "/embed", inputs=TEXTS[0])
    assert client.post("/embed", json={}).status_code == 422
    assert client.get("/nowhere").status_code == 404
    text = client.get("/metrics").text
    found = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert found['paranmt_requests_total{route="/embed",status="200"}'] == "2"
    assert found['paranmt_requests_total{route="/embed",status="422"}'] == "1"
    assert found['paranmt_requests_total{route="other",status="404"}'] == "1"
    assert found["paranmt_sentences_total"] == "5"
    assert found['paranmt_request_seconds_count{route="/embed"}'] == "3"
    assert float(found['paranmt_request_seconds_sum{route="/embed"}']) > 0


WRONG = [
    ("/v1/embeddings", {}, 400, "input"),
    ("/v1/embeddings", {"input": []}, 400, "input"),
    ("/v1/embeddings", {"input": [[1, 2]]}, 400, "input"),
    ("/v1/embeddings", {"input": ["a", None]}, 400, "input"),
    ("/v1/embeddings", {"input": "a", "dimensions": 0}, 400, "dimensions"),
    ("/v1/embeddings", {"input": "a", "dimensions": 257}, 400, "dimensions"),
    ("/v1/embeddings", {"input": "a", "dimensions": True}, 400, "dimensions"),
    ("/v1/embeddings", {"input": "a", "encoding_format": ["float"]}, 400, "encoding_format"),
    ("/v1/embeddings", {"input": "a", "model": "other"}, 404, None),
    ("/v1/embeddings", ["a"], 400, None),
    ("/embed", {"inputs": 3}, 422, None),
    ("/embed", {"inputs": "a", "normalize": 1}, 422, None),
    ("/embed", {"inputs": "a", "prompt_name": "query"}, 422, None),
    ("/similarity", {"inputs": "a"}, 422, None),
    ("/similarity", {"inputs": {"source_sentence": "a"}}, 422, None),
]


@pytest.mark.parametrize(("path", "values", "status", "field"), WRONG)
def test_wrong_values(client, path, values, status, field):
    answer = client.post(path, json=values)
    assert answer.status_code == status
    error = answer.json()["error"]
    if path.startswith("/v1/"):
        assert error["type"] == "invalid_request_error" and error["param"] == field and error["message"]
        assert error["code"] == ("model_not_found" if status == 404 else None)
    else:
        assert error and answer.json()["error_type"] == "Validation"


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"input": "\xff"}', b'{"input": "\\ud800', b"[" * 5000, b"[" * 5000 + b'"\\ud800"']
)
def test_what_is_no_json(client, body):
    assert client.post("/v1/embeddings", content=body).status_code == 400
    assert client.post("/embed", content=body).status_code == 422


def test_limits(small, average):
    for path, name in (("/v1/embeddings", "input"), ("/embed", "inputs")):
        assert small.post(path, json={name: ["a"] * 3}).status_code == 200
        for sentences, status in ((["a"] * 4, 413), (["a" * 11], 422), (["a" * 150], 422), (["a" * 300], 413)):
            assert small.post(path, json={name: sentences}).status_code == status
    cut = posted(small, "/embed", inputs="a man is here", truncate=True, normalize=False)
    assert np.array_equal(np.array(cut, np.float32), average.encode(["a man is h"]))
    # In parts, whose size nothing announces.
    assert small.post("/embed", content=(b" " * 50 for _ in range(5))).status_code == 413


def test_only_the_token_opens_it(average):
    client = TestClient(ServeApp(SentenceVectors(average), ["small"], token=TOKEN))
    assert client.get("/health").status_code == 200
    for given in (None, "Bearer ", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN):
        headers = {"Authorization": given} if given is not None else {}
        for path in ("/v1/models", "/info", "/metrics", "/nowhere"):
            answer = client.get(path, headers=headers)
            assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
            assert TOKEN not in answer.text
    assert client.get("/v1/models").json()["error"]["code"] == "invalid_api_key"
    assert client.get("/info", headers={"Authorization": f"bearer {TOKEN}"}).status_code == 200
    assert 'status="401"' in client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text


@pytest.mark.slow
def test_an_encoder_that_is_no_average(tmp_path):
    """Sentences of requests that wait are encoded together, and each gets its own vectors."""
    save(encoder("lstm"), tmp_path / "lstm")
    vectors = SentenceVectors.load(str(tmp_path / "lstm"))
    assert not vectors.is_average and vectors.revision.startswith("sha256:")
    calls, encode = [], vectors.encoder.encode
    vectors.encoder.encode = lambda texts, **options: calls.append(len(texts)) or time.sleep(0.2) or encode(texts)
    expected = load(tmp_path / "lstm").encode(SENTENCES, normalize_embeddings=True)
    with TestClient(ServeApp(vectors, ["lstm"])) as client:
        assert client.get("/info").json()["dimension"] == expected.shape[1]
        answers = {}

        def ask(number):
            answers[number] = posted(client, "/embed", inputs=[SENTENCES[number]])[0]

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(SENTENCES))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(calls) == len(SENTENCES) > len(calls)
        for number, vector in enumerate(expected):
            assert answers[number] == pytest.approx(vector, abs=1e-6)
        vectors.encoder.encode = lambda texts, **options: 1 / 0
    with TestClient(ServeApp(vectors, ["lstm"]), raise_server_exceptions=False) as client:
        answer = client.post("/v1/embeddings", json={"input": "a"})
        assert answer.status_code == 500 and answer.json()["error"]["type"] == "server_error"


@pytest.mark.slow
def test_the_openai_client(address, average, unit):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{address}/v1", api_key=TOKEN, max_retries=0)
    for options in ({}, {"encoding_format": "float"}):
        found = client.embeddings.create(model="small", input=TEXTS, **options)
        assert np.array_equal(np.array([each.embedding for each in found.data], np.float32), unit)
    found = client.embeddings.create(model="small", input=TEXTS[0], dimensions=9)
    assert len(found.data[0].embedding) == 9 and found.usage.prompt_tokens == 5
    assert [model.id for model in client.models.list()] == ["small"]
    with pytest.raises(openai.NotFoundError) as missing:
        client.embeddings.create(model="other", input="a")
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as wrong:
        client.embeddings.create(model="small", input="a", dimensions=1000)
    assert wrong.value.param == "dimensions"
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=f"{address}/v1", api_key="wrong", max_retries=0).models.list()


def test_langchain(address, unit):
    langchain = pytest.importorskip(
        "langchain_openai", reason="needs langchain-openai, which is no part of this package"
    )
    embeddings = langchain.OpenAIEmbeddings(
        model="small", base_url=f"{address}/v1", api_key=TOKEN, check_embedding_ctx_length=False
    )
    assert np.array_equal(np.array(embeddings.embed_documents(TEXTS), np.float32), unit)
    assert np.array_equal(np.array(embeddings.embed_query(TEXTS[0]), np.float32), unit[0])


@pytest.mark.parametrize("text", ["", " \n", "two words", "tokén"])
def test_a_token_that_is_none(tmp_path, monkeypatch, text):
    file = tmp_path / "token"
    file.write_text(text)
    for path in (file, None):
        monkeypatch.setenv(TOKEN_VARIABLE, text)
        with refused("token_file" if path else None) as error:
            serve_encoder("small", port=0, token_file=path)
        assert not text.strip() or text not in str(error.value)


def test_bad_places(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for options, option in (
            ({"port": taken.getsockname()[1]}, "port"),
            ({"port": -1}, "port"),
            ({"port": 0, "host": "203.0.113.7"}, "host"),
            ({"port": 0, "host": "no such host"}, "host"),
        ):
            with refused(option):
                serve_encoder("small", **options)
    with pytest.raises(InputError):
        serve_encoder(str(tmp_path / "none"), port=0)
    with pytest.raises(InputError):
        serve_encoder("small", token_file=tmp_path / "none")


@pytest.mark.parametrize("package", ["orjson", "starlette", "uvicorn"])
def test_a_missing_extra(package, without):
    without(package)
    with refused():
        serve_encoder("small", port=0)


@pytest.mark.slow
def test_torch_is_not_needed():
    code = """
import asyncio, sys
from paranmt_hf.apps.serve.routes import ServeApp
from paranmt_hf.apps.serve.vectors import SentenceVectors
vectors = SentenceVectors.load("small")
ServeApp(vectors, ["small"])
print(asyncio.run(vectors.encode(["a cat"])).any())
print(sorted({"torch", "transformers", "sentence_transformers", "numba"} & sys.modules.keys()))
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "True\n[]\n"


@pytest.mark.slow
def test_a_process(tmp_path, average):
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    command = [sys.executable, "-m", "paranmt_hf.cli", "serve", "small", "--port", "0", "--limits", "body=2000"]
    command += ["--token-file", str(tmp_path / "token")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    line = process.stderr.readline()
    port = int(re.search(r"http://127\.0\.0\.1:(\d+)$", line.strip())[1])
    connection, headers = HTTPConnection("127.0.0.1", port), {"Authorization": f"Bearer {TOKEN}"}
    for number in range(3):
        connection.request("POST", "/embed", orjson.dumps({"inputs": f"a cat {number}"}), headers)
        found = np.array(orjson.loads(connection.getresponse().read()), np.float32)
        assert np.array_equal(found, average.encode([f"a cat {number}"], normalize_embeddings=True))
    connection.request("POST", "/embed", b" " * 1_000_000, headers)
    assert connection.getresponse().status == 413
    # A client that leaves in the middle of a request.
    with socket.create_connection(("127.0.0.1", port)) as gone:
        head = f"POST /embed HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 100\r\n\r\nhalf"
        gone.sendall(head.encode())
    time.sleep(0.2)
    second = subprocess.run(
        [*command[:6], str(port)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, TOKEN_VARIABLE: "x"},
    )
    assert second.returncode == 1 and len(second.stderr.strip().splitlines()) == 1
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and not out and TOKEN not in line + err and "Traceback" not in err
    assert not list(tmp_path.glob("*.yaml"))
