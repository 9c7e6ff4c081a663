"""The negatives of pairs: neighbours of anchors that are no paraphrases, inside ranks and margins.

Anchors are searched in blocks, so that memory does not grow with the number of neighbours.
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
from paranmt_hf.text.tokens import expand
from paranmt_hf.util.markers import Cosine, Count, Group, Range, Seed, Share
from paranmt_hf.util.progress import Progress

BLOCK, LISTED_BLOCK = 8192, 65_536  # Anchors of a block, compared with all sentences, and with lists
FEWEST, MOST = 64, 4096  # Neighbours of an anchor that are searched, paraphrases included
SLOTS = 1 << 22  # Neighbours of a block
NOBODY = -1
CHECKPOINT_SECONDS = 60.0
RANKING = Group("ranking", "Among which sentences near to the anchor negatives are chosen.")
Rank = Annotated[int, Range(at_least=1, at_most=1000)]


@dataclass(frozen=True)
class HardNegativesConfig(IndexConfig):
    """Which sentences become negatives, and how they are searched.

    Attributes:
        number: Negatives of each pair; pairs with fewer are left out.
        first_rank: First rank of a negative among the sentences most similar to the anchor, paraphrases not counted.
        last_rank: Last rank of a negative.
        max_score: Largest cosine of a negative and the anchor.
        min_score: Smallest cosine of a negative and the anchor.
        margin: A negative's cosine is at least this much below the positive's.
        relative_margin: A negative's cosine is at least this share of the positive's below it.
        sampling: Negatives of a pair: the first ones, or random ones of those inside ranks and margins.
        scores: Write the cosines of the anchor with the positive and with each negative too, as a column of that name.
        seed: Decides random negatives, and the sample of `max_pairs`.
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
    """The negatives of pairs: items [pair, negative], int32, `NOBODY` for a pair with too few.

    `cosines` are the anchor's with the positive and each negative [pair, 1 + negative]; `left_out` counts pairs,
    `rejected` sentences of the ranks of a pair, by reason.
    """

    items: np.ndarray
    cosines: np.ndarray
    left_out: Counter[str]
    rejected: Counter[str]


def find_negatives(
    stored: IndexedVectors, pairs: np.ndarray, config: HardNegativesConfig, work: Path
) -> FoundNegatives:
    """Find the negatives of pairs of items [pair, side], continuing from the last checkpoint in a work folder."""
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
    """Which sentences of pairs may not be negatives of each other, as `training/mega_batch.py` lists for a mega-batch.

    The lists of a corpus would be too long: here the pairs [pair, side] are kept, and candidates are looked up. The
    distinct sentences are numbered from 0 to `count`; each is in a pair.
    """

    def __init__(self, pairs: np.ndarray, count: int) -> None:
        both = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int64)
        self._count = count
        # The pairs in both directions, each once, sorted by the first sentence.
        self._codes = np.unique(both[:, 0] * count + both[:, 1])
        left, self._ends = np.divmod(self._codes, count)
        self._degrees = np.bincount(left, minlength=count)
        self._starts = np.cumsum(self._degrees) - self._degrees
        # The most sentences that are related to each: its partners, and theirs.
        theirs = np.bincount(left, weights=self._degrees[self._ends], minlength=count).astype(np.int64)
        self.most_related = self._degrees + theirs

    def related(self, first: np.ndarray, second: np.ndarray, *, at_once: int = 1 << 23) -> np.ndarray:
        """Whether two sentences are paired, paired with the same sentence, or equal [question], bool.

        `at_once` bounds the ends of pairs that are looked up together, and so the memory.
        """
        found = self._paired(first, second)
        # The partners of the one with fewer are looked up among those of the other.
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
        codes = first.astype(np.int64) * self._count + second
        places = np.searchsorted(self._codes, codes).clip(max=len(self._codes) - 1)
        return np.asarray(self._codes[places] == codes)


