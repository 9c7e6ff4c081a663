"""Imports of large libraries, which take seconds."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Leave out garbage collection in a `with` block that imports large libraries.

    Imports make a million objects that stay. Collections look at them again and again, which takes a fifth of the time
    in which sentence-transformers is imported.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
