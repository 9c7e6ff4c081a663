"""A small corpus, and its counts and scores found the slow way."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import product

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.text.definitions import words

Pair = tuple[str, str]


def random_pairs(count: int, *, seed: int = 1, vocabulary: int = 30) -> list[Pair]:
    """Sentences in which low numbers are frequent; some are empty, and words repeat."""
    generator = random.Random(seed)

    def sentence() -> str:
        return " ".join(f"w{int(vocabulary * generator.random() ** 2)}" for _ in range(generator.randrange(9)))

    return [(sentence(), sentence()) for _ in range(count)]


def table(pairs: list[Pair]) -> pa.Table:
    references, translations = zip(*pairs, strict=True)
    return pa.table({"reference": references, "translation": translations})


def write_corpus(path, pairs, scores=None, lengths=None):
    """Pairs with the columns that decide whether they count."""
    columns = {
        "para_score": pa.array(scores or [0.9] * len(pairs), pa.float32()),
        "reference_length": [length for length, _ in lengths or [(5, 5)] * len(pairs)],
        "translation_length": [length for _, length in lengths or [(5, 5)] * len(pairs)],
    }
    whole = table(pairs)
    for name, column in columns.items():
        whole = whole.append_column(name, pa.chunked_array([column]))
    pq.write_table(whole, path)
    return path


class Oracle:
    """Counts word pairs by looking at every two words of every pair of sentences."""

    def __init__(self, pairs: list[Pair], keep: int = 10**9) -> None:
        sets = [(set(words(left)), set(words(right))) for left, right in pairs]
        self.pairs = len(pairs)
        self.single = [Counter(word for both in sets for word in both[side]) for side in (0, 1)]
        totals = self.single[0] + self.single[1]
        self.words = sorted(sorted(totals, key=lambda word: (-totals[word], word))[:keep])
        self.across: Counter[Pair] = Counter()
        self.within: list[Counter[Pair]] = [Counter(), Counter()]
        for left, right in sets:
            for sentence, paraphrase in ((left, right), (right, left)):
                self.across.update((u, v) for u, v in product(sentence, paraphrase) if self._counts(u, v))
            for side, sentence in enumerate((left, right)):
                self.within[side].update((u, v) for u, v in product(sentence, sentence) if self._counts(u, v))

    def _counts(self, u: str, v: str) -> bool:
        return u != v and u in self.words and v in self.words

    def scores(self, u: str, v: str) -> tuple[float, float]:
        """PMI and adjusted PMI of two words that were counted."""
        sentences = self.single[0] + self.single[1]
        across = math.log(self.across[u, v] * 2 * self.pairs / (sentences[u] * sentences[v]))
        ordinary = [
            math.log(within[u, v] * self.pairs / (single[u] * single[v])) if within[u, v] else 0.0
            for within, single in zip(self.within, self.single, strict=True)
        ]
        return across, across - sum(ordinary) / 2
