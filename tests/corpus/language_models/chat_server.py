"""A small server of chat completions on loopback: it answers, fails, stalls, breaks off, refuses, says too much."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

KEY = "sk-test-0123456789abcdef"


@dataclass
class Reply:
    """What the server sends.

    Attributes:
        text: The answer, or its chunks; with `body`, that is sent instead.
        fields: More fields of the message.
        half: Send the first half of the bytes and close the connection.
        stall: Seconds to wait first.
    """

    text: str | list | None = ""
    status: int = 200
    finish: str = "stop"
    logprobs: list[float] | None = None
    refusal: str | None = None
    fields: dict[str, str] = field(default_factory=dict)
    body: object = None
    headers: dict[str, str] = field(default_factory=dict)
    half: bool = False
    stall: float = 0.0
    usage: tuple[int, int] | None = (10, 5)


def failure(status, message, *, code=None, param=None, **headers):
    body = {"error": {"message": message, "code": code, "param": param, "type": "error"}}
    return Reply(status=status, body=body, headers={name.replace("_", "-"): text for name, text in headers.items()})


class ChatServer(ThreadingHTTPServer):
    """Answers a request by `answer(sentence, request, attempt)`, a `Reply` or a text.

    Args:
        answer: Gets what stands behind the last line break of the prompt, the whole request, and the number of times
            that this sentence was asked for before.
        key: The only key that is let in; None lets everybody in.
        models: What the list of models holds; None has no such list.
    """

    daemon_threads = True

    def __init__(self, answer, *, key=None, models=("small",), port=0):
        super().__init__(("127.0.0.1", port), _Handler)
        self.answer, self.key, self.models = answer, key, models
        self.lock = threading.Lock()
        self.asked, self.requests, self.times, self.most = Counter(), [], [], 0
        self.running = 0
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request, client_address):
        pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self._let_in():
            models = self.server.models
            known = [{"id": name, "object": "model", "created": 0, "owned_by": "us"} for name in models or ()]
            if models is None:
                self._send(404, {"detail": "Not Found"})
            else:
                self._send(200, {"object": "list", "data": known})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self._let_in():
            return
        if self.path != "/v1/chat/completions":
            self._send(404, {"detail": "Not Found"})
            return
        server, request = self.server, json.loads(body)
        sentence = request["messages"][-1]["content"].rpartition("\n")[2]
        with server.lock:
            attempt = server.asked[sentence]
            server.asked[sentence] += 1
            server.requests.append(request)
            server.times.append(time.monotonic())
            server.running += 1
            server.most = max(server.most, server.running)
        try:
            reply = server.answer(sentence, request, attempt)
            reply = Reply(reply) if isinstance(reply, str) else reply
            time.sleep(reply.stall)
        finally:
            # Before the answer, after which the client asks again.
            with server.lock:
                server.running -= 1
        self._reply(reply, request)

    def _let_in(self):
        if self.server.key is None or self.headers.get("Authorization") == f"Bearer {self.server.key}":
            return True
        given = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        self._send(401, {"error": {"message": f"Incorrect API key provided: {given}.", "code": "invalid_api_key"}})
        return False

    def _reply(self, reply, request):
        if reply.body is not None:
            return self._send(reply.status, reply.body, reply.headers)
        values = reply.logprobs if request.get("logprobs") else None
        tokens = [{"token": "x", "logprob": value, "bytes": None, "top_logprobs": []} for value in values or ()]
        choice = {
            "index": 0,
            "finish_reason": reply.finish,
            "message": {"role": "assistant", "content": reply.text, "refusal": reply.refusal, **reply.fields},
            "logprobs": {"content": tokens, "refusal": None} if values else None,
        }
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": request["model"], "choices": [choice]}
        if reply.usage:
            names = ("prompt_tokens", "completion_tokens", "total_tokens")
            body["usage"] = dict(zip(names, (*reply.usage, sum(reply.usage)), strict=True))
        return self._send(reply.status, body, reply.headers, half=reply.half)

    def _send(self, status, body, headers=None, *, half=False):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = "text/html" if isinstance(body, bytes) else "application/json"
        try:
            self.send_response(status)
            for name, value in {"Content-Type": kind, **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if half else content)
            if half:
                self.close_connection = True
        except OSError:
            self.close_connection = True

    def log_message(self, *_):
        pass


@contextmanager
def serving(answer, **options):
    """A server while a `with` block runs."""
    server = ChatServer(answer, **options)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        # Every client reads the certificates of all authorities.
        with mock.patch("ssl.create_default_context", cache(ssl.create_default_context)):
            yield server
    finally:
        server.shutdown()
        server.server_close()
