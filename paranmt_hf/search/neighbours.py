"""Find the nearest neighbours of vectors, pair them, and compute margin scores of the pairs.

Neighbours are collected from blocks of similarities; `nearest_vectors` and `compare_all` compare all vectors.

Margin scores: Artetxe & Schwenk 2019 (P19-1309), section 3. A cosine alone says little, because some sentences are
similar to everything. A margin score compares the cosine of two sentences with the mean cosine of both with their k
nearest neighbours (equation 2), as a ratio or as a distance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from paranmt_hf.search.storage import Vectors, read_progress, save_progress, spans

LOWEST = float("-inf")  # Similarity where a row has fewer neighbours than `top`
NOBODY = -1  # Item where a row has fewer neighbours than `top`
GROUPS = 8  # Groups of items for each neighbour that is sought, of whose maxima a bound is made
PARTITIONED = 256  # Rows of which the largest similarities are sought at once


class Neighbours:
    """The `top` most similar items of each row, among the items that were offered so far.

    Most blocks of similarities change nothing for most rows, and such a row only costs the search for its largest
    similarity.

    Attributes:
        scores: Similarities [row, rank], descending, float32; `LOWEST` where a row has fewer neighbours.
        items: Their items [row, rank], int32; `NOBODY` where a row has fewer neighbours.

    Args:
        rows: Number of rows.
        top: Maximum number of neighbours of a row.
        at_least: Smallest similarity of a neighbour.
        repeats: Whether a row may be offered the same item twice; it is kept once then. False is faster.
    """

    def __init__(self, rows: int, top: int, *, at_least: float = LOWEST, repeats: bool = False) -> None:
        self.scores = np.full((rows, top), LOWEST, np.float32)
        self.items = np.full((rows, top), NOBODY, np.int32)
        self._repeats = repeats
        # Similarities must exceed the floor, which is the next smaller number, so that `at_least` itself is kept.
        self._floor = np.nextafter(np.float32(at_least), np.float32(LOWEST))

    def offer(self, rows: np.ndarray, items: np.ndarray, similarities: np.ndarray) -> None:
        """Offer a block of items to a block of distinct rows, which keep the most similar ones.

        Args:
            rows: Rows of the block [block row], each once.
            items: Items of the block [block item], int32.
            similarities: Similarities [block row, block item], float32.
        """
        bounds = np.maximum(self.scores[rows, -1], self._floor)
        hit = np.flatnonzero(similarities.max(axis=1) > bounds)
        if not len(hit):
            return
        # Only a small part of the rows is worth copying; otherwise it is faster to look at the whole block.
        if len(hit) < len(rows) / 8:
            rows, similarities, bounds = rows[hit], similarities[hit], bounds[hit]
        top = min(self.scores.shape[1], similarities.shape[1])
        most = 2 * top * len(rows)
        marked = _marked(similarities, bounds, most)
        if marked is None:
            bounds = np.maximum(bounds, _reached(similarities, top))
            marked = _marked(similarities, bounds, most)
        if marked is None:
            # Many similarities are equal, or the block is small.
            self._merge(rows, *_largest(similarities, items, top))
            return
        row, column = marked
        scores, counts = similarities[row, column], np.bincount(row, minlength=len(rows))
        if counts.max() > top:
            order = np.lexsort((-scores, row))
            order = order[_ranks(counts) < top]
            row, column, scores, counts = row[order], column[order], scores[order], np.minimum(counts, top)
        # The rows that have candidates are numbered again from 0. Their candidates are arranged in a matrix
        # [row, rank], which `LOWEST` and `NOBODY` fill up.
        own = np.flatnonzero(counts)
        if not len(own):
            return
        number, rank = np.repeat(np.arange(len(own)), counts[own]), _ranks(counts)
        best = np.full((len(own), counts.max()), LOWEST, np.float32)
        found = np.full(best.shape, NOBODY, np.int32)
        best[number, rank], found[number, rank] = scores, items[column]
        self._merge(rows[own], best, found)

    def _merge(self, rows: np.ndarray, scores: np.ndarray, items: np.ndarray) -> None:
        """Replace the neighbours of rows by the most similar of their neighbours and candidates [row, candidate]."""
        kept = self.items[rows]
        if self._repeats:
            scores = np.where((items[:, :, None] == kept[:, None, :]).any(axis=2), np.float32(LOWEST), scores)
        scores = np.concatenate([self.scores[rows], scores], axis=1)
        items = np.concatenate([kept, items], axis=1)
        places = np.argsort(-scores, axis=1, kind="stable")[:, : kept.shape[1]]
        best, chosen = np.take_along_axis(scores, places, axis=1), np.take_along_axis(items, places, axis=1)
        # Candidates may be below the floor, because a row is merged if its largest candidate is above the floor.
        outside = best <= self._floor
        best[outside], chosen[outside] = LOWEST, NOBODY
        self.scores[rows], self.items[rows] = best, chosen


def _ranks(counts: np.ndarray) -> np.ndarray:
    """Number the entries of each row from 0, given the number of entries of each row [row]; returns [entry]."""
    return np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)


def _largest(similarities: np.ndarray, items: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the `top` largest similarities of each row, in any order, and their items [row, top].

    Args:
        similarities: Similarities [row, item].
        items: Items [item].
        top: Number of similarities, at most that of the items.
    """
    places = np.empty((len(similarities), top), np.int64)
    # The numbers of all places in a block would take twice the memory of its similarities.
    for start, stop in spans(len(places), PARTITIONED):
        places[start:stop] = np.argpartition(similarities[start:stop], -top, axis=1)[:, -top:]
    return np.take_along_axis(similarities, places, axis=1), items[places]


