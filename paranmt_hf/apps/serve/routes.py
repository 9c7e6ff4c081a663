"""The routes of `paranmt serve`, which are those of OpenAI and of text-embeddings-inference for vectors."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import mmap
import secrets
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from paranmt_hf.apps.serve.vectors import SentenceVectors, ServeLimits
from paranmt_hf.errors import InputError
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.text_lists import with_whole_characters
from paranmt_hf.util.local_page import App, Message, Receive, Send
from paranmt_hf.util.wording import brief
from paranmt_hf.version import __version__

EMBEDDINGS, MODELS, HEALTH = "/v1/embeddings", "/v1/models", "/health"
OTHER = "other"  # What requests to any other route are counted under
SLOWEST = 10_000  # Number of bytes of its body for which a request gets one second more
STATUSES = 600  # Every HTTP status is less


class Metrics:
    """Counts of requests and sentences, and of the time that answers took, for Prometheus.

    They are in memory that processes share that are forked later. Each process counts in places of its own, and `text`
    has the sums.

    Args:
        routes: The routes.
        workers: Number of processes.

    Attributes:
        worker: Number of this process, from 0.
    """

    def __init__(self, routes: Iterable[str], workers: int = 1) -> None:
        self._number_of = {route: number for number, route in enumerate(sorted(routes))}
        self.worker = 0
        self._requests = _shared((workers, len(self._number_of), STATUSES), np.int64)
        self._seconds = _shared((workers, len(self._number_of)), np.float64)
        self._sentences = _shared((workers,), np.int64)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request to a route that was answered with an HTTP status after some seconds."""
        number = self._number_of[route]
        self._requests[self.worker, number, status] += 1
        self._seconds[self.worker, number] += seconds

    def count_sentences(self, number: int) -> None:
        """Count sentences of requests."""
        self._sentences[self.worker] += number

    def text(self) -> str:
        """Return all figures in the text format of Prometheus."""
        requests, seconds = self._requests.sum(axis=0), self._seconds.sum(axis=0)
        answers = requests.sum(axis=1)
        lines = ["# TYPE paranmt_requests_total counter"]
        for route, number in self._number_of.items():
            for status in np.flatnonzero(requests[number]):
                lines.append(f'paranmt_requests_total{{route="{route}",status="{status}"}} {requests[number, status]}')
        lines.append("# TYPE paranmt_sentences_total counter")
        lines.append(f"paranmt_sentences_total {self._sentences.sum()}")
        lines.append("# TYPE paranmt_request_seconds summary")
        for route, number in self._number_of.items():
            if answers[number]:
                lines.append(f'paranmt_request_seconds_sum{{route="{route}"}} {seconds[number]:.6f}')
                lines.append(f'paranmt_request_seconds_count{{route="{route}"}} {answers[number]}')
        return "\n".join(lines) + "\n"


def _shared(shape: tuple[int, ...], kind: type[np.generic]) -> np.ndarray:
    """Return an array of zeros in memory that is shared with processes that are forked later."""
    memory = mmap.mmap(-1, math.prod(shape) * np.dtype(kind).itemsize)
    return np.frombuffer(memory, kind).reshape(shape)


