"""The number of processes that `torchrun` or `accelerate launch` started together, and which of them this one is."""

from __future__ import annotations

import os


def process_count() -> int:
    """Return the number of processes that were started together; 1 if this one was started alone."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_rank_0() -> bool:
    """Return whether this process is the one that reads data, writes results and reports.

    Of several processes it is the one of rank 0. A process that was started alone always is.
    """
    return process_count() == 1 or os.environ.get("RANK", "0") == "0"
