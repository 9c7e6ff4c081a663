"""How many threads torch computes on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread inside a `with` block: results do not depend on how many there are."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def threads_kept() -> Iterator[None]:
    """Bring torch back, behind a `with` block, to the threads that it had; nothing is loaded for it."""
    before = sys.modules["torch"].get_num_threads() if "torch" in sys.modules else None
    try:
        yield
    finally:
        if before is not None:
            sys.modules["torch"].set_num_threads(before)
