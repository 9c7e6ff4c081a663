"""A server that closes connections which keep it waiting, so that they cannot keep out others."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import uvicorn


class LimitedServer(uvicorn.Server):
    """A uvicorn server that limits the number of connections, and how long each may keep it waiting.

    A connection keeps the server waiting until the head of a request is complete, between two requests, and while the
    client does not read its answer. (The time for the body of a request is limited where it is read.)

    Args:
        config: Configuration of uvicorn.
        connections: Largest number of connections. If there are more, those that have kept the server waiting longest
            are closed.
        seconds: A connection that keeps the server waiting longer is closed.
        parent: Process without which the server ends; None if it is on its own.
    """

    def __init__(self, config: uvicorn.Config, *, connections: int, seconds: float, parent: int | None = None) -> None:
        super().__init__(config)
        self._most, self._seconds, self._parent = connections, seconds, parent
        # For each connection that keeps the server waiting: since when, and the state (its request, and the number of
        # bytes that it has not read) that has not changed since.
        self._waiting: dict[Any, tuple[float, tuple[Any, ...]]] = {}

    async def on_tick(self, counter: int) -> bool:
        """Close connections that keep the server waiting, every half second; return whether the server should end."""
        # uvicorn calls this ten times a second.
        if self._parent is not None and os.getppid() != self._parent:
            return True
        if counter % 5:
            return await super().on_tick(counter)
        now = asyncio.get_running_loop().time()
        waiting: dict[Any, tuple[float, tuple[Any, ...]]] = {}
        for connection in self.server_state.connections:
            answered, unread = connection.cycle, connection.transport.get_write_buffer_size()
            if answered is None or answered.response_complete or unread:
                state = (answered, unread)
                since, former = self._waiting.get(connection, (now, state))
                waiting[connection] = (since if former == state else now, state)
        oldest_first = sorted(waiting, key=lambda connection: waiting[connection][0])
        excess = len(self.server_state.connections) - self._most
        for place, connection in enumerate(oldest_first):
            if place < excess or now - waiting[connection][0] > self._seconds:
                connection.transport.abort()
        self._waiting = waiting
        return await super().on_tick(counter)
