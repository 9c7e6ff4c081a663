"""The sentences of a store one by one: where a teacher alone is followed, who is paired with whom tells nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from paranmt_hf.text.tokens import Bags
from paranmt_hf.training.pair_store import MegaBatch, PairStore


class DistinctSentences:
    """Each distinct sentence of some pairs once; two make what is called a pair, so that batches have their sizes.

    Args:
        store: The pairs.

    Attributes:
        pairs: Number of pairs of sentences.
        unit: What they are called where they are counted.
    """

    unit = "pairs of sentences"

    def __init__(self, store: PairStore) -> None:
        self._everything = store.everything()
        _, first = np.unique(self._everything.keys, return_index=True)
        # In the order of the data. One sentence too many for pairs is left out.
        self._sentences = np.sort(first)[: len(first) // 2 * 2]
        self.pairs = len(self._sentences) // 2

    @property
    def keys(self) -> np.ndarray:
        """A number for each of the sentences [sentence], uint64."""
        return self._everything.keys[self._sentences]

    def in_order(self, order: np.ndarray, batch_size: int, mega_batch: int, *, start: int = 0) -> Iterator[MegaBatch]:
        """Read the sentences in a given order.

        Args:
            order: All sentences [sentence]; those of a mini-batch stand together.
            batch_size: Pairs of a mini-batch, of two sentences each.
            mega_batch: Mini-batches of a mega-batch; the last one may have fewer.
            start: Mega-batches to leave out, because they were done.
        """
        size = 2 * batch_size * mega_batch
        for low in range(start * size, len(order), size):
            part = order[low : low + size]
            batches = np.split(part, range(2 * batch_size, len(part), 2 * batch_size))
            halves = [np.split(batch, 2) for batch in batches]
            # A mega-batch has all first sides before all second ones, and mini-batches in the order of the first.
            chosen = self._sentences[np.concatenate([half[side] for side in (0, 1) for half in halves])]
            bags = {name: bags.take(chosen) for name, bags in self._everything.bags.items()}
            rows = {name: Bags(part.rows.astype(np.int32), part.offsets) for name, part in bags.items()}
            yield MegaBatch(rows, self._everything.keys[chosen])
