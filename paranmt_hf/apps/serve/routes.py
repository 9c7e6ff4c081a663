"""The routes of `paranmt serve`: those of OpenAI and of text-embeddings-inference that give vectors."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
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
from paranmt_hf.text.text_lists import with_whole_characters
from paranmt_hf.util.local_page import App, Message, Receive, Send
from paranmt_hf.util.wording import brief
from paranmt_hf.version import __version__

EMBEDDINGS, MODELS, HEALTH = "/v1/embeddings", "/v1/models", "/health"
SLOWEST = 10_000  # Bytes of a body for which a client gets one more second
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
    """The ASGI application for an encoder.

    Args:
        vectors: The vectors of the encoder.
        names: Names by which clients know it, the main one first.
        any_model: Whether requests for other models are answered too.
        limits: Largest sizes of a request.
        token: What requests must bring; None if nothing.
        hosts: Names of hosts that requests may be for, so that a page of another site whose name leads here is
            rejected; None for any.
        origins: Sites whose pages may ask from a browser; `*` for any.
    """

    def __init__(
        self,
        vectors: SentenceVectors,
        names: Sequence[str],
        *,
        any_model: bool = False,
        limits: ServeLimits | None = None,
        token: str | None = None,
        hosts: Sequence[str] | None = None,
        origins: Sequence[str] = (),
    ) -> None:
        self.counts = Metrics()
        self._vectors, self._names, self._any_model = vectors, list(names), any_model
        self._limits, self._token = limits or ServeLimits(), token
        self._hosts = None if hosts is None else [name.lower() for name in hosts]
        self._started = int(time.time())
        post = {EMBEDDINGS: self.embeddings, "/embed": self.embed, "/similarity": self.similarity}
        get = {MODELS: self.models, "/info": self.info, HEALTH: self.health, "/metrics": self.metrics}
        self._known = {*post, *get}
        routes = [Route(path, handler, methods=["POST"]) for path, handler in post.items()]
        routes += [Route(path, handler) for path, handler in get.items()]
        # The names of models may have slashes.
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
        started, status, scope = time.perf_counter(), 500, {**scope, "path": path}

        async def send_noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            route = MODELS if path.startswith(f"{MODELS}/") else path
            self.counts.count(route if route in self._known else "other", status, time.perf_counter() - started)

    async def _admitted(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request that is for this host and brings the token; anything may ask for the health."""
        app: App = self._routes
        if scope["path"] != HEALTH:
            error = self._refusal(scope)
            app = self._routes if error is None else await _refuse(Request(scope), error)
        await app(scope, receive, send)

    def _refusal(self, scope: Message) -> HTTPException | None:
        """Why a request is not answered; None if it is."""
        if self._hosts is not None and _host_of(scope) not in self._hosts:
            return HTTPException(403, f"this server answers requests for {', '.join(self._hosts)}; --hosts adds names")
        if self._token is not None and not _has_token(scope, self._token):
            return HTTPException(401, "this server needs its token, as `Authorization: Bearer TOKEN`")
        return None

    async def embeddings(self, request: Request) -> Response:
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
        return _json({"object": "list", "data": [self._described(name) for name in self._names]})

    async def model(self, request: Request) -> Response:
        return _json(self._described(self._model(request.path_params["name"])))

    def _described(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._started, "owned_by": "paranmt-hf"}

    def _model(self, name: Any) -> str:  # noqa: ANN401 - what a client sent
        """Check the name of a model."""
        if not isinstance(name, str):
            raise InputError(f"model must be a text, was {brief(name)}", option="model")
        if name not in self._names and not self._any_model:
            known = " or ".join(map(repr, self._names))
            raise HTTPException(404, f"this server has the model {known}, not {brief(name)}")
        return name

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
        model = {"model_id": self._names[0], "model_sha": vectors.revision, "model_dtype": "float32"}
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
        body, limits = bytearray(), self._limits
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
        """Check the sentences of a request, and count them."""
        given, limits = values.get(field), self._limits
        sentences = [given] if isinstance(given, str) else given
        if sentences == []:
            raise InputError(f"{field} is an empty list; expected at least one text", option=field)
        if not isinstance(sentences, list) or not all(isinstance(each, str) for each in sentences):
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


def _parsed(body: bytearray) -> Any:  # noqa: ANN401 - JSON
    """Parse JSON; halves of surrogate pairs, which JavaScript sends escaped, become U+FFFD."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        if b"\\ud" not in body.lower():
            raise
    whole = json.dumps(json.loads(body), ensure_ascii=False)
    return orjson.loads(with_whole_characters([whole])[0])


def _host_of(scope: Message) -> str:
    """Name of the host that a request is for, without the port; empty if it names none."""
    given = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
    if given.startswith("["):
        return given.partition("]")[0] + "]"
    return given.partition(":")[0].lower()


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
        of_model = path == EMBEDDINGS or path.startswith(f"{MODELS}/")
        codes = {401: "invalid_api_key", 404: "model_not_found" if of_model else "unknown_url"}
        kind = "invalid_request_error" if status < 500 else "server_error"
        values = {"error": {"message": text, "type": kind, "param": field, "code": codes.get(status)}}
    # After these the rest of the body may still come, which nobody reads.
    headers = {401: {"WWW-Authenticate": "Bearer"}, 408: {"Connection": "close"}, 413: {"Connection": "close"}}
    # The router says which methods there are.
    allowed = error.headers if isinstance(error, HTTPException) and status == 405 else None
    return _json(values, status, headers.get(status) or allowed)


def _json(values: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    written = orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(written, status, headers, media_type="application/json")


def _flag(values: dict[str, Any], name: str, default: bool) -> bool:
    given = values.get(name)
    if given is not None and not isinstance(given, bool):
        raise InputError(f"{name} must be true or false, was {brief(given)}", option=name)
    return default if given is None else given
