"""MinHash (Broder 1997) in bands: documents that are alike share the key of some band.

The chance that two documents of Jaccard similarity s share one of b bands of r minima is 1 - (1 - s**r)**b.
"""

from __future__ import annotations

import numpy as np

from paranmt_hf.corpus.duplicates.shingles import Sets
from paranmt_hf.corpus.hashing import mix

# Documents whose shingles stay in the processor's cache while every permutation reads them.
_CACHED = 4_000


def chance_found(similarity: float, bands: int, rows: int) -> float:
    """Chance that two documents of this Jaccard similarity share the key of at least one band."""
    return 1 - (1 - similarity**rows) ** bands


class MinHash:
    """Computes band keys.

    A permutation of the numbers below 2**32 is x -> a x + b modulo 2**32 with an odd a, over mixed shingles. This is
    several times as fast as taking signatures out of `rensa` (benchmarks/near_duplicates.py), and what is found does
    not depend on the version of a package.

    Args:
        bands: Number of bands.
        rows: Number of minima in a band.
        seed: Decides the permutations.
    """

    def __init__(self, bands: int, rows: int, seed: int) -> None:
        self.bands, self.rows = bands, rows
        # PCG64 gives the same numbers in every version of NumPy; Generator's methods need not.
        draws = np.random.PCG64(seed).random_raw(2 * bands * rows)
        self._factors = (draws[0::2] >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
        self._terms = (draws[1::2] >> np.uint64(32)).astype(np.uint32)

    def keys(self, sets: Sets) -> np.ndarray:
        """Compute the band keys of documents that are not empty.

        Returns:
            Keys [band, document], uint64.
        """
        hashes = (mix(sets.values) >> np.uint64(32)).astype(np.uint32)
        keys = np.zeros((self.bands, len(sets)), np.uint64)
        for start in range(0, len(sets), _CACHED):
            stop = min(start + _CACHED, len(sets))
            bounds = sets.offsets[start : stop + 1]
            self._fill(keys[:, start:stop], hashes[bounds[0] : bounds[-1]], bounds[:-1] - bounds[0])
        return keys

    def _fill(self, keys: np.ndarray, hashes: np.ndarray, starts: np.ndarray) -> None:
        permuted, minima = np.empty_like(hashes), np.empty(len(starts), np.uint32)
        for number, (factor, term) in enumerate(zip(self._factors, self._terms, strict=True)):
            np.multiply(hashes, factor, out=permuted)
            permuted += term
            np.minimum.reduceat(permuted, starts, out=minima)
            band = number // self.rows
            keys[band] = mix(keys[band] ^ minima)
