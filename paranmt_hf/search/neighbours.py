"""The most similar items of each row, pairs of these, and margin scores.

Items are collected from blocks of similarities, or found by comparing all vectors.

Artetxe & Schwenk 2019 (P19-1309), section 3: a cosine says little by itself, because some sentences are similar to
everything. The margin compares it with the mean cosine of both sentences with their k nearest neighbours (equation 2)
as a ratio, or as a distance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from paranmt_hf.search.storage import Vectors, read_progress, save_progress, spans

LOWEST = float("-inf")
NOBODY = -1


class Neighbours:
    """The `top` most similar items of each row so far, above a minimum similarity.

    A block of similarities costs one look at the largest of each row: most blocks hold nothing for most rows. With
    `repeats` a row may be offered the same item twice. `scores` [row, rank], descending, float32, are `LOWEST` where
    fewer items were offered, and `items` [row, rank], int32, `NOBODY`.
    """

    def __init__(self, rows: int, top: int, *, at_least: float = LOWEST, repeats: bool = False) -> None:
        self.scores = torch.full((rows, top), LOWEST)
        self.items = torch.full((rows, top), NOBODY, dtype=torch.int32)
        self._repeats = repeats
        # A similarity must exceed the bound, so that one equal to `at_least` is kept.
        self._floor = float(np.nextafter(np.float32(at_least), np.float32(LOWEST)))

    def offer(self, rows: torch.Tensor, items: torch.Tensor, similarities: torch.Tensor) -> None:
        """Update the most similar items of distinct rows from similarities [block row, block item]."""
        bounds = self.scores[rows, -1].clamp_min(self._floor)
        hit = (similarities.amax(dim=1) > bounds).nonzero().squeeze(1)
        if not len(hit):
            return
        # Copying most of a block costs more than looking at all of it.
        if len(hit) < len(rows) / 8:
            rows, similarities, bounds = rows[hit], similarities[hit], bounds[hit]
        top = min(self.scores.shape[1], similarities.shape[1])
        # Among many marked similarities it is faster to search for the largest of each row in all of them.
        row, column = _marked(similarities, bounds, most=2 * top * len(rows))
        if row is None or column is None:
            scores, places = similarities.topk(top, dim=1)
            self._merge(rows, scores, items[places])
            return
        counts = torch.bincount(row, minlength=len(rows))
        many = counts > top
        if many.any():
            scores, places = similarities[many].topk(top, dim=1)
            self._merge(rows[many], scores, items[places])
        # The others, numbered again from 0, in rows of equal length: candidates [row, rank].
        few = (counts > 0) & ~many
        chosen = few[row]
        row, column = row[chosen], column[chosen]
        if not len(row):
            return
        number, counts = (few.cumsum(0) - 1)[row], counts[few]
        rank = torch.arange(len(row)) - (counts.cumsum(0) - counts)[number]
        scores = torch.full((len(counts), int(counts.max())), LOWEST)
        found = torch.full(scores.shape, NOBODY, dtype=torch.int32)
        scores[number, rank], found[number, rank] = similarities[row, column], items[column]
        self._merge(rows[few], scores, found)

    def _merge(self, rows: torch.Tensor, scores: torch.Tensor, items: torch.Tensor) -> None:
        """Merge candidates [row, candidate] with those kept, and keep the most similar."""
        kept = self.items[rows]
        if self._repeats:
            scores = scores.masked_fill((items[:, :, None] == kept[:, None, :]).any(dim=2), LOWEST)
        scores = torch.cat([self.scores[rows], scores], dim=1)
        best, places = scores.topk(kept.shape[1], dim=1)
        chosen = torch.cat([kept, items], dim=1).gather(1, places)
        # Candidates below the floor came with the largest of their row.
        outside = best <= self._floor
        self.scores[rows] = best.masked_fill(outside, LOWEST)
        self.items[rows] = chosen.masked_fill(outside, NOBODY)


def save_neighbours(path: Path, done: int, tables: Mapping[str, Neighbours], search: str) -> None:
    """Write neighbours atomically, with the number of steps and the identity of the search."""
    arrays = {}
    for name, table in tables.items():
        arrays[f"{name}.scores"] = table.scores.numpy()
        arrays[f"{name}.items"] = table.items.numpy()
    save_progress(path, arrays, {"done": done, "search": search})


def restore_neighbours(path: Path, tables: Mapping[str, Neighbours], search: str) -> int:
    """Read what `save_neighbours` wrote; returns the number of steps, 0 without a file of this search."""
    arrays, state = read_progress(path)
    if state.get("search") != search:
        return 0
    for name, table in tables.items():
        table.scores.copy_(torch.from_numpy(arrays[f"{name}.scores"]))
        table.items.copy_(torch.from_numpy(arrays[f"{name}.items"]))
    return int(state["done"])


def _marked(
    similarities: torch.Tensor, bounds: torch.Tensor, most: int
) -> tuple[torch.Tensor, torch.Tensor] | tuple[None, None]:
    """Find the values above the bound of their row: rows, ascending, and columns; None if more than `most`."""
    # A transposed block is read in the order of its memory.
    turned = similarities.stride(0) < similarities.stride(1)
    above = similarities.T > bounds if turned else similarities > bounds[:, None]
    # Numpy counts many times as fast as torch.
    if np.count_nonzero(above.numpy()) > most:
        return None, None
    first, second = above.nonzero(as_tuple=True)
    if not turned:
        return first, second
    row, order = second.sort(stable=True)
    return row, first[order]


BLOCK = 8192  # Vectors of a block; 8192 x 8192 similarities are 256 MB


def nearest_vectors(queries: torch.Tensor, vectors: Vectors, top: int, *, block_rows: int = BLOCK) -> Neighbours:
    """Find the vectors that are most similar to queries [query, dimension] of length 1."""
    found = Neighbours(len(queries), top)
    rows = torch.arange(len(queries))
    for start, stop in spans(len(vectors), block_rows):
        block = torch.from_numpy(vectors.read(start, stop))
        found.offer(rows, torch.arange(start, stop, dtype=torch.int32), queries @ block.T)
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
    """Find the neighbours of each vector among others, into `forward`, and the reverse, into `backward`.

    Inside one set, `others` is `vectors` and `backward` is `forward`. The similarity of two vectors is computed once
    and offered to both. Yields, after each step beyond `done`, the finished share of the work.
    """
    within = vectors is others
    steps = []
    for row in spans(len(vectors), block):
        steps += [(row, column) for column in spans(len(others), block) if not within or row <= column]
    held: tuple[tuple[int, int], torch.Tensor] | None = None
    for number, (row, column) in enumerate(steps[done:], done + 1):
        if held is None or held[0] != row:
            held = row, torch.from_numpy(vectors.read(*row))
        own = within and row == column
        similarities = held[1] @ (held[1] if own else torch.from_numpy(others.read(*column))).T
        if own:
            similarities.fill_diagonal_(LOWEST)
        rows, columns = torch.arange(*row), torch.arange(*column)
        forward.offer(rows, columns.int(), similarities)
        if not own:
            backward.offer(columns, rows.int(), similarities.T)
        yield number / len(steps)


AT_ONCE = 1 << 24  # Candidates that are compared with candidates at once


@dataclass(frozen=True)
class ItemPairs:
    """Pairs of items [pair], and their cosines, float32; within one set, the second item has the larger index."""

    first: np.ndarray
    second: np.ndarray
    cosine: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    def take(self, chosen: np.ndarray) -> ItemPairs:
        return ItemPairs(self.first[chosen], self.second[chosen], self.cosine[chosen])


def pairs_of(forward: Neighbours, backward: Neighbours, *, mutual: bool, at_least: float) -> ItemPairs:
    """Pair items with their neighbours in another set, each once, with at least a minimum cosine.

    Inside one set, `backward` is `forward`. With `mutual` both must be neighbours of each other; else one of the other
    is enough.
    """
    within = forward is backward
    parts = []
    for owner, item, cosine, listed in _candidates(forward, backward, at_least):
        kept = listed if mutual else np.ones(len(owner), bool)
        if within:
            # Those that are neighbours of each other come twice.
            kept = kept & (~listed | (owner < item))
            owner, item = np.minimum(owner, item), np.maximum(owner, item)  # noqa: PLW2901
        parts.append(ItemPairs(owner[kept], item[kept], cosine[kept]))
    if not (mutual or within):
        for owner, item, cosine, listed in _candidates(backward, forward, at_least):
            parts.append(ItemPairs(item[~listed], owner[~listed], cosine[~listed]))
    columns = zip(*((part.first, part.second, part.cosine) for part in parts), strict=True)
    return ItemPairs(*map(np.concatenate, columns))


def _candidates(
    found: Neighbours, back: Neighbours, at_least: float
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield blocks of items, their neighbours, cosines, and whether the relation is mutual."""
    scores, items, others = found.scores.numpy(), found.items.numpy(), back.items.numpy()
    top = items.shape[1]
    for start, stop in spans(len(items), max(1, AT_ONCE // (top * others.shape[1]))):
        row, rank = np.nonzero((items[start:stop] != NOBODY) & (scores[start:stop] >= np.float32(at_least)))
        owner, item = row + start, items[start:stop][row, rank]
        listed = (others[item] == owner[:, None]).any(axis=1)
        yield owner, item.astype(np.int64), scores[start:stop][row, rank], listed


def mean_similarity(found: Neighbours, count: int) -> np.ndarray:
    """Mean cosine of each item with its `count` nearest neighbours [item], or with fewer if there are fewer."""
    scores = found.scores.numpy()[:, :count]
    there = np.isfinite(scores)
    sums = np.where(there, scores, 0).sum(axis=1, dtype=np.float64)
    return sums / np.maximum(there.sum(axis=1), 1)


def margin_scores(
    pairs: ItemPairs, first: np.ndarray, second: np.ndarray, kind: Literal["ratio", "distance"]
) -> np.ndarray:
    """Compute margin scores [pair], float32 (section 3.1), from mean cosines of items with their neighbours [item].

    `ratio` is the cosine over the mean of both, infinite over a mean that is not above 0, where nothing else is near;
    `distance` is the cosine less that mean.
    """
    means = (first[pairs.first] + second[pairs.second]) / 2
    if kind == "distance":
        return (pairs.cosine - means).astype(np.float32)
    ratio = np.divide(pairs.cosine, means, out=np.full(len(pairs), np.inf), where=means > 0)
    return ratio.astype(np.float32)
