"""Capture steps as CUDA graphs.

A CUDA graph records all kernels of a step once, and launches them as a whole afterwards, without the overhead on the
host of launching each kernel. It reads and writes the same memory each time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable

import torch

logger = logging.getLogger(__name__)
Step = Callable[[], object]
WARM_UP = 3  # Number of steps that run before the capture, so that libraries allocate the memory they need


class Capturing:
    """Captures steps on a GPU as CUDA graphs; tests put another class in its place."""

    def warm_up(self, step: Step) -> None:
        """Run a step on a separate stream, as torch requires before a capture."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            step()
        torch.cuda.current_stream().wait_stream(stream)

    def capture(self, step: Step) -> Step:
        """Capture a step without running it, and return a function that replays it."""
        graph = torch.cuda.CUDAGraph()
        # The mode "global" would forbid other threads to allocate pinned memory, as the one that prepares the next
        # mega-batch does.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            step()
        return graph.replay


class RepeatedStep:
    """Runs one step repeatedly, and captures it after a few runs.

    The step must read and write the same memory each time, and perform the same operations on it.

    Args:
        step: The step.
        capturing: Captures it; None to run it without a capture.
    """

    def __init__(self, step: Step, capturing: Capturing | None) -> None:
        self._step, self._capturing = step, capturing
        self._key: Hashable = None
        self._runs = 0
        self._replay: Step | None = None

    def run(self, key: Hashable) -> None:
        """Run the step once.

        Args:
            key: A value that changes whenever the memory of the step or its shapes have changed; then it is captured
                again.
        """
        if key != self._key:
            self._key, self._runs, self._replay = key, 0, None
        if self._capturing is not None and self._replay is None and self._runs >= WARM_UP:
            try:
                self._replay = self._capturing.capture(self._step)
            except RuntimeError as error:
                reason = str(error).split("\n")[0]
                logger.warning(f"steps cannot be captured as a CUDA graph, and run one kernel at a time: {reason}")
                self._capturing = None
        if self._replay is not None:
            self._replay()
        elif self._capturing is not None:
            self._capturing.warm_up(self._step)
        else:
            self._step()
        self._runs += 1
