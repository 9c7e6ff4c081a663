"""The settings of a lexicon; ParaNMT-50M (arXiv:1711.05732), appendix A.1."""

from __future__ import annotations

from dataclasses import dataclass

from paranmt_hf.util.settings import check, setting

GIGABYTE = 10**9


@dataclass(frozen=True)
class LexiconConfig:
    """Which pairs of sentences count, which words, and how much memory counting may take.

    Attributes:
        min_score: Pairs of a lower paraphrase score do not count.
        max_length: Pairs with more word tokens on a side do not count.
        words: So many words, those in the most sentences, are in the lexicon.
        min_count: Word pairs that were counted less often are not written.
        memory: GB for counting word pairs. It changes nothing of the result.
    """

    min_score: float = setting(0.35, "smallest paraphrase score of a pair that counts (appendix A.1)")
    max_length: int = setting(30, "most word tokens on either side of a pair that counts (appendix A.1)", at_least=1)
    words: int = setting(100_000, "so many words, those in the most sentences", at_least=2, at_most=2**24)
    min_count: int = setting(1, "leave out word pairs that were counted less often", at_least=1)
    memory: float = setting(2.0, "GB for counting word pairs; the rest of the program takes about 0.5", at_least=0.1)

    def __post_init__(self) -> None:
        check(self)

    @property
    def memory_bytes(self) -> int:
        """Bytes for counting word pairs."""
        return int(self.memory * GIGABYTE)
