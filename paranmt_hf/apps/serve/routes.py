"""The routes of `paranmt serve`: those of OpenAI and of text-embeddings-inference that give vectors."""

from __future__ import annotations

import base64
import secrets
import time
from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import Any

import numpy as np
import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from paranmt_hf.apps.serve.vectors import SentenceVectors, ServeLimits
from paranmt_hf.errors import InputError
from paranmt_hf.util.local_page import App, Message, Receive, Send
from paranmt_hf.util.wording import brief
from paranmt_hf.version import __version__

EMBEDDINGS, HEALTH = "/v1/embeddings", "/health"
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)  # Seconds, upper ends of the buckets


class Metrics:
    """Counts requests, errors and sentences, and how long answers took, for Prometheus."""

    def __init__(self) -> None:
        self.requests, self.sentences = Counter[tuple[str, int]](), 0
        self._seconds: dict[str, float] = {}
        self._buckets: dict[str, list[int]] = {}

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self.requests[route, status] += 1
        self._seconds[route] = self._seconds.get(route, 0) + seconds
        self._buckets.setdefault(route, [0] * (len(BOUNDS) + 1))[bisect_left(BOUNDS, seconds)] += 1

    def text(self) -> str:
        """Format all figures as Prometheus reads them."""
        lines, errors = ["# TYPE paranmt_requests_total counter"], Counter[str]()
        for (route, status), number in sorted(self.requests.items()):
            lines.append(f'paranmt_requests_total{{route="{route}",status="{status}"}} {number}')
            errors[route] += number if status >= 400 else 0
        lines.append("# TYPE paranmt_errors_total counter")
        lines += [f'paranmt_errors_total{{route="{route}"}} {number}' for route, number in errors.items()]
        lines += ["# TYPE paranmt_sentences_total counter", f"paranmt_sentences_total {self.sentences}"]
        lines.append("# TYPE paranmt_request_seconds histogram")
        for route, counts in sorted(self._buckets.items()):
            for bound, number in zip((*BOUNDS, "+Inf"), accumulate(counts), strict=True):
                lines.append(f'paranmt_request_seconds_bucket{{route="{route}",le="{bound}"}} {number}')
            lines.append(f'paranmt_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
            lines.append(f'paranmt_request_seconds_count{{route="{route}"}} {sum(counts)}')
        return "\n".join(lines) + "\n"


class ServeApp:
    """The ASGI application for an encoder, which clients know by its `name`; requests must bring the `token`."""

    def __init__(
        self, vectors: SentenceVectors, name: str, *, limits: ServeLimits | None = None, token: str | None = None
    ) -> None:
        self.counts = Metrics()
        self._vectors, self._name, self._limits, self._token = vectors, name, limits or ServeLimits(), token
        self._started = int(time.time())
        post = {EMBEDDINGS: self.embeddings, "/embed": self.embed, "/similarity": self.similarity}
        get = {"/v1/models": self.models, "/info": self.info, HEALTH: self.health, "/metrics": self.metrics}
        self._known = {*post, *get}
        routes = [Route(path, handler, methods=["POST"]) for path, handler in post.items()]
        routes += [Route(path, handler) for path, handler in get.items()]
        refused = dict.fromkeys((InputError, HTTPException, ClientDisconnect, Exception), _refuse)
        self._app = Starlette(routes=routes, exception_handlers=refused)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, and count it."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started, status, path = time.perf_counter(), 500, scope["path"]

        async def send_noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        app: App = self._app
        if self._token is not None and path != HEALTH and not _has_token(scope, self._token):
            needed = HTTPException(401, "this server needs its token, as `Authorization: Bearer TOKEN`")
            app = await _refuse(Request(scope), needed)
        try:
            await app(scope, receive, send_noted)
        finally:
            self.counts.count(path if path in self._known else "other", status, time.perf_counter() - started)

    async def embeddings(self, request: Request) -> Response:
        values = await self._values(request)
        if values.get("model", self._name) != self._name:
            raise HTTPException(404, f"this server has the model {self._name!r}, not {brief(values['model'])}")
        form = values.get("encoding_format") or "float"
        if form not in ("float", "base64"):
            raise InputError(f"encoding_format must be float or base64, was {brief(form)}", option="encoding_format")
        sentences = self._sentences(values, "input")
        vectors = await self._vectors.encode(sentences, dimensions=self._dimensions(values))
        rows = [base64.b64encode(row).decode() for row in vectors] if form == "base64" else vectors
        data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
        words = sum(len(sentence.split()) for sentence in sentences)
        usage = {"prompt_tokens": words, "total_tokens": words}
        return _json({"object": "list", "data": data, "model": self._name, "usage": usage})

    async def models(self, request: Request) -> Response:
        model = {"id": self._name, "object": "model", "created": self._started, "owned_by": "paranmt-hf"}
        return _json({"object": "list", "data": [model]})

    async def embed(self, request: Request) -> Response:
        values = await self._values(request)
        sentences = self._sentences(values, "inputs", cut=_flag(values, "truncate", False))
        normalized, dimensions = _flag(values, "normalize", True), self._dimensions(values)
        return _json(await self._vectors.encode(sentences, normalized=normalized, dimensions=dimensions))

    async def similarity(self, request: Request) -> Response:
        values = await self._values(request)
        inputs, parameters = values.get("inputs"), values.get("parameters") or {}
        if not isinstance(inputs, dict) or not isinstance(inputs.get("source_sentence"), str):
            raise InputError("inputs must be an object with source_sentence and sentences", option="inputs")
        cut = isinstance(parameters, dict) and _flag(parameters, "truncate", False)
        sentences = self._sentences(inputs, "source_sentence", cut=cut) + self._sentences(inputs, "sentences", cut=cut)
        vectors = await self._vectors.encode(sentences, normalized=False)
        return _json(np.asarray(self._vectors.encoder.similarity(vectors[:1], vectors[1:]), np.float32)[0])

    async def info(self, request: Request) -> Response:
        vectors, limits = self._vectors, self._limits
        model = {"model_id": self._name, "model_sha": vectors.revision, "model_dtype": "float32"}
        sizes = {"max_client_batch_size": limits.sentences, "max_characters": limits.characters}
        pooling = {"pooling": "mean"} if vectors.is_average else {}
        about = {"model_type": {"embedding": pooling}, "dimension": vectors.dimension, "version": __version__}
        return _json({**model, **about, **sizes, "max_body": limits.body})

    async def health(self, request: Request) -> Response:
        return Response()

    async def metrics(self, request: Request) -> Response:
        return Response(self.counts.text(), media_type="text/plain; version=0.0.4")

    async def _values(self, request: Request) -> dict[str, Any]:
        """Read the JSON object of a request."""
        body, largest = bytearray(), self._limits.body
        async for part in request.stream():
            body += part
            if len(body) > largest:
                raise HTTPException(413, f"a request may have {largest:,} bytes")
        try:
            values = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise InputError(f"a request must be JSON in UTF-8: {error}") from None
        if not isinstance(values, dict):
            raise InputError("a request must be a JSON object")
        if values.get("prompt_name") is not None:
            raise InputError("prompts cannot be chosen here; put the text before the sentence", option="prompt_name")
        return values

    def _sentences(self, values: dict[str, Any], field: str, *, cut: bool = False) -> list[str]:
        """Check the sentences of a request, and count them."""
        given, limits = values.get(field), self._limits
        sentences = [given] if isinstance(given, str) else given
        if not isinstance(sentences, list) or not sentences or not all(isinstance(each, str) for each in sentences):
            raise InputError(f"{field} must be a text or a list of texts, not of tokens", option=field)
        if len(sentences) > limits.sentences:
            raise HTTPException(413, f"{field} may have {limits.sentences:,} sentences, has {len(sentences):,}")
        longest = max(map(len, sentences))
        if longest > limits.characters and not cut:
            raise HTTPException(422, f"{field} may have {limits.characters:,} characters a sentence, has {longest:,}")
        self.counts.sentences += len(sentences)
        return [sentence[: limits.characters] for sentence in sentences] if cut else sentences

    def _dimensions(self, values: dict[str, Any]) -> int | None:
        given, largest = values.get("dimensions"), self._vectors.dimension
        if given is not None and not (type(given) is int and 1 <= given <= largest):
            raise InputError(f"dimensions must be from 1 to {largest}, was {brief(given)}", option="dimensions")
        return given


def _has_token(scope: Message, token: str) -> bool:
    given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    kind, _, found = given.partition(b" ")
    return secrets.compare_digest(found.strip(), token.encode()) and kind.lower() == b"bearer"


async def _refuse(request: Request, error: Exception) -> Response:
    """Answer with an error in the form of OpenAI or of text-embeddings-inference."""
    path = request.url.path
    status, text, field = 500, "a fault of the server, which its log shows", None
    if isinstance(error, HTTPException):
        status, text = error.status_code, error.detail
    elif isinstance(error, InputError):
        status, text, field = 400 if path == EMBEDDINGS else 422, str(error), error.option
    elif isinstance(error, ClientDisconnect):
        status, text = 400, "the request ended early"
    values: dict[str, Any] = {"error": text, "error_type": "Validation" if status < 500 else "Backend"}
    if path.startswith("/v1/"):
        codes = {401: "invalid_api_key", 404: "model_not_found" if path == EMBEDDINGS else "unknown_url"}
        kind = "invalid_request_error" if status < 500 else "server_error"
        values = {"error": {"message": text, "type": kind, "param": field, "code": codes.get(status)}}
    return _json(values, status, {"WWW-Authenticate": "Bearer"} if status == 401 else None)


def _json(values: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    written = orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(written, status, headers, media_type="application/json")


def _flag(values: dict[str, Any], name: str, default: bool) -> bool:
    given = values.get(name)
    if given is not None and not isinstance(given, bool):
        raise InputError(f"{name} must be true or false, was {brief(given)}", option=name)
    return default if given is None else given
