"""Steps of one shape as a CUDA graph, which is launched as a whole, without overhead on the host for each kernel."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable

import torch

logger = logging.getLogger(__name__)
Step = Callable[[], object]
WARM_UP = 3  # Steps that run without a graph first, so that libraries allocate what they need


class Capturing:
    """Captures steps on a GPU: `warm_up` runs a step, `capture` returns a function that replays it."""

    def warm_up(self, step: Step) -> None:
        """Run a step on a stream of its own, as torch requires before a capture."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            step()
        torch.cuda.current_stream().wait_stream(stream)

    def capture(self, step: Step) -> Step:
        """Capture a step without running it."""
        graph = torch.cuda.CUDAGraph()
        # The thread that prepares the next mega-batch allocates pinned memory, which the mode "global" refuses.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            step()
        return graph.replay


class Repeated:
    """Runs one step repeatedly, captured if `capturing` says how.

    The step must read and write the same memory each time, and run the same operations on it.
    """

    def __init__(self, step: Step, capturing: Capturing | None) -> None:
        self._step, self._capturing = step, capturing
        self._key: Hashable = None
        self._runs = 0
        self._replay: Step | None = None

    def run(self, key: Hashable) -> None:
        """Run the step once; a changed key means that its memory or its shapes have changed."""
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
