"""`paranmt serve`: serves the vectors of an encoder over HTTP."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from paranmt_hf.apps.serve.vectors import SentenceVectors, ServeLimits
from paranmt_hf.apps.serve.workers import MOST_WORKERS, listening_sockets, run_workers
from paranmt_hf.errors import InputError, refuse
from paranmt_hf.hub.repository import plain_name
from paranmt_hf.util.files import check_regular
from paranmt_hf.util.local_page import HOST
from paranmt_hf.util.markers import Group
from paranmt_hf.util.optional import check_installed

if TYPE_CHECKING:
    from paranmt_hf.apps.serve.routes import ServeApp

logger = logging.getLogger(__name__)
TOKEN_VARIABLE = "PARANMT_SERVE_TOKEN"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve_encoder(
    encoder: str,
    *,
    host: str = HOST,
    port: int = 8000,
    names: Sequence[str] = (),
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    token_file: Path | None = None,
    workers: int = 1,
    limits: Annotated[ServeLimits | None, Group()] = None,
    opened: Callable[[str], None] = logger.info,
) -> None:
    """Serve the vectors of an encoder over HTTP until Ctrl-C: the routes of OpenAI and of text-embeddings-inference.

    An average (WORD, TRIGRAM, their combinations, Sent2Vec) needs no torch; any other encoder is loaded with torch.
    If the environment variable PARANMT_SERVE_TOKEN or `token_file` holds a token, requests must bring it.

    Args:
        encoder: Folder or Hub id of the encoder; `small`, `base`, `de`, ... are those of the package.
        host: Address to listen on. The default can be reached from this computer only, 0.0.0.0 from others too.
        port: Port; 0 for any free one.
        names: Names of the model for clients, the main one first, such as a name that a client knows; by default the
            name of its folder, or its Hub id.
        hosts: Names under which requests may reach this server, such as that of a proxy. A server that can be reached
            from this computer only always accepts `localhost` and its addresses; another one accepts any name if none
            is given.
        origins: Sites whose pages may send requests from a browser (CORS), such as https://example.org; `*` for any.
        token_file: File with a token that requests must bring, as `Authorization: Bearer TOKEN`.
        workers: Number of processes that answer on the port, for about as many cores. They share the tables of the
            encoder, which must be an average. Windows has one only.
        limits: Largest sizes of requests, and limits of connections.
        opened: Called with the address when the server listens.
    """
    for package in ("orjson", "starlette", "uvicorn"):
        check_installed(package, "serve")
    from paranmt_hf.apps.serve.routes import ServeApp

    for origin in origins:
        if not re.fullmatch(r"\*|https?://[^/\s?#]+", origin):
            raise InputError(f"an origin is like https://example.org, or *, was {origin!r}", option="origins")
    possible = 1 <= workers <= MOST_WORKERS
    refuse(not possible, f"workers must be from 1 to {MOST_WORKERS}, was {workers}", option="workers")
    refuse(workers > 1 and not hasattr(os, "fork"), "this system can have one worker only", option="workers")
    token = _token(token_file)
    limits = limits or ServeLimits()
    known = list(hosts) or None
    if host in LOOPBACK:
        # These are the names that requests from this computer have in their `Host` header.
        known = [HOST, "localhost", "[::1]", *hosts]
    with ExitStack() as opened_sockets:
        sockets = [opened_sockets.enter_context(each) for each in listening_sockets(workers, port, host)]
        vectors = SentenceVectors.load(encoder, workers=workers)
        vectors.warm_up()
        names = list(names) or [plain_name(encoder)]
        app = ServeApp(vectors, names, limits=limits, token=token, hosts=known, origins=origins, workers=workers)
        shown = f"[{host}]" if ":" in host else host
        opened(f"{names[0]} ({vectors.dimension} dimensions) at http://{shown}:{sockets[0].getsockname()[1]}")
        if token is None and host not in LOOPBACK:
            opened("everyone who reaches this address can use it; --token-file makes it ask for a token")
        if workers > 1:
            opened(f"{workers} processes answer")
        opened("Ctrl-C ends it")
        # Ctrl-C is the intended way to end the server.
        with suppress(KeyboardInterrupt):
            _answer(app, sockets, limits)


def _answer(app: ServeApp, sockets: Sequence[socket.socket], limits: ServeLimits) -> None:
    """Answer requests in a process for each socket, or in this one if there is one socket, until a signal comes."""
    import uvicorn

    from paranmt_hf.apps.serve.connections import LimitedServer

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_keep_alive=limits.seconds,
        # After Ctrl-C, requests that are being answered get this number of seconds.
        timeout_graceful_shutdown=5,
    )
    parent = os.getpid() if len(sockets) > 1 else None

    def answer(number: int) -> None:
        app.counts.worker = number
        server = LimitedServer(config, connections=limits.connections, seconds=limits.seconds, parent=parent)
        with suppress(KeyboardInterrupt):
            server.run(sockets=[sockets[number]])

    if parent is None:
        answer(0)
    else:
        run_workers(len(sockets), answer, logger.warning)


def _token(file: Path | None) -> str | None:
    """Return the token from a file or the environment, None if neither has one; errors do not show the token."""
    where = TOKEN_VARIABLE
    found = os.environ.get(TOKEN_VARIABLE)
    option = None
    if file is not None:
        where = str(file)
        option = "token_file"
        try:
            check_regular(file.expanduser())
            found = file.expanduser().read_text("ascii", errors="replace")
        except OSError as error:
            raise InputError(f"cannot read {file}: {error.strerror}", option=option, path=file) from None
    if found is None:
        return None
    token = found.strip()
    if not re.fullmatch("[!-~]+", token):
        raise InputError(f"{where} must hold one token of ASCII characters without blanks", option=option, path=file)
    return token
