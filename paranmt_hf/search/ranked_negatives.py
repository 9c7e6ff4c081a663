"""Find the negatives of pairs: neighbours of the anchor that are not its paraphrases, inside ranks and margins.

The neighbours of anchors are searched one block of anchors at a time, so that memory does not grow with the corpus.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.search.indexed_vectors import SEARCH, IndexConfig, IndexedVectors
from paranmt_hf.search.storage import Precision, read_progress, save_progress, spans
from paranmt_hf.text.identity import mix, salt
from paranmt_hf.util.markers import Cosine, Count, Group, Range, Seed, Share
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.ranges import expand

BLOCK = 8192  # Maximum number of anchors of a block, if they are compared with all sentences
LISTED_BLOCK = 65_536  # Maximum number of anchors of a block, if they are compared with the nearest lists
FEWEST, MOST = 64, 4096  # Least and largest number of neighbours of an anchor that are searched, paraphrases included
SLOTS = 1 << 22  # Maximum number of neighbours of all anchors of a block
NOBODY = -1  # Item where there is none
CHECKPOINT_SECONDS = 60.0
RANKING = Group("ranking", "Among which sentences near to the anchor negatives are chosen.")
Rank = Annotated[int, Range(at_least=1, at_most=1000)]


@dataclass(frozen=True)
class HardNegativesConfig(IndexConfig):
    """Which sentences become negatives, and how they are searched.

    Attributes:
        number: Number of negatives of each pair; pairs with fewer are left out.
        first_rank: First rank of a negative among the sentences most similar to the anchor, paraphrases not counted.
        last_rank: Last rank of a negative.
        max_score: Largest cosine of a negative and the anchor.
        min_score: Smallest cosine of a negative and the anchor.
        margin: A negative's cosine with the anchor is at least this much below the positive's.
        relative_margin: A negative's cosine with the anchor is below the positive's by at least this share of the
            positive's.
        sampling: Which sentences inside ranks and margins become negatives: the most similar ones (`top`), or `random`
            ones.
        scores: Write a column `scores` too, with the cosines of the anchor with the positive and each negative.
        seed: Seed of random negatives, and of the sample of `max_pairs`.
        precision: Number format of the stored vectors; float16 takes half the space.
        probes: Number of lists that are searched for each anchor, if there are lists.
    """

    number: Annotated[int, Range(at_least=1, at_most=100)] = 3
    first_rank: Annotated[Rank, RANKING] = 1
    last_rank: Annotated[Rank, RANKING] = 50
    max_score: Cosine | None = None
    min_score: Annotated[Cosine | None, RANKING] = None
    margin: Annotated[float, Range(at_least=0, at_most=2)] = 0.0
    relative_margin: Share = 0.05
    sampling: Annotated[Literal["top", "random"], RANKING] = "top"
    scores: bool = False
    seed: Seed = 1
    precision: Annotated[Precision, SEARCH] = "float16"
    probes: Annotated[Count, SEARCH] = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.last_rank - self.first_rank + 1 < self.number:
            raise InputError(
                f"last_rank {self.last_rank} leaves fewer than {self.number} ranks; raise it", option="last_rank"
            )


@dataclass
class FoundNegatives:
    """The negatives of pairs, filled in block by block.

    Attributes:
        items: Items of the negatives [pair, negative], int32; `NOBODY` in a row if the pair has too few.
        cosines: Cosines of the anchor with the positive and with each negative [pair, 1 + negative], float32.
        left_out: Number of pairs without negatives, by reason.
        rejected: Number of sentences inside the ranks that are not negatives, by reason.
    """

    items: np.ndarray
    cosines: np.ndarray
    left_out: Counter[str]
    rejected: Counter[str]


def find_negatives(
    stored: IndexedVectors, pairs: np.ndarray, config: HardNegativesConfig, work: Path
) -> FoundNegatives:
    """Find the negatives of pairs, continuing from the last checkpoint in a work folder.

    Args:
        stored: Sentences and their vectors.
        pairs: Items of the anchor and the positive of each pair [pair, side].
        config: Which sentences become negatives.
        work: Folder of the checkpoint.
    """
    checkpoint = work / "negatives.safetensors"
    arrays, state = read_progress(checkpoint)
    if not arrays:
        arrays["items"] = np.full((len(pairs), config.number), NOBODY, np.int32)
        arrays["cosines"] = np.zeros((len(pairs), config.number + 1), np.float32)
    left_out, rejected = Counter(state.get("left_out", {})), Counter(state.get("rejected", {}))
    found = FoundNegatives(arrays["items"], arrays["cosines"], left_out, rejected)
    search, saved = _Search(stored, pairs, config, found), time.monotonic()
    done = state.get("done", 0)
    anchors = sum(map(len, search.blocks[:done]))
    with Progress("search", sum(map(len, search.blocks)), done=anchors, unit="anchors") as progress:
        for number, block in enumerate(search.blocks[done:], done + 1):
            search.add(block)
            anchors += len(block)
            progress.advance_to(anchors)
            if time.monotonic() - saved >= CHECKPOINT_SECONDS or number == len(search.blocks):
                save_progress(checkpoint, arrays, {"done": number, "left_out": left_out, "rejected": rejected})
                saved = time.monotonic()
    return found


class ParaphraseGraph:
    """The pairs of a corpus as a graph, which says which sentences may not be negatives of each other.

    The rule is that of `training/mega_batch.py`, which lists the excluded sentences of each sentence. The lists of a
    whole corpus would be too long, so here the pairs are kept, and candidates are looked up in them.

    Attributes:
        most_related: Upper bound of the number of sentences that are related to each sentence [sentence].

    Args:
        pairs: Sentences of each pair [pair, side], as numbers below `count`.
        count: Number of distinct sentences; each of them must be in a pair.
    """

    def __init__(self, pairs: np.ndarray, count: int) -> None:
        both = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int64)
        self._count = count
        # Each pair in both directions, as first sentence * count + second sentence, without repetition and sorted.
        self._codes = np.unique(both[:, 0] * count + both[:, 1])
        left, self._ends = np.divmod(self._codes, count)
        self._degrees = np.bincount(left, minlength=count)
        self._starts = np.cumsum(self._degrees) - self._degrees
        # Related to a sentence are its partners and their partners.
        theirs = np.bincount(left, weights=self._degrees[self._ends], minlength=count).astype(np.int64)
        self.most_related = self._degrees + theirs

    def related(self, first: np.ndarray, second: np.ndarray, *, at_once: int = 1 << 23) -> np.ndarray:
        """Mark pairs of sentences that may not be negatives of each other [question], bool.

        That is so if the two sentences are paired, are both paired with a third sentence, or are the same sentence.

        Args:
            first: First sentence of each question [question].
            second: Second sentence of each question [question].
            at_once: About how many partners are looked up at once; the result does not depend on it.
        """
        found = self._paired(first, second)
        # Each partner of the sentence with fewer partners is looked up among the partners of the other sentence.
        swap = self._degrees[first] > self._degrees[second]
        fewer, other = np.where(swap, second, first), np.where(swap, first, second)
        numbers = np.cumsum(self._degrees[fewer]) // at_once
        for part in np.split(np.arange(len(first)), np.flatnonzero(np.diff(numbers)) + 1):
            counts = self._degrees[fewer[part]]
            partners, _ = expand(self._ends, self._starts[fewer[part]], counts)
            owners = np.repeat(part, counts)
            found[owners[self._paired(other[owners], partners)]] = True
        return found

    def _paired(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Mark the sentences that are paired with each other [question], bool."""
        codes = first.astype(np.int64) * self._count + second
        places = np.searchsorted(self._codes, codes).clip(max=len(self._codes) - 1)
        return np.asarray(self._codes[places] == codes)


