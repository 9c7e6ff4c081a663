"""Inverted lists: vectors grouped around centroids; a search compares the nearest few groups.

This is the inverted file of product quantisation (Jegou, Douze & Schmid 2011, section IV) over whole vectors. The
vectors lie in the order of their lists, so that a list is read in one piece and compared with all that look into it in
one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from paranmt_hf.search.neighbours import LOWEST, Neighbours
from paranmt_hf.search.storage import Vectors, normalised, spans
from paranmt_hf.util.files import replacing

STEP = 8192  # Vectors that are compared with all centroids at once
AT_ONCE = 1 << 26  # Similarities that are computed at once: 256 MB
SHARD = 1 << 21  # Vectors whose nearest lists are held at once


class InvertedIndex:
    """Centroids of length 1 [list, dimension], and the bounds of their lists.

    `bounds` are the place of the first vector of each list [list + 1]; the last is the number of vectors. `order` is
    the row of the vector in each place [place], from before the vectors were sorted.
    """

    def __init__(self, centroids: torch.Tensor, bounds: np.ndarray, order: np.ndarray) -> None:
        self.centroids, self.bounds, self.order = centroids, bounds, order

    @classmethod
    def make(cls, vectors: Vectors, count: int, seed: int = 1) -> InvertedIndex:
        """Choose centroids for vectors, and assign each vector to the list of the most similar centroid.

        The seed decides which vectors the centroids are chosen from, and which of them are the first ones.
        """
        centroids = _centroids(vectors, count, seed)
        # Small arrays kept between large ones would leave holes in memory, gigabytes for a million vectors.
        lists = np.empty(len(vectors), np.int64)
        for start, stop in spans(len(vectors), STEP):
            lists[start:stop] = _nearest(torch.from_numpy(vectors.read(start, stop)), centroids, 1)[:, 0]
        order = np.argsort(lists, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(lists, minlength=count))])
        return cls(centroids, bounds, order)

    @classmethod
    def read(cls, folder: Path) -> InvertedIndex:
        centroids = np.load(folder / "centroids.npy", allow_pickle=False)
        bounds = np.load(folder / "bounds.npy", allow_pickle=False)
        order = np.load(folder / "order.npy", mmap_mode="r", allow_pickle=False)
        return cls(torch.from_numpy(centroids), bounds, order)

    def save(self, folder: Path) -> None:
        """Write the lists into a folder."""
        arrays = {"centroids": self.centroids.numpy(), "bounds": self.bounds, "order": self.order}
        for name, array in arrays.items():
            with replacing(folder / f"{name}.npy") as aside, aside.open("wb") as file:
                np.save(file, array, allow_pickle=False)

    def __len__(self) -> int:
        return len(self.centroids)

    def probed(self, queries: torch.Tensor, probes: int) -> np.ndarray:
        """Find the lists that are searched for queries [query, dimension]: [query, probe]."""
        count = min(probes, len(self))
        parts = [_nearest(queries[start:stop], self.centroids, count) for start, stop in spans(len(queries), STEP)]
        return np.concatenate([np.empty((0, count), np.int64), *parts])


def _nearest(vectors: torch.Tensor, centroids: torch.Tensor, count: int) -> np.ndarray:
    """Find the most similar centroids of vectors [vector, rank]."""
    similarities = vectors @ centroids.T
    if count == 1:
        return similarities.argmax(dim=1, keepdim=True).numpy()
    return similarities.topk(count, dim=1).indices.numpy()


def _centroids(vectors: Vectors, count: int, seed: int) -> torch.Tensor:
    """Choose centroids [list, dimension] by spherical k-means (Dhillon & Modha 2001) over a sample.

    The sample has 64 vectors for each centroid, and there are 8 rounds.
    """
    generator = np.random.default_rng(seed)
    rows = np.sort(generator.choice(len(vectors), min(len(vectors), count * 64), replace=False))
    sample = torch.from_numpy(vectors.take(rows))
    first = np.sort(generator.choice(len(rows), count, replace=False))
    centroids = sample[torch.from_numpy(first)]
    for _ in range(8):
        sums = torch.zeros_like(centroids)
        for start, stop in spans(len(sample), STEP):
            nearest = (sample[start:stop] @ centroids.T).argmax(dim=1)
            sums.index_add_(0, nearest, sample[start:stop])
        lengths = sums.norm(dim=1, keepdim=True)
        # A centroid without vectors stays the same.
        centroids = torch.where(lengths > 0, sums / lengths, centroids)
    return centroids


def nearest_in_lists(
    queries: torch.Tensor, vectors: Vectors, lists: InvertedIndex, top: int, probes: int
) -> Neighbours:
    """Find the positions of the vectors in the probed lists that are most similar to queries [query, dimension]."""
    found = Neighbours(len(queries), top)
    for number, rows in _by_list(lists.probed(queries, probes)):
        start, stop = lists.bounds[number], lists.bounds[number + 1]
        members = torch.from_numpy(vectors.read(start, stop))
        for some in torch.from_numpy(rows).split(max(1, AT_ONCE // max(1, len(members)))):
            found.offer(some, torch.arange(start, stop, dtype=torch.int32), queries[some] @ members.T)
    return found


def compare_lists(
    vectors: Vectors,
    others: Vectors,
    lists: InvertedIndex,
    probes: int,
    forward: Neighbours,
    backward: Neighbours,
    *,
    done: int = 0,
) -> Iterator[float]:
    """Find the neighbours of each vector among others, in both directions.

    Each vector is compared with its nearest `probes` lists of the others, and each comparison counts for both vectors.
    Inside one set, `others` is `vectors` and `backward` is `forward`. `forward` gets the neighbours of the vectors, as
    positions of the others, and `backward` those of the others. Yields the finished share of the work after each step
    beyond `done`.
    """
    shards = list(spans(len(vectors), SHARD))
    total = len(shards) * len(lists)
    for number, shard in enumerate(shards):
        if done >= (number + 1) * len(lists):
            continue
        probed = _probed(vectors, shard, lists, probes)
        for place, rows in _by_list(probed, every=len(lists)):
            step = number * len(lists) + place + 1
            if step <= done:
                continue
            _compare(vectors, others, shard[0] + rows, lists.bounds[place : place + 2], forward, backward)
            yield step / total


def alike(
    vectors: Vectors,
    lists: InvertedIndex,
    probes: int,
    least: float,
    most: int,
    signatures: np.ndarray | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Find pairs of rows of one set with at least a minimum cosine: yields the earlier and the later rows [pair].

    Rows are those from before the vectors were sorted. Each is compared with its nearest `probes` lists, and paired
    with at most `most` rows of a list, the first ones; and with as many of those that have its signature, if there are
    `signatures` [row]. A pair may be found twice. Yields once for each list and shard.
    """
    # The cosine of equal vectors may be less than 1, because products in single precision are rounded.
    least = min(least, 1 - 1e-5)
    for shard in spans(len(vectors), SHARD):
        for number, rows in _by_list(_probed(vectors, shard, lists, probes), every=len(lists)):
            start, stop = int(lists.bounds[number]), int(lists.bounds[number + 1])
            # Stored vectors are rounded, and their length is not exactly 1.
            members, parts = normalised(vectors.read(start, stop)).T, [np.empty((2, 0), np.int64)]
            for some in np.array_split(shard[0] + rows, -(-len(rows) * members.shape[1] // AT_ONCE) or 1):
                near = normalised(vectors.take(some)) @ members >= np.float32(least)
                # A list has its rows in ascending order.
                row, column = np.nonzero(near)
                pair = np.stack([lists.order[some[row]], lists.order[start + column]])
                chosen = _first_of_rows(row, most)
                if signatures is not None:
                    same = np.flatnonzero(signatures[pair[0]] == signatures[pair[1]])
                    chosen[same] |= _first_of_rows(row[same], most)
                pair = pair[:, chosen & (pair[0] != pair[1])]
                parts.append(np.sort(pair, axis=0))
            earlier, later = np.concatenate(parts, axis=1)
            yield earlier, later


def _first_of_rows(row: np.ndarray, most: int) -> np.ndarray:
    """Mark the first `most` entries of each row, and one more for the row itself, given ascending rows [entry]."""
    return np.arange(len(row)) - np.searchsorted(row, row) <= most


def _probed(vectors: Vectors, shard: tuple[int, int], lists: InvertedIndex, probes: int) -> np.ndarray:
    """Find the lists that are searched for the vectors of a shard [vector, probe]."""
    found = np.empty((shard[1] - shard[0], min(probes, len(lists))), np.int32)
    for start, stop in spans(len(found), STEP):
        queries = torch.from_numpy(vectors.read(shard[0] + start, shard[0] + stop))
        found[start:stop] = lists.probed(queries, probes)
    return found


def _by_list(probed: np.ndarray, every: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
    """Invert the lists of each row [row, probe] to the ascending rows of each list, in the order of the lists.

    With `every`, the number of lists, also lists that no row looks into.
    """
    order = np.argsort(probed, axis=None, kind="stable")
    counts = np.bincount(probed.ravel(), minlength=every or 0)
    ends = np.cumsum(counts)
    for number, (count, end) in enumerate(zip(counts, ends, strict=True)):
        if count or every:
            yield number, order[end - count : end] // probed.shape[1]


def _compare(
    vectors: Vectors,
    others: Vectors,
    rows: np.ndarray,
    bounds: np.ndarray,
    forward: Neighbours,
    backward: Neighbours,
) -> None:
    """Compare some vectors with those of a list."""
    start, stop = int(bounds[0]), int(bounds[1])
    if start == stop or not len(rows):
        return
    members, places = torch.from_numpy(others.read(start, stop)), torch.arange(start, stop)
    for some in torch.from_numpy(rows).split(max(1, AT_ONCE // len(members))):
        similarities = torch.from_numpy(vectors.take(some.numpy())) @ members.T
        if vectors is others:
            own = ((some >= start) & (some < stop)).nonzero().squeeze(1)
            similarities[own, some[own] - start] = LOWEST
        forward.offer(some, places.int(), similarities)
        backward.offer(places, some.int(), similarities.T)
