"""Batches of pairs of similar length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.utils.data import Dataset

from paranmt_hf.corpus.translation.batches import token_batches
from paranmt_hf.paraphrase.modeling_paranmt_lstm import IGNORED
from paranmt_hf.paraphrase.training_data import PieceStore


class Batches(Dataset[dict[str, torch.Tensor]]):
    """All batches of a run by step, so that a run continues at any step as if never interrupted.

    Batches hold pairs of similar length: pairs times pieces of the longest are at most `budget`. Pairs of equal length
    are shuffled in each epoch, and so are the batches.
    """

    def __init__(self, store: PieceStore, budget: int, *, epochs: int, seed: int, pad: int) -> None:
        self._store, self._seed, self._pad, self._epochs = store, seed, pad, epochs
        self._lengths = store.lengths
        # From the longest, whose batch is the smallest.
        sizes = [len(batch) for batch in token_batches(self._lengths, budget)]
        self._starts = np.cumsum([0, *reversed(sizes)])
        self._order: tuple[int, np.ndarray, np.ndarray] | None = None

    @property
    def per_epoch(self) -> int:
        """Number of batches of an epoch."""
        return len(self._starts) - 1

    def __len__(self) -> int:
        return self._epochs * self.per_epoch

    def __getitem__(self, step: int) -> dict[str, torch.Tensor]:
        return collate(self._store.take(self.pairs(step)), self._pad)

    def pairs(self, step: int) -> np.ndarray:
        """Indices of the pairs of a step [pair]."""
        epoch, position = divmod(step, self.per_epoch)
        if self._order is None or self._order[0] != epoch:
            generator = np.random.default_rng([self._seed, epoch])
            ties = generator.permutation(len(self._lengths))
            order = ties[np.argsort(self._lengths[ties], kind="stable")]
            self._order = (epoch, order, generator.permutation(self.per_epoch))
        _, order, batches = self._order
        batch = int(batches[position])
        return order[self._starts[batch] : self._starts[batch + 1]]


def collate(sides: Sequence[Sequence[np.ndarray]], pad: int) -> dict[str, torch.Tensor]:
    """Create a batch of sources, targets and perhaps controls [side][pair].

    Sources and controls are padded with `pad`, targets with the index that the loss ignores.
    """
    sources, targets, *controls = sides
    batch = {
        "input_ids": _filled(sources, pad),
        "attention_mask": _filled([np.ones_like(ids) for ids in sources], 0),
        "labels": _filled(targets, IGNORED),
    }
    if controls:
        batch["control_ids"] = _filled(controls[0], pad)
    return batch


def _filled(rows: Sequence[np.ndarray], value: int) -> torch.Tensor:
    filled = np.full((len(rows), max(map(len, rows))), value, np.int64)
    for row, ids in zip(filled, rows, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(filled)
