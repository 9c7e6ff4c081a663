"""An index of vectors in memory that grows: vectors can be added and removed one by one, and the nearest found.

Vectors of length 1 are stored as 8-bit numbers, in lists around centroids (an inverted file). In the lists of the
nearest centroids, the signs of all rows are compared with those of the query first, and then the rows with the most
equal signs by their products. Each list is a chain of blocks of `BLOCK` rows, so adding a vector moves no other.
"""

from __future__ import annotations

import numpy as np

from paranmt_hf.search.storage import spans
from paranmt_hf.util.machine import compiled

BLOCK = 32  # Rows of a block
SCALE = np.float32(127)
FEWEST = 16_384  # Up to this number of vectors there is one list
GROWTH = 4  # The centroids are made again when there are this many times as many vectors
LISTS = 3  # Number of lists, in square roots of the number of vectors
SAMPLE = 32  # Number of vectors of each list from which centroids are made
STEPS = 6  # Steps of k-means
EXACT = 64  # Number of rows, those with the most equal signs, of which each query's product is computed, at least
PROBES = 16  # Lists that each query is compared with
AT_ONCE = 4096


class GrowingIndex:
    """Vectors [item, dimension] in lists, with the numbers of their items.

    Args:
        dimension: Dimension of the vectors.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._count = 0
        self._reset(np.zeros((1, dimension), np.float32))

    def _reset(self, centroids: np.ndarray) -> None:
        """Begin with empty lists around some centroids [list, dimension]."""
        self.centroids = centroids
        self._rows = np.zeros((BLOCK, self.dimension), np.int8)  # Rows of all blocks [row, dimension]
        self._signs = np.zeros((BLOCK, -(-self.dimension // 64)), np.uint64)  # Signs of all rows, as bits [row, word]
        self._items = np.full(BLOCK, -1, np.int64)  # Item of each row [row], -1 for a row that is free
        self._next = np.full(1, -1, np.int64)  # The block before each block in its list [block], -1 for none
        self._last = np.full(len(centroids), -1, np.int64)  # Last block of each list [list], -1 for none
        self._filled = np.full(len(centroids), BLOCK, np.int64)  # Filled rows of the last block [list]
        self._blocks = 0

    def __len__(self) -> int:
        return self._count

    @property
    def wants_lists(self) -> bool:
        """Whether there are so many vectors that centroids should be made, or made again."""
        # The number of lists is `LISTS` times the square root of the number of vectors for which they were made.
        made_for = (len(self.centroids) / LISTS) ** 2 if len(self.centroids) > 1 else FEWEST / GROWTH
        return self._count >= GROWTH * made_for

    def with_lists(self, seed: int) -> GrowingIndex:
        """Return an index of the same vectors with centroids for their number, by k-means on a sample of them."""
        used = np.flatnonzero(self._items[: self._blocks * BLOCK] >= 0)
        used = used[np.argsort(self._items[used], kind="stable")]
        lists = LISTS * round(len(used) ** 0.5)
        chosen = np.random.default_rng(seed).choice(len(used), min(len(used), SAMPLE * lists), replace=False)
        sample = self._rows[used[chosen]].astype(np.float32) / SCALE
        centroids = sample[:lists].copy()
        for _ in range(STEPS):
            nearest = _nearest_lists(sample, centroids)
            sums = np.zeros_like(centroids)
            np.add.at(sums, nearest, sample)
            lengths = np.linalg.norm(sums, axis=1, keepdims=True)
            # A centroid without vectors stays where it is.
            centroids = np.where(lengths > 0, sums / np.maximum(lengths, 1e-9), centroids).astype(np.float32)
        made = GrowingIndex(self.dimension)
        made._reset(centroids)
        for start, stop in spans(len(used), AT_ONCE):
            rows = self._rows[used[start:stop]]
            made._append(rows, self._items[used[start:stop]], made.lists_of(rows.astype(np.float32)))
        return made

    def lists_of(self, vectors: np.ndarray) -> np.ndarray:
        """Return the list of the nearest centroid of each vector [vector], int64."""
        return _nearest_lists(vectors, self.centroids)

    def add(self, vectors: np.ndarray, items: np.ndarray) -> None:
        """Add vectors of length 1 [vector, dimension], float32, with the numbers of their items [vector]."""
        self._append(rounded(vectors), items, self.lists_of(vectors))

    def _append(self, rows: np.ndarray, items: np.ndarray, lists: np.ndarray) -> None:
        """Append rows [row, dimension], int8, to lists."""
        need = BLOCK * (self._blocks + len(rows) // BLOCK + len(self.centroids) + 1)
        if need > len(self._rows):
            size = BLOCK * (max(need, len(self._rows) * 5 // 4) // BLOCK + 1)
            self._rows = np.concatenate([self._rows, np.zeros((size - len(self._rows), self.dimension), np.int8)])
            self._signs = np.concatenate(
                [self._signs, np.zeros((size - len(self._signs), self._signs.shape[1]), np.uint64)]
            )
            self._items = np.concatenate([self._items, np.full(size - len(self._items), -1, np.int64)])
            self._next = np.concatenate([self._next, np.full(size // BLOCK - len(self._next), -1, np.int64)])
        places, self._blocks = _places(lists, self._next, self._last, self._filled, self._blocks)
        self._rows[places], self._signs[places], self._items[places] = rows, signs_of(rows), items
        self._count += len(rows)

    def remove(self, items: np.ndarray) -> None:
        """Remove items; the places of their vectors stay empty."""
        gone = np.isin(self._items, items) & (self._items >= 0)
        self._items[gone] = -1
        self._count -= int(gone.sum())

    def nearest(self, vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
        """Find the items with the largest cosines.

        Args:
            vectors: Queries of length 1 [query, dimension], float32.
            top: Number of items of each query.

        Returns:
            Items [query, rank], int64, -1 where there are fewer, and their cosines [query, rank], float32.
        """
        probes = min(PROBES, len(self.centroids))
        similarities = vectors @ self.centroids.T
        lists = np.argpartition(-similarities, probes - 1, axis=1)[:, :probes]
        items = np.full((len(vectors), top), -1, np.int64)
        cosines = np.full((len(vectors), top), -np.inf, np.float32)
        scaled = np.ascontiguousarray(vectors, np.float32) / SCALE
        chains = self._next, self._last, self._filled
        _search(scaled, signs_of(vectors), lists, self._rows, self._signs, self._items, *chains, items, cosines)
        return items, cosines


def rounded(vectors: np.ndarray) -> np.ndarray:
    """Round vectors of length 1 [vector, dimension] to 8-bit numbers."""
    return np.rint(vectors * SCALE).astype(np.int8)


def _nearest_lists(vectors: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """Return the centroid with the largest product of each vector [vector], int64."""
    found = np.empty(len(vectors), np.int64)
    for start, stop in spans(len(vectors), AT_ONCE):
        found[start:stop] = np.argmax(vectors[start:stop] @ centroids.T, axis=1)
    return found


def signs_of(vectors: np.ndarray) -> np.ndarray:
    """Return which numbers of each vector [vector, dimension] are above 0, as bits [vector, word], uint64."""
    padded = np.zeros((len(vectors), -(-vectors.shape[1] // 64) * 64), bool)
    padded[:, : vectors.shape[1]] = vectors > 0
    return np.packbits(padded, axis=1).view(np.uint64)


@compiled()
def _places(
    lists: np.ndarray, before: np.ndarray, last: np.ndarray, filled: np.ndarray, blocks: int
) -> tuple[np.ndarray, int]:
    """Take a place in its list for each new row [row], and return the places and the number of blocks.

    Args:
        lists: List of each new row [row].
        before: The block before each block in its list [block], changed in place.
        last: Last block of each list [list], changed in place.
        filled: Filled rows of the last block of each list [list], changed in place.
        blocks: Number of blocks so far.
    """
    places = np.empty(len(lists), np.int64)
    for row in range(len(lists)):
        of = lists[row]
        if filled[of] == BLOCK:
            before[blocks], last[of], filled[of] = last[of], blocks, 0
            blocks += 1
        places[row] = last[of] * BLOCK + filled[of]
        filled[of] += 1
    return places, blocks


@compiled(plain=np.bitwise_count)
def _ones(word: np.uint64) -> np.uint64:
    """Count the bits of a word of 64 bits that are 1."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled(fast=True)
