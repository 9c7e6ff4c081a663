"""Numbers that stand for tokens and for runs of tokens: 64 bits, the same on every machine and in every run."""

from __future__ import annotations

import numpy as np

_GOLDEN = 0x9E3779B97F4A7C15


def mix(values: np.ndarray) -> np.ndarray:
    """Mix numbers of 64 bits: each input bit changes each output bit half of the time, and no two become equal.

    Args:
        values: Numbers [value], uint64.

    Returns:
        Mixed numbers [value], uint64; the finaliser of MurmurHash3 (public domain).
    """
    mixed = values ^ (values >> np.uint64(33))
    for multiplier in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        mixed *= np.uint64(multiplier)
        mixed ^= mixed >> np.uint64(33)
    return mixed


def salt(number: int) -> np.uint64:
    """Spread a small number over 64 bits."""
    return np.uint64((number + 1) * _GOLDEN % 2**64)


def run_hashes(hashes: np.ndarray, starts: np.ndarray, size: int) -> np.ndarray:
    """Hash runs of tokens, in which the order counts.

    Args:
        hashes: Hashes of tokens [token], uint64.
        starts: Position of each run's first token [run].
        size: Number of tokens of a run.

    Returns:
        Hashes [run], uint64.
    """
    combined = np.full(len(starts), salt(size), np.uint64)
    for step in range(size):
        combined = mix(combined ^ hashes[starts + step]) + salt(step)
    return mix(combined)