class _Search:
    """A search for negatives, block by block; `add` fills in the negatives of the pairs of one block of `blocks`.

    A block [anchor] has the items of anchors that need the same number of neighbours.
    """

    def __init__(
        self, stored: IndexedVectors, pairs: np.ndarray, config: HardNegativesConfig, found: FoundNegatives
    ) -> None:
        count = len(stored.sentences)
        self._stored, self._pairs, self._config, self._found = stored, pairs, config, found
        self._places = np.arange(count, dtype=np.int32)
        if stored.lists is not None:
            self._places[stored.lists.order] = np.arange(count, dtype=np.int32)
        self._graph = ParaphraseGraph(pairs, count)
        self._by_anchor = np.argsort(pairs[:, 0], kind="stable")
        self._counts = np.bincount(pairs[:, 0], minlength=count)
        self._starts = np.cumsum(self._counts) - self._counts
        anchors = np.flatnonzero(self._counts)
        depths, most = self._depths(anchors), BLOCK if stored.lists is None else LISTED_BLOCK
        self.blocks = [
            anchors[depths == depth][start:stop]
            for depth in np.unique(depths).tolist()
            for start, stop in spans(int(np.count_nonzero(depths == depth)), min(most, SLOTS // depth))
        ]

    def _depths(self, anchors: np.ndarray) -> np.ndarray:
        """Return how many neighbours of each anchor are searched [anchor], a power of two from `FEWEST` to `MOST`.

        Unless `MOST` is too few, they reach the last rank even if all sentences that are related to the anchor are
        among them.
        """
        wanted = np.clip(self._config.last_rank + self._graph.most_related[anchors], FEWEST, MOST)
        return (2 ** np.ceil(np.log2(wanted))).astype(np.int64)

    def add(self, anchors: np.ndarray) -> None:
        """Find the neighbours of a block of anchors, and the negatives of all pairs with these anchors."""
        vectors = self._stored.vectors.take(self._places[anchors])
        near = self._stored.nearest(vectors, int(self._depths(anchors[:1])[0]), self._config.probes)
        items, cosines = self._ranked(anchors, near.items, near.scores)
        pairs, _ = expand(self._by_anchor, self._starts[anchors], self._counts[anchors])
        anchor_rows = np.repeat(np.arange(len(anchors)), self._counts[anchors])
        for start, stop in spans(len(pairs), SLOTS // items.shape[1] if items.shape[1] else len(pairs)):
            rows = anchor_rows[start:stop]
            self._choose(pairs[start:stop], vectors[rows], items[rows], cosines[rows])

    def _ranked(self, anchors: np.ndarray, places: np.ndarray, cosines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the items and cosines from the first to the last rank of each anchor, without its paraphrases.

        Args:
            anchors: Items of the anchors [anchor].
            places: Places of their neighbours [anchor, neighbour], `NOBODY` where there are fewer.
            cosines: Cosines of their neighbours [anchor, neighbour].

        Returns:
            Items and cosines [anchor, rank]; an item is `NOBODY` where an anchor has fewer neighbours.
        """
        items = np.where(places == NOBODY, NOBODY, self._stored.items(places.clip(min=0)))
        row, column = np.nonzero(items != NOBODY)
        related = self._graph.related(anchors[row], items[row, column])
        items[row[related], column[related]] = NOBODY
        # Paraphrases are sorted to the end. Of equal cosines the smaller item comes first.
        ranks = slice(self._config.first_rank - 1, self._config.last_rank)
        order = np.lexsort((items, -cosines, items == NOBODY), axis=1)[:, ranks]
        return np.take_along_axis(items, order, axis=1), np.take_along_axis(cosines, order, axis=1)

    def _choose(self, pairs: np.ndarray, anchors: np.ndarray, items: np.ndarray, cosines: np.ndarray) -> None:
        """Choose the negatives of pairs, and fill them in.

        Args:
            pairs: Indices of the pairs [pair].
            anchors: Vectors of their anchors [pair, dimension].
            items: Items from the first to the last rank of their anchors [pair, rank].
            cosines: Cosines of these items with the anchors [pair, rank].
        """
        config, found = self._config, self._found
        others = self._stored.vectors.take(self._places[self._pairs[pairs, 1]])
        positive = (anchors * others).sum(axis=1, keepdims=True).clip(-1, 1)
        known = np.any(anchors, axis=1) & np.any(others, axis=1)
        allowed = (items != NOBODY) & known[:, None]
        # With the absolute value, the bound is below the positive's cosine even if that is negative.
        least = positive - np.float32(config.relative_margin) * np.abs(positive)
        for reason, wrong in (
            ("above max_score", config.max_score is not None and cosines > np.float32(config.max_score)),
            ("below min_score", config.min_score is not None and cosines < np.float32(config.min_score)),
            ("within the margin", cosines > positive - np.float32(config.margin)),
            ("within the relative margin", cosines > least),
        ):
            found.rejected[reason] += int(np.count_nonzero(allowed & wrong))
            allowed &= ~np.asarray(wrong)
        enough = np.count_nonzero(allowed, axis=1) >= config.number
        found.left_out["without a word that the encoder knows"] += int(np.count_nonzero(~known))
        found.left_out["with too few negatives"] += int(np.count_nonzero(known & ~enough))
        if not enough.any():
            return
        pairs, allowed, items, cosines = pairs[enough], allowed[enough], items[enough], cosines[enough]
        lots: np.ndarray = np.broadcast_to(np.arange(items.shape[1], dtype=np.uint64), items.shape)
        if config.sampling == "random":
            # The lot of a candidate depends on the pair and the item alone, so the blocks do not change the result.
            lots = mix(mix(pairs.astype(np.uint64) + salt(config.seed))[:, None] ^ items.astype(np.uint64)) >> 1
        lots = np.where(allowed, lots, np.uint64(2**64 - 1))
        chosen = np.sort(np.argsort(lots, axis=1, kind="stable")[:, : config.number], axis=1)
        found.items[pairs] = np.take_along_axis(items, chosen, axis=1)
        found.cosines[pairs, :1] = positive[enough]
        found.cosines[pairs, 1:] = np.take_along_axis(cosines, chosen, axis=1).clip(-1, 1)
