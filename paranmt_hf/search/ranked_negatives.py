"""The negatives of pairs: neighbours of anchors, without paraphrases, inside the ranks and the margins.

Anchors are searched in blocks, so that memory does not grow with the number of neighbours.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from paranmt_hf.corpus.draws import mix, salt
from paranmt_hf.search.hard_negatives import HardNegativesConfig
from paranmt_hf.search.indexed_vectors import IndexedVectors
from paranmt_hf.search.inverted_index import nearest_in_lists
from paranmt_hf.search.neighbours import NOBODY, nearest_vectors
from paranmt_hf.search.paraphrase_graph import ParaphraseGraph
from paranmt_hf.search.storage import spans
from paranmt_hf.text.tokens import expand
from paranmt_hf.util.files import replacing
from paranmt_hf.util.progress import Progress

MAX_EXACT_SENTENCES = 250_000  # Up to this many sentences, each anchor is compared with all
BLOCK, LISTED_BLOCK = 8192, 65_536  # Anchors of a block, compared with all sentences, and with lists
FEWEST, MOST = 64, 4096  # Neighbours of an anchor that are searched, paraphrases among them
SLOTS = 1 << 22  # Neighbours of a block
CHOSEN = "negatives.safetensors"
CHECKPOINT_SECONDS = 60.0
UNKNOWN, FEW = "without a word that the encoder knows", "with too few negatives"


@dataclass
class FoundNegatives:
    """The negatives of pairs: items [pair, negative], int32, `NOBODY` for a pair that has too few.

    `cosines` are those of the anchor with the positive and with each negative [pair, 1 + negative], float32; the
    counts are those of a `NegativesRecord`.
    """

    items: np.ndarray
    cosines: np.ndarray
    left_out: Counter[str]
    rejected: Counter[str]


def find_negatives(
    stored: IndexedVectors, pairs: np.ndarray, config: HardNegativesConfig, work: Path
) -> FoundNegatives:
    """Find the negatives of pairs of items [pair, side], continuing from the last checkpoint in a work folder."""
    found, done = _restored(work / CHOSEN, len(pairs), config.number)
    search = _Search(stored, pairs, config, found)
    blocks, saved = search.blocks, time.monotonic()
    with Progress("search", sum(map(len, blocks)), done=sum(map(len, blocks[:done])), unit="anchors") as progress:
        searched = sum(map(len, blocks[:done]))
        for number in range(done, len(blocks)):
            search.add(blocks[number])
            searched += len(blocks[number])
            progress.advance_to(searched)
            if time.monotonic() - saved >= CHECKPOINT_SECONDS or number == len(blocks) - 1:
                _save(work / CHOSEN, found, number + 1)
                saved = time.monotonic()
    return found


def _restored(path: Path, pairs: int, number: int) -> tuple[FoundNegatives, int]:
    from safetensors import safe_open

    if path.exists():
        with safe_open(path, "np") as file:
            state = json.loads(file.metadata()["state"])
            arrays = [file.get_tensor(name) for name in ("items", "cosines")]
        return FoundNegatives(*arrays, Counter(state["left_out"]), Counter(state["rejected"])), state["done"]
    items = np.full((pairs, number), NOBODY, np.int32)
    return FoundNegatives(items, np.zeros((pairs, number + 1), np.float32), Counter(), Counter()), 0


def _save(path: Path, found: FoundNegatives, done: int) -> None:
    from safetensors.numpy import save_file

    state = json.dumps({"done": done, "left_out": found.left_out, "rejected": found.rejected})
    with replacing(path) as aside:
        save_file({"items": found.items, "cosines": found.cosines}, aside, {"state": state})


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
        # The pairs of item a are those from starts[a] to starts[a + 1].
        self._by_anchor = np.argsort(pairs[:, 0], kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(pairs[:, 0], minlength=count))])
        self.blocks = list(self._blocks(np.flatnonzero(np.diff(self._starts))))

    def _depths(self, anchors: np.ndarray) -> np.ndarray:
        """Number of neighbours that hold the last rank, whatever paraphrases there are: a power of two."""
        wanted = np.clip(self._config.last_rank + self._graph.most_related[anchors], FEWEST, MOST)
        return (2 ** np.ceil(np.log2(wanted))).astype(np.int64)

    def _blocks(self, anchors: np.ndarray) -> Iterator[np.ndarray]:
        """Split anchors into blocks of one depth."""
        depths = self._depths(anchors)
        most = BLOCK if self._stored.lists is None else LISTED_BLOCK
        for depth in np.unique(depths).tolist():
            own = anchors[depths == depth]
            yield from (own[start:stop] for start, stop in spans(len(own), min(most, SLOTS // depth)))

    def add(self, anchors: np.ndarray) -> None:
        """Add the negatives of the pairs of a block of anchors."""
        stored, config = self._stored, self._config
        vectors = stored.vectors.take(self._places[anchors])
        depth = min(int(self._depths(anchors[:1])[0]), len(stored.sentences))
        if stored.lists is None:
            near = nearest_vectors(torch.from_numpy(vectors), stored.vectors, depth)
        else:
            near = nearest_in_lists(torch.from_numpy(vectors), stored.vectors, stored.lists, depth, config.probes)
        items, cosines = self._allowed(anchors, near.items.numpy(), near.scores.numpy())
        own, bounds = expand(self._by_anchor, self._starts[anchors], np.diff(self._starts)[anchors])
        owners = np.repeat(np.arange(len(anchors)), np.diff(bounds))
        for start, stop in spans(len(own), max(1, SLOTS // items.shape[1])):
            some = owners[start:stop]
            self._choose(own[start:stop], vectors[some], items[some], cosines[some])

    def _allowed(self, anchors: np.ndarray, places: np.ndarray, cosines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Items and cosines of the ranks of each anchor [anchor, rank], `NOBODY` where there are fewer."""
        items = np.where(places == NOBODY, NOBODY, self._stored.items(places.clip(min=0)))
        order = np.lexsort((items, -cosines), axis=1)
        items, cosines = (np.take_along_axis(each, order, axis=1) for each in (items, cosines))
        row, column = np.nonzero(items != NOBODY)
        apart = ~self._graph.related(anchors[row], items[row, column])
        allowed = np.zeros(items.shape, bool)
        allowed[row[apart], column[apart]] = True
        width = min(self._config.last_rank, items.shape[1])
        # The allowed ones first, in their order.
        chosen = np.argsort(~allowed, axis=1, kind="stable")[:, :width]
        items = np.where(
            np.take_along_axis(allowed, chosen, axis=1), np.take_along_axis(items, chosen, axis=1), NOBODY
        )
        cosines = np.take_along_axis(cosines, chosen, axis=1)
        first = self._config.first_rank - 1
        return items[:, first:], cosines[:, first:]

    def _choose(self, pairs: np.ndarray, anchors: np.ndarray, items: np.ndarray, cosines: np.ndarray) -> None:
        """Choose negatives for pairs: given vectors of their anchors, and items and cosines of the ranks."""
        config, found = self._config, self._found
        others = self._stored.vectors.take(self._places[self._pairs[pairs, 1]])
        positive = (anchors * others).sum(axis=1).clip(-1, 1)
        known = anchors.any(axis=1) & others.any(axis=1)
        found.left_out[UNKNOWN] += int(np.count_nonzero(~known))
        left = (items != NOBODY) & known[:, None]
        for reason, wrong in self._wrong(positive[:, None], cosines):
            found.rejected[reason] += int(np.count_nonzero(left & wrong))
            left &= ~wrong
        whole = np.count_nonzero(left, axis=1) >= config.number
        found.left_out[FEW] += int(np.count_nonzero(known & ~whole))
        pairs, left, items, cosines = pairs[whole], left[whole], items[whole], cosines[whole]
        lots = np.broadcast_to(np.arange(items.shape[1], dtype=np.uint64), items.shape)
        if config.sampling == "random":
            # A lot depends on the pair and the item alone, whatever the blocks are.
            lots = mix(mix(pairs.astype(np.uint64) + salt(config.seed))[:, None] ^ items.astype(np.uint64))
        # No lot is the largest number, as one of 2^64 may be: a sentence that is rejected comes last in any case.
        lots = np.where(left, lots >> np.uint64(1), np.uint64(2**64 - 1))
        ranks = np.sort(np.argsort(lots, axis=1, kind="stable")[:, : config.number], axis=1)
        found.items[pairs] = np.take_along_axis(items, ranks, axis=1)
        found.cosines[pairs, 0] = positive[whole]
        found.cosines[pairs, 1:] = np.take_along_axis(cosines, ranks, axis=1).clip(-1, 1)

    def _wrong(self, positive: np.ndarray, cosines: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Yield each reason against a negative, and the sentences that it rejects [pair, rank]."""
        config = self._config
        if config.max_score is not None:
            yield "above max_score", cosines > np.float32(config.max_score)
        if config.min_score is not None:
            yield "below min_score", cosines < np.float32(config.min_score)
        if config.margin:
            yield "within the margin", cosines > positive - np.float32(config.margin)
        if config.relative_margin:
            # Also below a positive with a negative cosine.
            least = positive - np.float32(config.relative_margin) * np.abs(positive)
            yield "within the relative margin", cosines > least
