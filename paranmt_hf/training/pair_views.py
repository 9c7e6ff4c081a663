"""Views of stored pairs: with wrong translations, sentence by sentence, or ordered by neighbourhood.

None of them is in the papers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cosine_similarity

from paranmt_hf.text.identity import distinct_rows
from paranmt_hf.training.pair_store import MegaBatch, PairStore, join_bags

# Rows that are converted to 32 bits at a time; those of a processor stay in its cache
WIDENED_ROWS = {"cpu": 256, "cuda": 250_000}


class PairsWithErrors(PairStore):
    """The sound pairs of a folder; mega-batches also hold wrong translations: they differ in a number or a negation.

    `errors` are pairs of references and their wrong translations, under the same readers. Of the pairs whose reference
    has some, a `share` gets one of them; the seed decides which.
    """

    def __init__(self, folder: Path, errors: PairStore, share: float, seed: int) -> None:
        super().__init__(folder)
        self._share, self._seed = share, seed
        self._wrong = errors.everything()
        references, self._translations = errors.keys().T
        self._order = np.argsort(references, kind="stable")
        self._references = references[self._order]

    def count(self) -> int:
        """Number of pairs whose reference has a wrong translation."""
        return int(np.isin(self.keys()[:, 0], self._references).sum())

    def in_order(self, orders: Iterable[np.ndarray], size: int, *, start: int = 0) -> Iterator[MegaBatch]:
        """Read pairs in a given order; see `PairStore.in_order`."""
        return map(self._with_errors, super().in_order(orders, size, start=start))

    def _with_errors(self, mega: MegaBatch) -> MegaBatch:
        """Add the wrong translations of a mega-batch."""
        references, translations = np.split(mega.keys, 2)
        first = np.searchsorted(self._references, references)
        counts = np.searchsorted(self._references, references, side="right") - first
        # Seeded by the content of the mega-batch, so that a resumed run draws the same.
        generator = np.random.default_rng([self._seed, *mega.keys[:2].tolist()])
        chosen = (counts > 0) & (generator.random(mega.pairs) < self._share)
        drawn = first + (generator.random(mega.pairs) * counts).astype(np.int64)
        wrong = self._order[drawn[chosen]]
        # A sentence is not a negative of its copy.
        other = self._translations[wrong] != translations[chosen]
        chosen[chosen] = other
        # Pair p of a store is the sentences 2p, its reference, and 2p + 1, its translation.
        sentences = 2 * wrong[other] + 1
        bags = {name: join_bags([own, self._wrong.bags[name].take(sentences)]) for name, own in mega.bags.items()}
        errors = np.full(mega.pairs, -1, np.int64)
        errors[chosen] = len(mega.keys) + np.arange(len(sentences))
        return MegaBatch(bags, mega.keys, errors)


def with_errors(chosen: np.ndarray, vectors: torch.Tensor, errors: np.ndarray) -> np.ndarray:
    """Replace mined negatives, in the form of `select_negatives`, by wrong translations that are more similar.

    The vectors are of all sentences of the mega-batch [sentence, dimension], wrong translations last; `errors` has the
    position of the wrong translation of each pair [pair], or -1. A sentence without a negative stays without.
    """
    wrong = np.concatenate([errors, errors])[: len(chosen)]
    sentences = np.flatnonzero((wrong >= 0) & (chosen >= 0))
    own = vectors[sentences]
    mined, known = (cosine_similarity(own, vectors[some[sentences]]) for some in (chosen, wrong))
    harder = sentences[(known > mined).cpu().numpy()]
    replaced = chosen.copy()
    replaced[harder] = wrong[harder]
    return replaced


class DistinctSentences:
    """The distinct sentences of some pairs; every two form a pair, so that batches keep their sizes."""

    unit = "pairs of sentences"

    def __init__(self, store: PairStore) -> None:
        self._everything = store.everything()
        first = distinct_rows(self._everything.keys)
        self.pairs = len(first) // 2
        # In the order of the data; an odd sentence is left out.
        self._sentences = first[: 2 * self.pairs]

    def keys(self) -> np.ndarray:
        """Key of each sentence [sentence, 1], uint64."""
        return self._everything.keys[self._sentences, None]

    def in_order(self, order: np.ndarray, batch_size: int, mega_batch: int, *, start: int = 0) -> Iterator[MegaBatch]:
        """Read the sentences in an order [sentence], mini-batch after mini-batch, after `start` mega-batches.

        A mini-batch has two sentences for each of its pairs; the last mega-batch may have fewer mini-batches.
        """
        size = 2 * batch_size * mega_batch
        for low in range(start * size, len(order), size):
            part = self._sentences[order[low : low + size]]
            halves = [np.split(batch, 2) for batch in np.split(part, range(2 * batch_size, len(part), 2 * batch_size))]
            # A mega-batch has all first sides before all second ones, and mini-batches in the order of the first.
            yield self._everything.take(np.concatenate([half[side] for side in (0, 1) for half in halves]))


def neighbour_order(vectors: torch.Tensor, size: int, generator: np.random.Generator) -> np.ndarray:
    """Order items by their vectors [item, dimension], so that groups of `size` of them are neighbours [item].

    Among random sentences nearly all cosines are low, and a mini-batch of them says little about how similar similar
    sentences are. All items are halved along the line through two random ones, and so are the halves, down to `size`
    items; then these groups are shuffled. An incomplete group comes last. The vectors may be on a GPU.
    """
    groups, waiting = [], [generator.permutation(len(vectors))]
    while waiting:
        items = waiting.pop()
        if len(items) <= size:
            groups.append(items)
            continue
        one, other = vectors[torch.from_numpy(items[generator.choice(len(items), 2, replace=False)])].float()
        positions = along(vectors, items, other - one)
        left = -(-len(items) // size) // 2 * size
        order = np.argpartition(positions, left)
        # The right half, which contains the incomplete group, is processed last.
        waiting += [items[order[left:]], items[order[:left]]]
    *full, last = groups
    return np.concatenate([*(full[index] for index in generator.permutation(len(full)).tolist()), last])


def along(vectors: torch.Tensor, items: np.ndarray, direction: torch.Tensor) -> np.ndarray:
    """Projection of some items [item] of `vectors` on a direction [dimension]: [item], float32."""
    parts = torch.from_numpy(items).to(vectors.device).split(WIDENED_ROWS[vectors.device.type])
    return torch.cat([vectors[part].float() @ direction for part in parts]).cpu().numpy()
