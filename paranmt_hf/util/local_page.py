"""Serving of a page for the person at this computer only: on loopback, protected by a token in its address."""

from __future__ import annotations

import errno
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from paranmt_hf.errors import InputError
from paranmt_hf.util.optional import require

HOST = "127.0.0.1"
HEADERS = (
    # The page loads scripts, styles and data from this server alone, and no other site may show it in a frame.
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; form-action 'self'",
    ),
    # Browsers take files for what their media types say, and do not guess.
    (b"x-content-type-options", b"nosniff"),
    # Links do not tell other sites the address of the page, which holds the token.
    (b"referrer-policy", b"no-referrer"),
    # Answers are not cached, because the data may change at any time.
    (b"cache-control", b"no-store"),
)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


def new_token() -> str:
    """Return a random secret token of 32 characters."""
    return secrets.token_urlsafe(24)


def listen(port: int, host: str = HOST, *, together: bool = False) -> socket.socket:
    """Return a socket that listens on a port, by default on loopback; the port 0 stands for any free port.

    With `together`, several sockets of this user may listen on one port. Linux shares out connections among them.
    """
    if not 0 <= port <= 65535:
        raise InputError(f"port must be from 0 to 65535, was {port}; 0 is any that is free", option="port")
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise InputError(f"host {host!r} is no address", option="host") from None
    # The protocol is given because asyncio sets TCP_NODELAY only on sockets of TCP: small answers are then sent at
    # once, without waiting until the receipt of the previous ones is confirmed.
    listening = socket.socket(family, kind, protocol)
    # The option makes the port of a server that ended a moment ago usable again. On Windows it is left out, because
    # there it would also allow a port that another program is using.
    if os.name == "posix":
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if together:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listening.bind(target)
        listening.listen(128)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError(f"host {host!r} is no address of this computer", option="host") from None
        in_use = "is taken by another program" if error.errno == errno.EADDRINUSE else None
        reason = in_use or f"cannot be used: {error.strerror}"
        raise InputError(f"port {port} {reason}; choose another one, or 0 for a free one", option="port") from None
    return listening


def address(listening: socket.socket, token: str, **parameters: str) -> str:
    """Return the address of the page, which includes its token and other URL parameters."""
    return f"http://{HOST}:{listening.getsockname()[1]}/?{urlencode({'token': token, **parameters})}"


def serve(app: App, listening: socket.socket, token: str) -> None:
    """Serve an ASGI application on an open socket until Ctrl-C, only to requests with the token (see `guarded`)."""
    uvicorn = require("uvicorn", "annotate")
    port = listening.getsockname()[1]
    config = uvicorn.Config(
        guarded(app, token, port), log_level="warning", access_log=False, lifespan="off", ws="none"
    )
    # Ctrl-C is the intended way to stop the page.
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])


def guarded(app: App, token: str, port: int) -> App:
    """Wrap an ASGI application so that it answers only requests of its own page; all others get the status 403.

    - A request must bring the token: in its address, or in the cookie that the answer to such a request sets.
    - Its `Host` header must be this address. This rejects a page of another site whose name resolves to 127.0.0.1.
    - A request that may change something (other than GET and HEAD) must come from this page, by its `Origin` header.

    Browsers share cookies between all ports of a computer, so the name of the cookie has the port in it.
    """
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse

    name, hosts = f"paranmt-{port}", (f"{HOST}:{port}", f"localhost:{port}")

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        host, given = request.headers.get("host"), request.query_params.get("token")
        tokens = (given or "", request.cookies.get(name, ""))
        refused = None
        if host not in hosts:
            refused = "this page is served to its own address only"
        elif not any(secrets.compare_digest(each.encode(), token.encode()) for each in tokens):
            refused = "open the address that the command printed: it holds a token"
        elif (
            request.method not in ("GET", "HEAD")
            and request.headers.get("origin", f"http://{host}") != f"http://{host}"
        ):
            refused = "only this page itself may change anything"
        if refused is not None:
            await PlainTextResponse(f"{refused}\n", 403)(scope, receive, send)
            return
        cookie = f"{name}={token}; Path=/; HttpOnly; SameSite=Strict".encode()

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
                if given is not None:
                    message["headers"].append((b"set-cookie", cookie))
            await send(message)

        await app(scope, receive, send_guarded)

    return answer
