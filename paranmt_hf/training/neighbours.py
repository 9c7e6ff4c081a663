"""Mini-batches of pairs or sentences that a teacher finds similar (not in the papers).

Among random sentences nearly all cosines are low, and a mini-batch of them says little about how similar similar
sentences are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from paranmt_hf.text.identity import distinct_rows
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.pair_store import MegaBatch, PairStore
from paranmt_hf.training.teacher import TeacherVectors


class NeighbourBatches:
    """Stored pairs in mega-batches whose mini-batches are neighbours for a teacher.

    With a margin loss the items that are ordered are the pairs. A teacher alone does not need to know which sentences
    are pairs: then the items are the distinct sentences, and every two of them count as a pair.
    """

    def __init__(self, store: PairStore, config: TrainConfig, teacher: TeacherVectors, device: torch.device) -> None:
        self._batch_size = config.batch_size
        self._everything = store.everything()
        if config.margin_weight:
            self.unit = store.unit
            # The sentences of each item [item, sentence].
            self._items = np.arange(2 * store.pairs).reshape(-1, 2)
        else:
            self.unit = "pairs of sentences"
            first = distinct_rows(self._everything.keys)
            # An odd sentence is left out, so that batches keep their sizes.
            self._items = first[: len(first) // 2 * 2, None]
        self.pairs = self._items.size // 2
        self._vectors = torch.from_numpy(teacher.directions(self._everything.keys[self._items]))
        # At most a third of the memory of a GPU, free or not: free memory would differ between runs, and with it the
        # rounding of products, and the order.
        if device.type == "cuda" and (
            3 * self._vectors.nbytes < torch.cuda.get_device_properties(device).total_memory
        ):
            self._vectors = self._vectors.to(device)

    def mega_batches(self, size: int, *, seed: int, epoch: int, start: int = 0) -> Iterator[MegaBatch]:
        """Read an epoch in mega-batches of `size` pairs, after the first `start` ones; see `neighbour_order`."""
        per_pair = self._items.shape[1]
        batch, mega = 2 * self._batch_size // per_pair, 2 * size // per_pair
        order = neighbour_order(self._vectors, batch, np.random.default_rng([seed, epoch, 0, 2]))
        for low in range(start * mega, len(order), mega):
            items = self._items[order[low : low + mega]]
            if per_pair == 1:
                # Two sentences of a mini-batch form a pair.
                batches = np.split(items[:, 0], range(batch, len(items), batch))
                items = np.concatenate([np.stack(np.split(part, 2), axis=1) for part in batches])
            # All first sides before all second ones.
            yield self._everything.take(items.T.ravel())


def neighbour_order(vectors: torch.Tensor, size: int, generator: np.random.Generator) -> np.ndarray:
    """Order items by their vectors [item, dimension], so that groups of `size` of them are neighbours [item].

    All items are halved along the line through two random ones, and so are the halves, down to `size` items; then
    these groups are shuffled. An incomplete group comes last. The vectors may be on a GPU.
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
        # The right half, which contains the incomplete group, is processed last.
        waiting += [items[order[left:]], items[order[:left]]]
    *full, last = groups
    return np.concatenate([*(full[index] for index in generator.permutation(len(full)).tolist()), last])


def along(vectors: torch.Tensor, items: np.ndarray, direction: torch.Tensor) -> np.ndarray:
    """Projection of some items [item] of `vectors` on a direction [dimension]: [item], float32."""
    # Rows that are converted to 32 bits at a time; those of a processor stay in its cache.
    rows = 256 if vectors.device.type == "cpu" else 250_000
    parts = torch.from_numpy(items).to(vectors.device).split(rows)
    return torch.cat([vectors[part].float() @ direction for part in parts]).cpu().numpy()
