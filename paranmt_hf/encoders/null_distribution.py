"""The part of a calibration that needs no ratings: which cosines unrelated texts have."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NullData:
    """The texts that a null distribution was made from.

    Attributes:
        name: Name of the file or folder.
        sha256: Checksum of the drawn texts.
        texts: Number of distinct texts in the source.
        drawn: Number of these texts that were drawn at random, and compared with each other.
        rate: N of the threshold that at most one in N pairs reaches.
    """

    name: str
    sha256: str
    texts: int
    drawn: int
    rate: int


@dataclass(frozen=True)
class NullDistribution:
    """How the cosines of all pairs of drawn texts are distributed, nearly all of which are unrelated.

    Attributes:
        pairs: Number of pairs.
        counts: For some cosines, ascending: the cosine, and the number of pairs at or above it.
        threshold: The smallest cosine, in steps of 0.0001, that at most one in N pairs reaches.
        interval: 95 % confidence interval of the threshold, by a bootstrap over texts.
        near: Number of texts whose nearest other text reaches the threshold.
    """

    pairs: int
    counts: list[tuple[float, int]]
    threshold: float
    interval: tuple[float, float]
    near: int

    def cosine_of(self, one_in: int) -> float | None:
        """Return the smallest cosine of `counts` that at most one in `one_in` pairs reaches; None if there is none."""
        return next((cosine for cosine, above in self.counts if above * one_in <= self.pairs), None)
