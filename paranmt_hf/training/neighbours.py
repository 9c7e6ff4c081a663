"""Mini-batches of pairs or sentences that a teacher finds similar (not in the papers).

Among random sentences nearly all cosines are low, so a mini-batch of them says little about the similarities of
sentences that are similar.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from paranmt_hf.text.identity import distinct_rows
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.pair_store import MegaBatch, PairStore
from paranmt_hf.training.teacher_vectors import TeacherVectors


class NeighbourBatches:
    """Stored pairs in mega-batches whose mini-batches are neighbours for a teacher.

    With a margin loss the pairs are put in order. Without one, the loss does not need to know which sentences are
    pairs: then the distinct sentences are put in order, and each two of them form a pair.

    Args:
        store: The pairs.
        config: How the encoder is trained.
        teacher: Vectors of the teacher.
        device: The device that trains; a GPU holds the teacher's vectors if they fit.
    """

    def __init__(self, store: PairStore, config: TrainConfig, teacher: TeacherVectors, device: torch.device) -> None:
        self._batch_size = config.batch_size
        self._everything = store.everything()
        if config.margin_weight:
            self.unit = store.unit
            # An item is what is put in order, a pair or a sentence: the positions of its sentences [item, sentence].
            self._items = np.arange(2 * store.pairs).reshape(-1, 2)
        else:
            self.unit = "pairs of sentences"
            first = distinct_rows(self._everything.keys)
            # Of an odd number of sentences the last is left out, so that mini-batches keep their sizes.
            self._items = first[: len(first) // 2 * 2, None]
        self.pairs = self._items.size // 2
        self._vectors = torch.from_numpy(teacher.directions(self._everything.keys[self._items]))
        # The vectors are put on a GPU if they take less than a third of its whole memory. If free memory decided, it
        # could differ between runs, and with it the rounding of products, and the order.
        if device.type == "cuda" and (
            3 * self._vectors.nbytes < torch.cuda.get_device_properties(device).total_memory
        ):
            self._vectors = self._vectors.to(device)

    def mega_batches(self, size: int, *, seed: int, epoch: int, start: int = 0) -> Iterator[MegaBatch]:
        """Read an epoch in mega-batches of `size` pairs, without the first `start` ones; see `neighbour_order`."""
        per_pair = self._items.shape[1]
        batch, mega = 2 * self._batch_size // per_pair, 2 * size // per_pair
        order = neighbour_order(self._vectors, batch, np.random.default_rng([seed, epoch, 0, 2]))
        for low in range(start * mega, len(order), mega):
            items = self._items[order[low : low + mega]]
            if per_pair == 1:
                # Form pairs of the first and the second half of each mini-batch.
                batches = np.split(items[:, 0], range(batch, len(items), batch))
                items = np.concatenate([np.stack(np.split(part, 2), axis=1) for part in batches])
            # A mega-batch has all first sides before all second sides.
            yield self._everything.take(items.T.ravel())


def neighbour_order(vectors: torch.Tensor, size: int, generator: np.random.Generator) -> np.ndarray:
    """Put items in an order in which groups of `size` items are neighbours.

    All items are halved along the line through two random ones, and so are the halves, down to groups of `size` items.
    Then these groups are shuffled. An incomplete group comes last.

    Args:
        vectors: Vectors of the items [item, dimension], which may be on a GPU.
        size: Number of items of a group.
        generator: Determines the order.

    Returns:
        The items in order [item].
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
        # The left half is taken from the end of the list first, so the incomplete group, on the right, comes last.
        waiting += [items[order[left:]], items[order[:left]]]
    *full, last = groups
    return np.concatenate([*(full[index] for index in generator.permutation(len(full)).tolist()), last])


def along(vectors: torch.Tensor, items: np.ndarray, direction: torch.Tensor) -> np.ndarray:
    """Project items on a direction.

    Args:
        vectors: Vectors of all items [item, dimension].
        items: Numbers of some of them [chosen].
        direction: The direction [dimension].

    Returns:
        Their projections [chosen], float32.
    """
    # Number of rows that are converted to float32 at once; on a processor so few that they stay in its cache.
    rows = 256 if vectors.device.type == "cpu" else 250_000
    parts = torch.from_numpy(items).to(vectors.device).split(rows)
    return torch.cat([vectors[part].float() @ direction for part in parts]).cpu().numpy()
