"""At most so many requests and tokens in any minute."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

# A second more than a minute: a server counts when requests arrive, and they are not on their way equally long.
WINDOW = 61.0


class MinuteLimits:
    """Lets requests begin so that no minute has more of them, or of their tokens, than allowed.

    Args:
        requests: Most requests in any 60 seconds; None for any number.
        tokens: Most tokens in any 60 seconds; None for any number.
        clock: Gives the time in seconds.
    """

    def __init__(
        self, requests: int | None, tokens: int | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._requests, self._tokens, self._clock = requests, tokens, clock
        self._lock = threading.Lock()
        # Time, requests and tokens of what began in the last minute.
        self._begun: deque[tuple[float, int, int]] = deque()
        self._sums = [0, 0]
        self._paused = 0.0

    def begin(self, tokens: int) -> float:
        """Let a request begin, if it may.

        Args:
            tokens: What it will take, by an estimate.

        Returns:
            0 if it may begin, and is counted; else the seconds after which to ask again.
        """
        with self._lock:
            now = self._clock()
            if now < self._paused:
                return self._paused - now
            self._forget(now)
            over_requests = self._requests is not None and self._sums[0] + 1 > self._requests
            # One that is larger than the limit may begin when it is alone.
            over_tokens = self._tokens is not None and self._sums[1] > 0 and self._sums[1] + tokens > self._tokens
            if over_requests or over_tokens:
                return max(self._begun[0][0] + WINDOW - now, 1e-3)
            self._add(now, 1, tokens)
            return 0.0

    def correct(self, tokens: int) -> None:
        """Add tokens that the estimate of a request lacked; a negative number counts for nothing."""
        if tokens > 0:
            with self._lock:
                self._add(self._clock(), 0, tokens)

    def pause(self, seconds: float) -> None:
        """Let no request begin for so long: the server asked for it."""
        with self._lock:
            self._paused = max(self._paused, self._clock() + seconds)

    def _add(self, now: float, requests: int, tokens: int) -> None:
        if self._requests is None and self._tokens is None:
            return
        self._begun.append((now, requests, tokens))
        self._sums[0] += requests
        self._sums[1] += tokens

    def _forget(self, now: float) -> None:
        while self._begun and self._begun[0][0] <= now - WINDOW:
            _, requests, tokens = self._begun.popleft()
            self._sums[0] -= requests
            self._sums[1] -= tokens
