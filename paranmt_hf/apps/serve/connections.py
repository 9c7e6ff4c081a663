"""A server that closes connections which send nothing, or only half of a request, so that others get in."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn


class LimitedServer(uvicorn.Server):
    """A uvicorn server with a largest number of connections, and of seconds that each may keep it waiting.

    A connection keeps it waiting before the head of a request is complete, between two requests, and while a client
    does not read its answer. (The time of a body is limited by who reads it.) If there are too many connections, those
    that have kept it waiting longest are closed, so nobody keeps out others by opening connections.
    """

    def __init__(self, config: uvicorn.Config, *, connections: int, seconds: float) -> None:
        super().__init__(config)
        self._most, self._seconds = connections, seconds
        # When each connection began to keep the server waiting, and what it had sent and read by then.
        self._waiting: dict[Any, tuple[float, tuple[Any, ...]]] = {}

    async def on_tick(self, counter: int) -> bool:
        """Close connections now and then; true if the server should end."""
        # The server ticks ten times a second.
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
