"""How many processes `torchrun` or `accelerate launch` started together, and which of them this is."""

from __future__ import annotations

import os


def process_count() -> int:
    """Number of processes that were started together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_rank_0() -> bool:
    """Whether this process reads the data, writes and reports; true of a process that was started alone."""
    return process_count() == 1 or os.environ.get("RANK", "0") == "0"
