"""How much memory this machine has."""

from __future__ import annotations

import os
from math import inf


def total_memory() -> float:
    """Bytes of memory of this machine; infinite where the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return inf
