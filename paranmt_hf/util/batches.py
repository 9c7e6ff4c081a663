"""Batches of sentences of similar length, and a guard for memory."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from paranmt_hf.errors import InputError

Result = TypeVar("Result")


def token_batches(lengths: np.ndarray | Sequence[int], budget: int) -> list[np.ndarray]:
    """Cut sentences into batches of similar length.

    Args:
        lengths: Shape [sentence], pieces of each.
        budget: Most that sentences times pieces of the longest may come to; a longer sentence is a batch alone.

    Returns:
        Indices of the sentences of each batch. The longest come first, so that a lack of memory shows at once; equal
        lengths keep their order.
    """
    counts = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-counts, kind="stable")
    batches, first = [], 0
    while first < len(order):
        size = max(1, budget // max(1, int(counts[order[first]])))
        batches.append(order[first : first + size])
        first += size
    return batches


class MemoryGuard:
    """Halves a batch that does not fit into memory, and remembers the size that did not fit.

    Args:
        advice: What to do where one sentence does not fit, for the error.
    """

    def __init__(self, advice: str) -> None:
        self._ceiling, self._advice = math.inf, advice

    def run(
        self, batch: np.ndarray, lengths: np.ndarray, work: Callable[[np.ndarray], Result]
    ) -> list[tuple[np.ndarray, Result]]:
        """Run `work` on a batch, in as many parts as memory asks for.

        Args:
            batch: Shape [sentence], indices into `lengths`.
            lengths: Pieces of every sentence.
            work: Called with the indices of a part.

        Returns:
            Each part with its result, in the order of the batch.

        Raises:
            InputError: A single sentence does not fit.
        """
        waiting, done = [batch], []
        while waiting:
            part = waiting.pop()
            longest = int(lengths[part].max())
            if len(part) == 1 or len(part) * longest <= self._ceiling:
                try:
                    done.append((part, work(part)))
                    continue
                except (MemoryError, RuntimeError) as error:
                    if not _out_of_memory(error):
                        raise
                # Out of the handler: the traceback would keep the tensors of the failed attempt.
                _free_device_memory()
                if len(part) == 1:
                    raise InputError(f"out of memory on one sentence of {longest} pieces: {self._advice}")
            half = -(-len(part) // 2)
            self._ceiling = min(self._ceiling, longest * half)
            waiting += [part[half:], part[:half]]
        return done


def _out_of_memory(error: Exception) -> bool:
    """Tell a lack of memory from any other failure; torch and CTranslate2 differ in class and wording."""
    wordings = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in wordings)


def _free_device_memory() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
