"""Requests to a language model: cost, limits per minute, concurrency and retries."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.language_models.answers import Answer
from paranmt_hf.corpus.language_models.config import LanguageModelConfig, ModelTask
from paranmt_hf.corpus.language_models.server import PassingError, Server
from paranmt_hf.errors import InputError
from paranmt_hf.util.wording import counted

# Bytes of UTF-8 text for each token, about, whatever the model: four of English, two of most other languages, three of
# Chinese. And the tokens that a chat template puts around a request.
BYTES_PER_TOKEN, TEMPLATE_TOKENS = 3.0, 10


def tokens_of(text: str) -> int:
    """Estimate the tokens of a text."""
    return 1 + int(len(text.encode("utf8", "surrogatepass")) / BYTES_PER_TOKEN)


@dataclass(frozen=True)
class Cost:
    """An estimate of requests (with equal sentences), tokens of requests and answers, and the price if it is known."""

    requests: int
    input_tokens: int
    output_tokens: int
    price: float | None

    def summary(self) -> str:
        """Describe the cost in one line."""
        line = (
            f"{counted(self.requests, 'request')}, about {self.input_tokens:,} tokens of requests and "
            f"{self.output_tokens:,} of answers"
        )
        return line if self.price is None else f"{line}, which cost about {money(self.price)}"


def money(amount: float) -> str:
    """Format an amount of money, with four decimals if it is below 0.1."""
    return f"{amount:,.2f}" if amount >= 0.1 else f"{amount:.4f}"


def price(config: LanguageModelConfig, input_tokens: int, output_tokens: int) -> float | None:
    """Price of tokens; None if the settings have no prices."""
    if config.price_input is None or config.price_output is None:
        return None
    return (input_tokens * config.price_input + output_tokens * config.price_output) / 1e6


def cost_of(config: LanguageModelConfig, task: ModelTask, tables: Iterable[pa.Table | pa.RecordBatch]) -> Cost:
    """Estimate the cost of a corpus: a paraphrase is as long as its sentence, a translation as the reference."""
    rows, asked, answered = 0, 0, 0
    for table in tables:
        rows += table.num_rows
        asked += _bytes(table.column("source" if task == "translate" else "reference"))
        answered += _bytes(table.column("reference"))
    around = TEMPLATE_TOKENS + tokens_of(config.template(task).replace("{sentence}", ""))
    input_tokens, output_tokens = rows * around + int(asked / BYTES_PER_TOKEN), int(answered / BYTES_PER_TOKEN)
    return Cost(rows, input_tokens, output_tokens, price(config, input_tokens, output_tokens))


def _bytes(column: pa.Array | pa.ChunkedArray) -> int:
    return int(pc.sum(pc.cast(pc.binary_length(column), pa.int64())).as_py() or 0)


# A second more than a minute: a server counts when requests arrive, and they are not on their way equally long.
WINDOW = 61.0


class MinuteLimits:
    """Limits the requests and tokens of each minute; None is no limit. `clock` gives the time in seconds."""

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
        """Count a request with its estimated tokens and return 0; or return the seconds to wait."""
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
        """Add the tokens by which the estimate of a request was too low; negative numbers are ignored."""
        if tokens > 0:
            with self._lock:
                self._add(self._clock(), 0, tokens)

    def pause(self, seconds: float) -> None:
        """Delay all requests for some seconds, as the server asks."""
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


FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0  # Seconds before the second try; doubled with each further one
LONGEST_OBEYED = 3600.0  # A longer wait that a server asks for ends the run


class _Stopped(Exception):
    """The answer is no longer needed."""


class Asker:
    """Requests batches of answers with several threads, within limits over all batches."""

    def __init__(self, server: Server, config: LanguageModelConfig, limits: MinuteLimits) -> None:
        self._server, self._config, self._limits = server, config, limits

    def ask(self, prompts: Sequence[str]) -> Iterator[tuple[int, Answer]]:
        """Ask for answers; yields the index of a prompt and its answer, as they come.

        The next request begins only when the caller asks for the next answer: if it keeps each one, a kill loses at
        most `concurrency` of them.
        """
        stop, pool, waiting = threading.Event(), ThreadPoolExecutor(self._config.concurrency), enumerate(prompts)

        def begin(count: int) -> dict[Future[Answer], int]:
            return {pool.submit(self._answer, prompt, stop): index for index, prompt in islice(waiting, count)}

        running = begin(self._config.concurrency)
        try:
            while running:
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    answer = done.result()
                    yield running.pop(done), answer
                    running |= begin(1)
        except Exception:
            # Nothing more begins, but the answers to requests in progress may have been paid for.
            stop.set()
            for future, index in running.items():
                if future.exception() is None:
                    yield index, future.result()
            raise
        finally:
            stop.set()
            pool.shutdown(wait=False)

    def _answer(self, prompt: str, stop: threading.Event) -> Answer:
        """Repeat a request until there is an answer."""
        for attempt in range(self._config.retries + 1):
            tokens = tokens_of(prompt) + tokens_of(prompt.rpartition("\n")[2])
            while (seconds := self._limits.begin(tokens)) > 0:
                _sleep(stop, seconds)
            if stop.is_set():
                raise _Stopped
            try:
                answer = self._server.ask(prompt)
            except PassingError as error:
                self._wait(stop, error, attempt)
                continue
            self._limits.correct((answer.input_tokens or 0) + (answer.output_tokens or 0) - tokens)
            return answer
        raise AssertionError("the last try ends otherwise")

    def _wait(self, stop: threading.Event, error: PassingError, attempt: int) -> None:
        """Wait before the next try, or give up."""
        if attempt == self._config.retries:
            times = f"{attempt + 1} times in a row" if attempt else "and `retries` is 0"
            raise InputError(
                f"{error.reason}, {times}; what was answered is kept, run the same command again"
            ) from None
        if error.wait is not None and error.wait > LONGEST_OBEYED:
            raise InputError(
                f"{error.reason}; it accepts no request for {error.wait:,.0f} seconds. What was answered is kept: run "
                "the same command again then"
            ) from None
        # Requests that failed together should not come again together.
        doubled = min(FIRST_WAIT * 2.0**attempt, LONGEST_WAIT) * random.uniform(0.75, 1.25)
        if error.wait is not None:
            # A server that says when means all requests.
            self._limits.pause(error.wait)
            return
        if error.crowded:
            self._limits.pause(doubled)
        else:
            _sleep(stop, doubled)


def _sleep(stop: threading.Event, seconds: float) -> None:
    if stop.wait(seconds):
        raise _Stopped