def _product(vector: np.ndarray, row: np.ndarray) -> float:
    """Return the inner product of a vector [dimension], float32, and a row of 8-bit numbers [dimension]."""
    product = np.float32(0)
    for column in range(len(row)):
        product += vector[column] * np.float32(row[column])
    return float(product)


@compiled()
def _insert(item: int, product: float, items: np.ndarray, cosines: np.ndarray) -> None:
    """Insert an item into a ranking [rank] in place; of equal products the smaller item is first."""
    rank = len(items)
    while rank > 0:
        behind = product == cosines[rank - 1] and item > items[rank - 1]
        if product < cosines[rank - 1] or behind:
            break
        rank -= 1
    for later in range(len(items) - 1, rank, -1):
        items[later], cosines[later] = items[later - 1], cosines[later - 1]
    if rank < len(items):
        items[rank], cosines[rank] = item, product


@compiled()
def _search(
    queries: np.ndarray,
    query_signs: np.ndarray,
    lists: np.ndarray,
    rows: np.ndarray,
    signs: np.ndarray,
    row_items: np.ndarray,
    before: np.ndarray,
    last: np.ndarray,
    filled: np.ndarray,
    items: np.ndarray,
    cosines: np.ndarray,
) -> None:
    """Compare queries with the rows of their lists, and keep the items of the largest products in place.

    Args:
        queries: Queries divided by `SCALE` [query, dimension], float32.
        query_signs: Signs of the queries [query, word].
        lists: Lists of each query [query, probe].
        rows: Rows of all blocks [row, dimension], int8.
        signs: Signs of all rows [row, word].
        row_items: Item of each row [row], -1 for none.
        before: The block before each block in its list [block].
        last: Last block of each list [list].
        filled: Filled rows of the last block of each list [list].
        items: Receives the items [query, rank].
        cosines: Receives the products [query, rank], float32.
    """
    top, most = items.shape[1], 64 * signs.shape[1]
    places, unequal = np.empty(1024, np.int64), np.empty(1024, np.int64)
    counts = np.empty(most + 1, np.int64)
    for query in range(len(queries)):
        found = 0
        counts[:] = 0
        for of in lists[query]:
            block, stop = last[of], filled[of]
            while block >= 0:
                if found + BLOCK > len(places):
                    places = np.concatenate((places, np.empty_like(places)))
                    unequal = np.concatenate((unequal, np.empty_like(unequal)))
                for place in range(block * BLOCK, block * BLOCK + stop):
                    if row_items[place] >= 0:
                        count = np.int64(0)
                        for word in range(signs.shape[1]):
                            count += np.int64(_ones(signs[place, word] ^ query_signs[query, word]))
                        places[found], unequal[found] = place, count
                        counts[count] += 1
                        found += 1
                block, stop = before[block], BLOCK
        # The rows with the fewest unequal signs, at least EXACT and `top` of them
        limit, near = 0, counts[0]
        while near < max(EXACT, 4 * top) and limit < most:
            limit += 1
            near += counts[limit]
        for place in range(found):
            if unequal[place] <= limit:
                product = _product(queries[query], rows[places[place]])
                if product >= cosines[query, top - 1]:
                    _insert(row_items[places[place]], product, items[query], cosines[query])
