"""An inverted index: vectors are grouped into lists around centroids, and a search only reads the nearest few lists.

This is the inverted file of product quantisation (Jegou, Douze & Schmid 2011, section IV) over whole vectors. The
vectors lie in the order of their lists, so that a list is read in one piece, and compared in one matrix product with
all queries that probe it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from paranmt_hf.search.neighbours import LOWEST, Neighbours
from paranmt_hf.search.storage import Vectors, normalised, spans
from paranmt_hf.util.files import replacing

STEP = 8192  # Number of vectors that are compared with all centroids at once
AT_ONCE = 1 << 26  # Number of similarities that are computed at once; they take 256 MB
SHARD = 1 << 21  # Number of vectors whose nearest lists are in memory at once


class InvertedIndex:
    """Centroids, and the list of vectors of each.

    Vectors that are sorted by list are numbered by places; the numbers from before they were sorted are rows.

    Attributes:
        centroids: Vectors of length 1 [list, dimension].
        bounds: Bounds of the lists [list + 1]: list i has the places from `bounds[i]` up to `bounds[i + 1]`.
        order: Row of the vector in each place [place].
    """

    def __init__(self, centroids: np.ndarray, bounds: np.ndarray, order: np.ndarray) -> None:
        self.centroids, self.bounds, self.order = centroids, bounds, order

    @classmethod
    def make(cls, vectors: Vectors, count: int, seed: int = 1) -> InvertedIndex:
        """Choose `count` centroids for vectors, and assign each vector to the list of the most similar centroid.

        The seed decides which sample of the vectors the centroids are computed from, and which of these vectors are
        the initial centroids.
        """
        centroids = _centroids(vectors, count, seed)
        # One array is filled. A list of small arrays, allocated between large ones, would leave gigabytes of holes in
        # memory for a million vectors.
        lists = np.empty(len(vectors), np.int64)
        for start, stop in spans(len(vectors), STEP):
            lists[start:stop] = _nearest(vectors.read(start, stop), centroids, 1)[:, 0]
        order = np.argsort(lists, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(lists, minlength=count))])
        return cls(centroids, bounds, order)

    @classmethod
    def read(cls, folder: Path) -> InvertedIndex:
        """Read the inverted index that `save` wrote into a folder; `order` is memory-mapped."""
        centroids = np.load(folder / "centroids.npy", allow_pickle=False)
        bounds = np.load(folder / "bounds.npy", allow_pickle=False)
        order = np.load(folder / "order.npy", mmap_mode="r", allow_pickle=False)
        return cls(centroids, bounds, order)

    def save(self, folder: Path) -> None:
        """Write the centroids, the bounds and the order into npy files of a folder."""
        arrays = {"centroids": self.centroids, "bounds": self.bounds, "order": self.order}
        for name, array in arrays.items():
            with replacing(folder / f"{name}.npy") as aside, aside.open("wb") as file:
                np.save(file, array, allow_pickle=False)

    def __len__(self) -> int:
        return len(self.centroids)

    def probed(self, queries: np.ndarray, probes: int) -> np.ndarray:
        """Return the `probes` nearest lists of each query [query, probe], given vectors [query, dimension]."""
        count = min(probes, len(self))
        parts = [_nearest(queries[start:stop], self.centroids, count) for start, stop in spans(len(queries), STEP)]
        return np.concatenate([np.empty((0, count), np.int64), *parts])


def _nearest(vectors: np.ndarray, centroids: np.ndarray, count: int) -> np.ndarray:
    """Return the numbers of the `count` most similar centroids of each vector [vector, rank], in any order."""
    similarities = vectors @ centroids.T
    if count == 1:
        return similarities.argmax(axis=1, keepdims=True)
    return np.argpartition(similarities, -count, axis=1)[:, -count:]


def _centroids(vectors: Vectors, count: int, seed: int) -> np.ndarray:
    """Compute centroids [list, dimension] by spherical k-means (Dhillon & Modha 2001).

    There are 8 rounds over a sample of at most 64 vectors for each centroid.
    """
    generator = np.random.default_rng(seed)
    rows = np.sort(generator.choice(len(vectors), min(len(vectors), count * 64), replace=False))
    sample = vectors.take(rows)
    first = np.sort(generator.choice(len(rows), count, replace=False))
    centroids = sample[first]
    for _ in range(8):
        sums = np.zeros_like(centroids)
        for start, stop in spans(len(sample), STEP):
            block = sample[start:stop]
            nearest = (block @ centroids.T).argmax(axis=1)
            # The rows of each list follow each other, so that they can be added at once.
            order = np.argsort(nearest, kind="stable")
            lists, begins = np.unique(nearest[order], return_index=True)
            sums[lists] += np.add.reduceat(block[order], begins, axis=0)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        # A centroid without vectors stays the same.
        centroids = np.divide(sums, lengths, out=centroids, where=lengths > 0)
    return centroids


def nearest_in_lists(queries: np.ndarray, vectors: Vectors, lists: InvertedIndex, top: int, probes: int) -> Neighbours:
    """Find the vectors that are most similar to queries [query, dimension], among those of their `probes` lists.

    The items of the result are places of `vectors`, which are sorted by list.
    """
    found = Neighbours(len(queries), top)
    for number, rows in _by_list(lists.probed(queries, probes)):
        start, stop = int(lists.bounds[number]), int(lists.bounds[number + 1])
        if start == stop:
            continue
        members, places = vectors.read(start, stop), np.arange(start, stop, dtype=np.int32)
        for some in _pieces(rows, len(members)):
            found.offer(some, places, queries[some] @ members.T)
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
    """Find the neighbours of each vector among others, and of each of the others among the vectors.

    Each vector is compared with the vectors of its nearest lists, and each comparison is offered to both vectors. To
    search inside one set, pass it as `vectors` and as `others`, and the same neighbours as `forward` and as
    `backward`, which must allow repeats.

    Args:
        vectors: Vectors of the rows of `forward`, which are the items of `backward`.
        others: Vectors, sorted by list, of the items of `forward`, which are the rows of `backward`.
        lists: The lists of `others`.
        probes: Number of lists that each vector is compared with.
        forward: Gets the neighbours of `vectors`.
        backward: Gets the neighbours of `others`.
        done: Number of steps that an earlier run finished; they are skipped.

    Yields:
        The finished share of the work, after each step.
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
    """Find pairs of vectors of one set whose cosine is at least a minimum.

    Vectors are named by their rows, from before they were sorted. A pair may be found twice.

    Args:
        vectors: Vectors, sorted by list.
        lists: Their lists.
        probes: Number of lists that each vector is compared with.
        least: Smallest cosine of a pair.
        most: In each list, a vector is paired with this many similar rows, the first ones; in lists that do not hold
            the vector itself, with one more.
        signatures: A number for each row [row]. If given, a vector is also paired with the first `most` of the similar
            rows that have its own signature.

    Yields:
        The earlier and the later rows of the pairs [pair], once for each list and shard of vectors.
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
    """Mark the first `most + 1` entries of each row, given the ascending row of each entry [entry].

    One more than `most` is marked, because a row may be similar to itself.
    """
    return np.arange(len(row)) - np.searchsorted(row, row) <= most


def _probed(vectors: Vectors, shard: tuple[int, int], lists: InvertedIndex, probes: int) -> np.ndarray:
    """Return the `probes` nearest lists of each vector of a shard, given by its start and end [vector, probe]."""
    found = np.empty((shard[1] - shard[0], min(probes, len(lists))), np.int32)
    for start, stop in spans(len(found), STEP):
        found[start:stop] = lists.probed(vectors.read(shard[0] + start, shard[0] + stop), probes)
    return found


def _by_list(probed: np.ndarray, every: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
    """Group rows by the lists that they probe.

    Args:
        probed: Lists of each row [row, probe].
        every: Number of lists, to yield also the lists that no row probes; None leaves these out.

    Yields:
        The number of a list, ascending, and the rows that probe it, ascending.
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
    """Compare the vectors of some rows with the vectors of one list of `others`, and offer the similarities to both.

    `bounds` are the places of the list, its start and its end.
    """
    start, stop = int(bounds[0]), int(bounds[1])
    if start == stop or not len(rows):
        return
    members, places = others.read(start, stop), np.arange(start, stop, dtype=np.int32)
    for some in _pieces(rows, len(members)):
        similarities = vectors.take(some) @ members.T
        if vectors is others:
            # A vector of this list must not become its own neighbour.
            members_of_list = np.flatnonzero((some >= start) & (some < stop))
            similarities[members_of_list, some[members_of_list] - start] = LOWEST
        forward.offer(some, places, similarities)
        backward.offer(places, some.astype(np.int32), similarities.T)


def _pieces(rows: np.ndarray, others: int) -> Iterator[np.ndarray]:
    """Split rows [row] into pieces that have at most `AT_ONCE` similarities to a number of others."""
    for start, stop in spans(len(rows), max(1, AT_ONCE // others)):
        yield rows[start:stop]