def _reached(similarities: np.ndarray, top: int) -> np.ndarray:
    """Return a bound for each row [row] that at least `top` of its similarities [row, item] exceed.

    The items are split into groups, and the bound is just below the `top`-th largest of the maxima of the groups.
    """
    rows, items = similarities.shape
    width = items // (GROUPS * top)
    if width < 2:
        return np.full(rows, LOWEST, np.float32)
    whole = similarities[:, : items // width * width]
    if _is_turned(similarities):
        maxima = whole.T.reshape(-1, width, rows).max(axis=1).T
    else:
        maxima = whole.reshape(rows, -1, width).max(axis=2)
    return np.nextafter(np.partition(maxima, -top, axis=1)[:, -top], np.float32(LOWEST))


def save_neighbours(path: Path, done: int, tables: Mapping[str, Neighbours], search: str) -> None:
    """Write a checkpoint of a search atomically.

    Args:
        path: File of the checkpoint.
        done: Number of finished steps.
        tables: Neighbours so far, by a name for each direction.
        search: What determines the neighbours, such as the settings as JSON.
    """
    arrays: dict[str, np.ndarray] = {}
    for name, table in tables.items():
        arrays[f"{name}.scores"] = table.scores
        arrays[f"{name}.items"] = table.items
    save_progress(path, arrays, {"done": done, "search": search})


def restore_neighbours(path: Path, tables: Mapping[str, Neighbours], search: str) -> int:
    """Read a checkpoint of `save_neighbours` into `tables`, and return its number of finished steps.

    Without a file, or with a file of another search, `tables` stay as they are and 0 is returned.
    """
    arrays, state = read_progress(path)
    if state.get("search") != search:
        return 0
    for name, table in tables.items():
        table.scores[:] = arrays[f"{name}.scores"]
        table.items[:] = arrays[f"{name}.items"]
    return int(state["done"])


def _is_turned(similarities: np.ndarray) -> bool:
    """Whether a matrix is transposed; it is then read in the order in which it lies in memory, which is faster."""
    return similarities.strides[0] < similarities.strides[1]


def _marked(similarities: np.ndarray, bounds: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Find the similarities that exceed the bound of their row.

    Returns their rows, ascending, and their columns [entry]; or None if there are more than `most`.
    """
    turned = _is_turned(similarities)
    above = similarities.T > bounds if turned else similarities > bounds[:, None]
    if np.count_nonzero(above) > most:
        return None
    # Numpy searches a vector several times as fast as a matrix.
    first, second = np.divmod(np.flatnonzero(above), above.shape[1])
    if not turned:
        return first, second
    order = np.argsort(second, kind="stable")
    return second[order], first[order]


BLOCK = 8192  # Number of vectors of a block; the similarities of two blocks take 256 MB


def nearest_vectors(queries: np.ndarray, vectors: Vectors, top: int, *, block_rows: int = BLOCK) -> Neighbours:
    """Compare queries [query, dimension] of length 1 with all vectors; items of the result are rows of `vectors`."""
    found = Neighbours(len(queries), top)
    rows = np.arange(len(queries))
    for start, stop in spans(len(vectors), block_rows):
        found.offer(rows, np.arange(start, stop, dtype=np.int32), queries @ vectors.read(start, stop).T)
    return found


def compare_all(
    vectors: Vectors,
    others: Vectors,
    forward: Neighbours,
    backward: Neighbours,
    *,
    done: int = 0,
    block: int = BLOCK,
) -> Iterator[float]:
    """Find the nearest neighbours of each vector among others, and of each of the others among the vectors.

    Each pair of vectors is compared once. To search inside one set, pass it as `vectors` and as `others`, and the same
    neighbours as `forward` and as `backward`; no vector becomes a neighbour of itself.

    Args:
        vectors: Vectors of the rows of `forward`, which are the items of `backward`.
        others: Vectors of the items of `forward`, which are the rows of `backward`.
        forward: Gets the neighbours of `vectors`.
        backward: Gets the neighbours of `others`.
        done: Number of steps that an earlier run finished; they are skipped.
        block: Number of vectors on each side of a step.

    Yields:
        The finished share of the work, after each step.
    """
    within = vectors is others
    steps = []
    for row in spans(len(vectors), block):
        steps += [(row, column) for column in spans(len(others), block) if not within or row <= column]
    held: tuple[tuple[int, int], np.ndarray] | None = None
    for number, (row, column) in enumerate(steps[done:], done + 1):
        if held is None or held[0] != row:
            held = row, vectors.read(*row)
        same_block = within and row == column
        similarities = held[1] @ (held[1] if same_block else others.read(*column)).T
        if same_block:
            np.fill_diagonal(similarities, LOWEST)
        rows, columns = np.arange(*row, dtype=np.int32), np.arange(*column, dtype=np.int32)
        forward.offer(rows, columns, similarities)
        if not same_block:
            backward.offer(columns, rows, similarities.T)
        yield number / len(steps)


AT_ONCE = 1 << 24  # Comparisons of neighbours with neighbours that `_candidates` makes at once


@dataclass(frozen=True)
class ItemPairs:
    """Pairs of items and their cosines; within one set, the second item of a pair is the larger number."""

    first: np.ndarray  # First items [pair]
    second: np.ndarray  # Second items [pair]
    cosine: np.ndarray  # Cosines [pair], float32

    def __len__(self) -> int:
        return len(self.first)

    def take(self, chosen: np.ndarray) -> ItemPairs:
        """Return the pairs with these indices, in this order, or those that a mask marks."""
        return ItemPairs(self.first[chosen], self.second[chosen], self.cosine[chosen])


def pairs_of(forward: Neighbours, backward: Neighbours, *, mutual: bool, at_least: float) -> ItemPairs:
    """Pair items with their nearest neighbours; each pair comes once.

    Args:
        forward: Neighbours of the items of the first set in the second set.
        backward: Neighbours of the items of the second set in the first set; `forward` itself inside one set.
        mutual: Whether each item of a pair must be a neighbour of the other; otherwise one of them is enough.
        at_least: Smallest cosine of a pair.
    """
    within = forward is backward
    parts = []
    for owner, item, cosine, listed in _candidates(forward, backward, at_least):
        kept = listed if mutual else np.ones(len(owner), bool)
        if within:
            # Items that are neighbours of each other are found twice, once from either.
            kept = kept & (~listed | (owner < item))
            owner, item = np.minimum(owner, item), np.maximum(owner, item)  # noqa: PLW2901
        parts.append(ItemPairs(owner[kept], item[kept], cosine[kept]))
    if not (mutual or within):
        # Pairs that only the items of the second set list; those listed on both sides were found above.
        for owner, item, cosine, listed in _candidates(backward, forward, at_least):
            parts.append(ItemPairs(item[~listed], owner[~listed], cosine[~listed]))
    columns = zip(*((part.first, part.second, part.cosine) for part in parts), strict=True)
    return ItemPairs(*map(np.concatenate, columns))


def _candidates(
    found: Neighbours, back: Neighbours, at_least: float
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield blocks of pairs of an item and one of its neighbours, with a cosine of at least `at_least`.

    Args:
        found: Neighbours of the items.
        back: Neighbours of these neighbours.
        at_least: Smallest cosine.

    Yields:
        The item, its neighbour, their cosine, and whether the item is also a neighbour of its neighbour
        [candidate].
    """
    scores, items, others = found.scores, found.items, back.items
    top = items.shape[1]
    for start, stop in spans(len(items), max(1, AT_ONCE // (top * others.shape[1]))):
        row, rank = np.nonzero((items[start:stop] != NOBODY) & (scores[start:stop] >= np.float32(at_least)))
        owner, item = row + start, items[start:stop][row, rank]
        listed = (others[item] == owner[:, None]).any(axis=1)
        yield owner, item.astype(np.int64), scores[start:stop][row, rank], listed


def mean_similarity(found: Neighbours, count: int) -> np.ndarray:
    """Compute the mean cosine of each item with its `count` nearest neighbours [item], float64.

    The mean is over fewer neighbours if an item has fewer, and 0 if it has none.
    """
    scores = found.scores[:, :count]
    there = np.isfinite(scores)
    sums = np.where(there, scores, 0).sum(axis=1, dtype=np.float64)
    return sums / np.maximum(there.sum(axis=1), 1)


def margin_scores(
    pairs: ItemPairs, first: np.ndarray, second: np.ndarray, kind: Literal["ratio", "distance"]
) -> np.ndarray:
    """Compute the margin score of each pair [pair], float32 (section 3.1 of the paper).

    Args:
        pairs: Pairs of items and their cosines.
        first: Mean cosine of each item of the first set with its neighbours [item].
        second: Mean cosine of each item of the second set with its neighbours [item].
        kind: `ratio` divides the cosine by the mean of both items' means; the ratio is infinite if this mean is not
            above 0. `distance` subtracts the mean from the cosine.
    """
    means = (first[pairs.first] + second[pairs.second]) / 2
    if kind == "distance":
        return (pairs.cosine - means).astype(np.float32)
    ratio = np.divide(pairs.cosine, means, out=np.full(len(pairs), np.inf), where=means > 0)
    return ratio.astype(np.float32)