class _Search:
    """Searches blocks of anchors, and adds the negatives of their pairs to what was found."""

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
        """Numbers of neighbours that hold the last rank, whatever paraphrases there are: powers of two."""
        wanted = np.clip(self._config.last_rank + self._graph.most_related[anchors], FEWEST, MOST)
        return (2 ** np.ceil(np.log2(wanted))).astype(np.int64)

    def add(self, anchors: np.ndarray) -> None:
        """Add the negatives of the pairs of anchors of one depth."""
        vectors = self._stored.vectors.take(self._places[anchors])
        near = self._stored.nearest(vectors, int(self._depths(anchors[:1])[0]), self._config.probes)
        items, cosines = self._ranked(anchors, near.items.numpy(), near.scores.numpy())
        own, _ = expand(self._by_anchor, self._starts[anchors], self._counts[anchors])
        owners = np.repeat(np.arange(len(anchors)), self._counts[anchors])
        for start, stop in spans(len(own), SLOTS // items.shape[1] if items.shape[1] else len(own)):
            some = owners[start:stop]
            self._choose(own[start:stop], vectors[some], items[some], cosines[some])

    def _ranked(self, anchors: np.ndarray, places: np.ndarray, cosines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Items and cosines of the ranks of each anchor [anchor, rank]; items are `NOBODY` where there are fewer."""
        items = np.where(places == NOBODY, NOBODY, self._stored.items(places.clip(min=0)))
        row, column = np.nonzero(items != NOBODY)
        related = self._graph.related(anchors[row], items[row, column])
        items[row[related], column[related]] = NOBODY
        # Paraphrases come last; of equal cosines the first item comes first.
        ranks = slice(self._config.first_rank - 1, self._config.last_rank)
        order = np.lexsort((items, -cosines, items == NOBODY), axis=1)[:, ranks]
        return np.take_along_axis(items, order, axis=1), np.take_along_axis(cosines, order, axis=1)

    def _choose(self, pairs: np.ndarray, anchors: np.ndarray, items: np.ndarray, cosines: np.ndarray) -> None:
        """Choose negatives for pairs, given vectors of their anchors, and items and cosines of the ranks."""
        config, found = self._config, self._found
        others = self._stored.vectors.take(self._places[self._pairs[pairs, 1]])
        positive = (anchors * others).sum(axis=1, keepdims=True).clip(-1, 1)
        known = np.any(anchors, axis=1) & np.any(others, axis=1)
        left = (items != NOBODY) & known[:, None]
        # The relative margin is below the positive too if its cosine is negative.
        least = positive - np.float32(config.relative_margin) * np.abs(positive)
        for reason, wrong in (
            ("above max_score", config.max_score is not None and cosines > np.float32(config.max_score)),
            ("below min_score", config.min_score is not None and cosines < np.float32(config.min_score)),
            ("within the margin", cosines > positive - np.float32(config.margin)),
            ("within the relative margin", cosines > least),
        ):
            found.rejected[reason] += int(np.count_nonzero(left & wrong))
            left &= ~np.asarray(wrong)
        whole = np.count_nonzero(left, axis=1) >= config.number
        found.left_out["without a word that the encoder knows"] += int(np.count_nonzero(~known))
        found.left_out["with too few negatives"] += int(np.count_nonzero(known & ~whole))
        if not whole.any():
            return
        pairs, left, items, cosines = pairs[whole], left[whole], items[whole], cosines[whole]
        lots: np.ndarray = np.broadcast_to(np.arange(items.shape[1], dtype=np.uint64), items.shape)
        if config.sampling == "random":
            # A lot depends on the pair and the item alone, not on the blocks.
            lots = mix(mix(pairs.astype(np.uint64) + salt(config.seed))[:, None] ^ items.astype(np.uint64)) >> 1
        lots = np.where(left, lots, np.uint64(2**64 - 1))
        chosen = np.sort(np.argsort(lots, axis=1, kind="stable")[:, : config.number], axis=1)
        found.items[pairs] = np.take_along_axis(items, chosen, axis=1)
        found.cosines[pairs, :1] = positive[whole]
        found.cosines[pairs, 1:] = np.take_along_axis(cosines, chosen, axis=1).clip(-1, 1)