class ServeApp:
    """The ASGI application that answers with vectors of an encoder.

    Args:
        vectors: The vectors of the encoder.
        names: Names of the model for clients, the main one first.
        limits: Largest sizes of requests and connections; None for the defaults.
        token: Token that requests must bring; None if they need none.
        hosts: Names of this server that requests may have in their `Host` header; None for any. This rejects a page of
            another site whose name resolves to this computer.
        origins: Sites whose pages may send requests from a browser; `*` for any.
        workers: Number of processes that answer.
    """

    def __init__(
        self,
        vectors: SentenceVectors,
        names: Sequence[str],
        *,
        limits: ServeLimits | None = None,
        token: str | None = None,
        hosts: Sequence[str] | None = None,
        origins: Sequence[str] = (),
        workers: int = 1,
    ) -> None:
        self._vectors = vectors
        self._names = list(names)
        self._limits = limits or ServeLimits()
        self._token = token
        self._hosts = None if hosts is None else [name.lower() for name in hosts]
        self._started = int(time.time())
        routes = [
            Route(EMBEDDINGS, self.embeddings, methods=["POST"]),
            Route("/embed", self.embed, methods=["POST"]),
            Route("/similarity", self.similarity, methods=["POST"]),
            Route("/same-meaning", self.same_meaning, methods=["POST"]),
            Route(MODELS, self.models),
            Route("/info", self.info),
            Route(HEALTH, self.health),
            Route("/metrics", self.metrics),
        ]
        self._known = {route.path for route in routes}
        self.counts = Metrics([*self._known, OTHER], workers)
        # The name is a `path` because names of models may contain slashes.
        routes.append(Route(f"{MODELS}/{{name:path}}", self.model))
        refused = dict.fromkeys((InputError, HTTPException, ClientDisconnect, Exception), _refuse)
        self._routes = Starlette(routes=routes, exception_handlers=refused)
        self._app: App = self._admitted
        if origins:
            self._app = CORSMiddleware(
                self._admitted, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["*"]
            )

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, and count it."""
        if scope["type"] != "http":
            return await self._routes(scope, receive, send)
        path = scope["path"].rstrip("/") or "/"
        started = time.perf_counter()
        status = 500

        async def send_noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app({**scope, "path": path}, receive, send_noted)
        finally:
            route = MODELS if path.startswith(f"{MODELS}/") else path
            if route not in self._known:
                route = OTHER
            self.counts.count(route, status, time.perf_counter() - started)

    async def _admitted(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request that is for this host and brings the token, or that asks for the health; refuse others."""
        app: App = self._routes
        if scope["path"] != HEALTH:
            request = Request(scope)
            host = request.headers.get("host", "").lower()
            # The port is removed.
            host = f"{host.partition(']')[0]}]" if host.startswith("[") else host.partition(":")[0]
            if self._hosts is not None and host not in self._hosts:
                known = ", ".join(self._hosts)
                app = _refuse(request, HTTPException(403, f"this server is {known}; --hosts adds names"))
            elif self._token is not None:
                kind, _, found = request.headers.get("authorization", "").partition(" ")
                # Bytes are compared, because text with other characters than ASCII cannot be in constant time.
                is_known = secrets.compare_digest(found.strip().encode(), self._token.encode())
                if not is_known or kind.lower() != "bearer":
                    error = HTTPException(401, "this server needs its token, as `Authorization: Bearer TOKEN`")
                    app = _refuse(request, error)
        await app(scope, receive, send)

    async def embeddings(self, request: Request) -> Response:
        """Answer with the vectors of texts, in the form of OpenAI's embeddings."""
        values = await self._values(request)
        name = self._model(values.get("model", self._names[0]))
        form = values.get("encoding_format") or "float"
        if form not in ("float", "base64"):
            raise InputError(f"encoding_format must be float or base64, was {brief(form)}", option="encoding_format")
        sentences = self._sentences(values, "input")
        vectors = await self._vectors.encode(sentences, dimensions=self._dimensions(values))
        rows = [base64.b64encode(row).decode() for row in vectors] if form == "base64" else vectors
        data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
        words = sum(len(sentence.split()) for sentence in sentences)
        usage = {"prompt_tokens": words, "total_tokens": words}
        return _json({"object": "list", "data": data, "model": name, "usage": usage})

    async def models(self, request: Request) -> Response:
        """Answer with the list of models, one for each name."""
        return _json({"object": "list", "data": [self._described(name) for name in self._names]})

    async def model(self, request: Request) -> Response:
        """Answer with the description of one model."""
        return _json(self._described(self._model(request.path_params["name"])))

    def _described(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._started, "owned_by": "paranmt-hf"}

    def _model(self, name: Any) -> str:  # noqa: ANN401 - what a client sent
        """Return the name of a model if it is one of this server's; reject others."""
        if not isinstance(name, str):
            raise InputError(f"model must be a text, was {brief(name)}", option="model")
        if name not in self._names:
            known = " or ".join(map(repr, self._names))
            raise HTTPException(404, f"this server has the model {known}, not {brief(name)}")
        return name

    async def embed(self, request: Request) -> Response:
        """Answer with the vectors of texts, in the form of text-embeddings-inference."""
        values = await self._values(request)
        sentences = self._sentences(values, "inputs", cut=_flag(values, "truncate", False))
        normalized, dimensions = _flag(values, "normalize", True), self._dimensions(values)
        return _json(await self._vectors.encode(sentences, normalized=normalized, dimensions=dimensions))

    async def similarity(self, request: Request) -> Response:
        """Answer with the similarity of a sentence to each of several others."""
        values = await self._values(request)
        inputs, parameters = values.get("inputs"), values.get("parameters") or {}
        if not isinstance(inputs, dict) or not isinstance(inputs.get("source_sentence"), str):
            raise InputError("inputs must be an object with source_sentence and sentences", option="inputs")
        cut = isinstance(parameters, dict) and _flag(parameters, "truncate", False)
        sentences = self._sentences(inputs, "source_sentence", cut=cut) + self._sentences(inputs, "sentences", cut=cut)
        vectors = await self._vectors.encode(sentences, normalized=False)
        return _json(np.asarray(self._vectors.encoder.similarity(vectors[:1], vectors[1:]), np.float32)[0])

    async def same_meaning(self, request: Request) -> Response:
        """Answer whether each pair of sentences means the same, with its probability and the differences."""
        values = await self._values(request)
        first, second = self._sentences(values, "first"), self._sentences(values, "second")
        threshold = values.get("threshold", 0.5)
        if not isinstance(threshold, int | float) or isinstance(threshold, bool):
            raise InputError(f"threshold must be a number, was {brief(threshold)}", option="threshold")
        language = values.get("language", ENGLISH)
        if not isinstance(language, str):
            raise InputError(f"language must be a text such as en, was {brief(language)}", option="language")
        found = await self._vectors.same_meaning(first, second, threshold, language)
        return _json([{"same": each.same, "probability": each.probability, "reasons": each.reasons} for each in found])

    async def info(self, request: Request) -> Response:
        """Answer with information about the model and the limits of requests."""
        return _json(
            {
                "model_id": self._names[0],
                "model_sha": self._vectors.revision,
                "model_dtype": "float32",
                "model_type": {"embedding": {"pooling": "mean"} if self._vectors.is_average else {}},
                "dimension": self._vectors.dimension,
                "version": __version__,
                "max_client_batch_size": self._limits.sentences,
                "max_characters": self._limits.characters,
                "max_body": self._limits.body,
            }
        )

    async def health(self, request: Request) -> Response:
        """Answer that the server is running, with an empty body."""
        return Response()

    async def metrics(self, request: Request) -> Response:
        """Answer with the figures for Prometheus."""
        return Response(self.counts.text(), media_type="text/plain; version=0.0.4")

    async def _values(self, request: Request) -> dict[str, Any]:
        """Read the body of a request, a JSON object, within the limits of size and time."""
        body = bytearray()
        limits = self._limits
        latest = asyncio.get_running_loop().time() + limits.seconds
        try:
            async with asyncio.timeout_at(latest) as timeout:
                async for part in request.stream():
                    body += part
                    if len(body) > limits.body:
                        raise HTTPException(413, f"a request may have {limits.body:,} bytes")
                    timeout.reschedule(latest + len(body) / SLOWEST)
        except TimeoutError:
            raise HTTPException(
                408,
                f"the body of a request must arrive within {limits.seconds} seconds, and one more for each "
                f"{SLOWEST:,} bytes",
            ) from None
        try:
            values = _parsed(body)
        except (ValueError, RecursionError) as error:
            raise InputError(f"a request must be JSON in UTF-8: {error}") from None
        if not isinstance(values, dict):
            raise InputError("a request must be a JSON object")
        if values.get("prompt_name") is not None:
            raise InputError("prompts cannot be chosen here; put the text before the sentence", option="prompt_name")
        return values

    def _sentences(self, values: dict[str, Any], field: str, *, cut: bool = False) -> list[str]:
        """Return the sentences of a request, and count them; reject what is not text or is beyond the limits.

        Args:
            values: Values of the request.
            field: Name of the value that is a sentence or a list of sentences.
            cut: Whether to cut sentences that are too long, instead of rejecting them.
        """
        given = values.get(field)
        limits = self._limits
        sentences = [given] if isinstance(given, str) else given
        if given is None:
            raise InputError(f"the request lacks {field}, a text or a list of texts", option=field)
        if sentences == []:
            raise InputError(f"{field} is an empty list; expected at least one text", option=field)
        if not isinstance(sentences, list) or not all(isinstance(each, str) for each in sentences):
            raise InputError(f"{field} must be a text or a list of texts, not of tokens", option=field)
        if len(sentences) > limits.sentences:
            raise HTTPException(413, f"{field} may have {limits.sentences:,} sentences, has {len(sentences):,}")
        longest = max(map(len, sentences))
        if longest > limits.characters and not cut:
            raise HTTPException(422, f"{field} may have {limits.characters:,} characters a sentence, has {longest:,}")
        self.counts.count_sentences(len(sentences))
        return [sentence[: limits.characters] for sentence in sentences] if cut else sentences

    def _dimensions(self, values: dict[str, Any]) -> int | None:
        """Return how many dimensions a request asks for; None for all."""
        given, largest = values.get("dimensions"), self._vectors.dimension
        if given is not None and not (type(given) is int and 1 <= given <= largest):
            raise InputError(f"dimensions must be from 1 to {largest}, was {brief(given)}", option="dimensions")
        return given


