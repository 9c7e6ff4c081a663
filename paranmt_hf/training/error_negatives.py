"""Errors of meaning as negatives: translations that differ from their reference in a number or a negation.

Such a pair is no paraphrase, and its translation is harder to tell from one than what a mega-batch has to offer. Where
the same reference has a sound translation too, the wrong one becomes the negative of that pair. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cosine_similarity

from paranmt_hf.training.pair_store import MegaBatch, PairStore, join


class PairsWithErrors(PairStore):
    """Pairs whose mega-batches bring wrong translations of their references along.

    Args:
        folder: The sound pairs, as `write_pairs` wrote them.
        errors: Pairs of references and their wrong translations, under the same readers.
        share: Of the pairs for whose reference there are any, this share gets one, in [0, 1].
        seed: Decides which pairs, and which one.
    """

    def __init__(self, folder: Path, errors: PairStore, share: float, seed: int) -> None:
        super().__init__(folder)
        self._share, self._seed = share, seed
        self._wrong = errors.everything()
        references, self._translations = errors.keys().T
        self._order = np.argsort(references, kind="stable")
        self._references = references[self._order]

    def count(self) -> int:
        """Number of pairs for whose reference there is a wrong translation."""
        return int(np.isin(self.keys()[:, 0], self._references).sum())

    def mega_batches(self, size: int, *, seed: int, epoch: int, start: int = 0, least: int = 1) -> Iterator[MegaBatch]:
        """Read an epoch; see `PairStore.mega_batches`."""
        return map(self._with_errors, super().mega_batches(size, seed=seed, epoch=epoch, start=start, least=least))

    def in_order(self, order: np.ndarray, size: int, *, start: int = 0) -> Iterator[MegaBatch]:
        """Read pairs in a given order; see `PairStore.in_order`."""
        return map(self._with_errors, super().in_order(order, size, start=start))

    def _with_errors(self, mega: MegaBatch) -> MegaBatch:
        """Put a wrong translation of its reference beside each pair that gets one."""
        references, translations = np.split(mega.keys, 2)
        first = np.searchsorted(self._references, references)
        counts = np.searchsorted(self._references, references, side="right") - first
        # What a mega-batch holds decides, so that a run that goes on draws as one that was not interrupted.
        generator = np.random.default_rng([self._seed, *mega.keys[:2].tolist()])
        chosen = (counts > 0) & (generator.random(mega.pairs) < self._share)
        drawn = first + (generator.random(mega.pairs) * counts).astype(np.int64)
        wrong = self._order[drawn[chosen]]
        # A sentence is no negative of its copy.
        other = self._translations[wrong] != translations[chosen]
        chosen[chosen] = other
        # Pair p of a store is the sentences 2p, its reference, and 2p + 1, its translation.
        sentences = 2 * wrong[other] + 1
        bags = {name: join([own, self._wrong.bags[name].take(sentences)]) for name, own in mega.bags.items()}
        errors = np.full(mega.pairs, -1, np.int64)
        errors[chosen] = len(mega.keys) + np.arange(len(sentences))
        return MegaBatch(bags, mega.keys, errors)


def with_errors(chosen: np.ndarray, vectors: torch.Tensor, errors: np.ndarray) -> np.ndarray:
    """Take wrong translations as negatives where they are more similar than those that were mined.

    Args:
        chosen: Negative of each sentence [2 x pair] (one-sided: [pair]); -1 for none, as `megabatch.select` gives it.
        vectors: Vectors of all sentences of the mega-batch [sentence, dimension], wrong translations last.
        errors: Position of the wrong translation of each pair [pair]; -1 for none.

    Returns:
        As `chosen`. A sentence without a negative stays without.
    """
    wrong = np.concatenate([errors, errors])[: len(chosen)]
    sentences = np.flatnonzero((wrong >= 0) & (chosen >= 0))
    own = vectors[sentences]
    mined, known = (cosine_similarity(own, vectors[some[sentences]]) for some in (chosen, wrong))
    harder = sentences[(known > mined).cpu().numpy()]
    replaced = chosen.copy()
    replaced[harder] = wrong[harder]
    return replaced
