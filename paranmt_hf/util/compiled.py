"""Compiled inner loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])
# Sums may be rounded in another order; infinities and NaN are kept.
FAST_SUMS = {"reassoc", "contract", "arcp", "nsz"}


def compiled(*, fast: bool = False, **options: Any) -> Callable[[Function], Function]:  # noqa: ANN401
    """Compile a function with numba, with a cache on disk where numba can write one.

    Args:
        fast: Allow sums in another order.
        options: Further options of `numba.njit`.
    """
    options |= {"nogil": True, "fastmath": FAST_SUMS if fast else False}

    def compile_(function: Function) -> Function:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:
            # Neither the package's folder, the user's nor NUMBA_CACHE_DIR can be written.
            return njit(**options)(function)

    return compile_
