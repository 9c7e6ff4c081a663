"""Many requests at the same time: within limits, again where one failed, and in whatever order they end."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Protocol

from paranmt_hf.corpus.language_models.config import LanguageModelConfig
from paranmt_hf.corpus.language_models.cost import tokens_of
from paranmt_hf.corpus.language_models.kept_answers import Answer
from paranmt_hf.corpus.language_models.limits import MinuteLimits
from paranmt_hf.corpus.language_models.server import PassingError
from paranmt_hf.errors import InputError

# Seconds before the second try; doubled with each further one.
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
# A server that wants a longer wait is better asked another day.
LONGEST_OBEYED = 3600.0


class Asks(Protocol):
    """Asks a language model once."""

    def ask(self, prompt: str) -> Answer:
        """Ask once; see `Server.ask`."""
        ...


class _Stopped(Exception):
    """Nobody waits for the answer any more."""


class Asker:
    """Asks for a batch of answers with several threads, which end with the process whatever they wait for.

    Args:
        server: Asks once.
        config: How many requests at a time, and how many tries.
        limits: Requests and tokens per minute, over all batches.
    """

    def __init__(self, server: Asks, config: LanguageModelConfig, limits: MinuteLimits) -> None:
        self._server, self._config, self._limits = server, config, limits
        self._stop = threading.Event()

    def ask(self, prompts: Sequence[str]) -> Iterator[tuple[int, Answer]]:
        """Ask for answers.

        Args:
            prompts: What is asked.

        Yields:
            The index of a prompt and its answer, as they come. The next request begins only when the caller wants the
            next answer: who keeps each one loses no more than `concurrency` of them when the process is killed.

        Raises:
            InputError: A request failed for good. No further one begins.
        """
        if not prompts:
            return
        tasks: SimpleQueue[int] = SimpleQueue()
        results: SimpleQueue[tuple[int, Answer | Exception]] = SimpleQueue()
        for index in range(len(prompts)):
            tasks.put(index)
        count = min(self._config.concurrency, len(prompts))
        # One for each request that is under way or whose answer the caller has not dealt with.
        places = threading.Semaphore(count)

        def work() -> None:
            while not tasks.empty():
                places.acquire()
                if self._stop.is_set():
                    return
                try:
                    index = tasks.get_nowait()
                except Empty:
                    return  # Another thread took the last one.
                try:
                    results.put((index, self._answer(prompts[index])))
                except _Stopped:
                    return
                except Exception as error:
                    # Nothing more begins, not even here.
                    self._stop.set()
                    places.release(count)
                    results.put((index, error))

        self._stop = threading.Event()
        threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        try:
            for _ in prompts:
                index, result = results.get()
                if isinstance(result, Exception):
                    yield from self._under_way(threads, results)
                    raise result
                yield index, result
                places.release()
        finally:
            # Threads that wait for a place end, too.
            self._stop.set()
            places.release(count)

    def _under_way(
        self, threads: Sequence[threading.Thread], results: SimpleQueue[tuple[int, Answer | Exception]]
    ) -> Iterator[tuple[int, Answer]]:
        """Give the answers to what is asked already: they may have cost something."""
        for thread in threads:
            thread.join()
        while not results.empty():
            index, result = results.get()
            if not isinstance(result, Exception):
                yield index, result

    def _answer(self, prompt: str) -> Answer:
        """Ask until there is an answer."""
        stop = self._stop
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
            times = f"{attempt + 1} times in a row" if attempt else "and --retries is 0"
            raise InputError(
                f"{error.reason}, {times}; what was answered is kept, run the same command again"
            ) from None
        if error.wait is not None and error.wait > LONGEST_OBEYED:
            raise InputError(
                f"{error.reason}; it wants no request for {error.wait:,.0f} seconds. What was answered is kept: run "
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
