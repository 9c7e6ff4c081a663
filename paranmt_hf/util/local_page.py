"""A page for the person at this computer: served on loopback, protected by a token in its address."""

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
# Nothing from elsewhere, no frames, no guessing of types; what is shown may change at any time.
HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; form-action 'self'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


def new_token() -> str:
    """Generate a secret token of 32 characters."""
    return secrets.token_urlsafe(24)


def listen(port: int, host: str = HOST) -> socket.socket:
    """Open a port, by default on loopback; 0 is any free port."""
    if not 0 <= port <= 65535:
        raise InputError(f"port must be from 0 to 65535, was {port}; 0 is any that is free", option="port")
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise InputError(f"host {host!r} is no address", option="host") from None
    # asyncio sends small answers at once, without waiting for the last one's receipt, if it knows that this is TCP.
    taken = socket.socket(family, kind, protocol)
    # A port of a server that ended a moment ago is free; on Windows one that is in use would be, too.
    if os.name == "posix":
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(place)
        taken.listen(128)
    except OSError as error:
        taken.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError(f"host {host!r} is no address of this computer", option="host") from None
        taken_by = "is taken by another program" if error.errno == errno.EADDRINUSE else None
        reason = taken_by or f"cannot be used: {error.strerror}"
        raise InputError(f"port {port} {reason}; choose another one, or 0 for a free one", option="port") from None
    return taken


def address(listening: socket.socket, token: str, **parameters: str) -> str:
    """The address of the page, including its token."""
    return f"http://{HOST}:{listening.getsockname()[1]}/?{urlencode({'token': token, **parameters})}"


def serve(app: App, listening: socket.socket, token: str) -> None:
    """Serve an ASGI application until Ctrl-C, only to browsers that know the token."""
    uvicorn = require("uvicorn", "annotate")
    port = listening.getsockname()[1]
    config = uvicorn.Config(
        guarded(app, token, port), log_level="warning", access_log=False, lifespan="off", ws="none"
    )
    # Ctrl-C is the intended way to stop the page.
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])


def guarded(app: App, token: str, port: int) -> App:
    """Answer only requests with the token, in the address or in the cookie that the first answer sets.

    A request must also name this very host: a page of another site whose name leads to 127.0.0.1 is rejected. So is a
    request of another page that would change something: to cookies, another port of this computer is the same site;
    therefore the port is in the cookie's name.
    """
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse

    name, hosts = f"paranmt-{port}", (f"{HOST}:{port}", f"localhost:{port}")

    async def answer(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        host, given = request.headers.get("host"), request.query_params.get("token")
        shown = (given or "", request.cookies.get(name, ""))
        refused = None
        if host not in hosts:
            refused = "this page is served to its own address only"
        elif not any(secrets.compare_digest(each.encode(), token.encode()) for each in shown):
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
