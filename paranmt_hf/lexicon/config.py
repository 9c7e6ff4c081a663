"""The settings of a lexicon; ParaNMT-50M (arXiv:1711.05732), appendix A.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from paranmt_hf.util.settings import Count, Range, RunOnly, check

GIGABYTE = 10**9


@dataclass(frozen=True)
class LexiconConfig:
    """Which sentence pairs and words count, and how much memory counting may take.

    Attributes:
        min_score: Smallest paraphrase score of a pair that counts (appendix A.1).
        max_length: Maximum number of word tokens on either side of a pair that counts (appendix A.1).
        words: Number of words, those in the most sentences.
        min_count: Leave out word pairs that were counted less often.
        memory: GB for counting word pairs; the rest of the program takes about 0.5.
    """

    min_score: float = 0.35
    max_length: Count = 30
    words: Annotated[int, Range(at_least=2, at_most=2**24)] = 100_000
    min_count: Count = 1
    memory: Annotated[float, Range(at_least=0.1), RunOnly] = 2.0

    def __post_init__(self) -> None:
        check(self)

    @property
    def memory_bytes(self) -> int:
        """Bytes for counting word pairs."""
        return int(self.memory * GIGABYTE)