def _parsed(body: bytearray) -> Any:  # noqa: ANN401 - JSON
    """Parse JSON; halves of surrogate pairs, which JavaScript sends escaped, become U+FFFD."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        if b"\\ud" not in body.lower():
            raise
    whole = json.dumps(json.loads(body), ensure_ascii=False)
    return orjson.loads(with_whole_characters([whole])[0])


def _refuse(request: Request, error: Exception) -> Response:
    """Return the answer about an error, in the form of OpenAI or of text-embeddings-inference, by the route."""
    path = request.url.path
    status = 500
    text = "a fault of the server, which its log shows"
    field = None
    headers: dict[str, str] = {}
    if isinstance(error, HTTPException):
        status = error.status_code
        text = error.detail
        # The router puts the allowed methods into a header.
        headers = dict(error.headers or {})
    elif isinstance(error, InputError):
        status = 400 if path == EMBEDDINGS else 422
        text = str(error)
        field = error.option
    elif isinstance(error, ClientDisconnect):
        status = 400
        text = "the request ended early"
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status in (408, 413):
        # The connection is closed because nobody reads the rest of the body, which may still come.
        headers["Connection"] = "close"
    if not path.startswith("/v1/"):
        return _json({"error": text, "error_type": "Validation" if status < 500 else "Backend"}, status, headers)
    code = None
    if status == 401:
        code = "invalid_api_key"
    elif status == 404:
        code = "model_not_found" if path.startswith((EMBEDDINGS, f"{MODELS}/")) else "unknown_url"
    kind = "invalid_request_error" if status < 500 else "server_error"
    return _json({"error": {"message": text, "type": kind, "param": field, "code": code}}, status, headers)


def _json(values: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    written = orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(written, status, headers, media_type="application/json")


def _flag(values: dict[str, Any], name: str, default: bool) -> bool:
    """Return a boolean value of a request, or the default if it is missing."""
    given = values.get(name)
    if given is not None and not isinstance(given, bool):
        raise InputError(f"{name} must be true or false, was {brief(given)}", option=name)
    return default if given is None else given
