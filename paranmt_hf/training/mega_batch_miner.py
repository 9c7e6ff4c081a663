"""The margin loss with mega-batches in your own `SentenceTransformerTrainer`, for any model.

`MegaBatchMiner` gives the trainer its dataset and its batch sampler, `MarginLoss` is its loss. See docs/training.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import datasets
import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.sampler import DefaultBatchSampler
from torch import nn
from torch.utils.data import get_worker_info

from paranmt_hf.corpus.reading.pairs import SIDES
from paranmt_hf.errors import InputError
from paranmt_hf.text.identity import keys_of
from paranmt_hf.training.config import Negatives, TrainConfig
from paranmt_hf.training.losses import margin_loss
from paranmt_hf.training.mega_batch import select_negatives


class MarginLoss(nn.Module):
    """The loss of `margin_loss` over columns of text: s, s', t and, unless only references have negatives, t'.

    Args:
        model: The model under training.
        margin: The margin d, above 0 (ParaNMT-50M, section 4: 0.4).
    """

    def __init__(self, model: SentenceTransformer, margin: float = 0.4) -> None:
        super().__init__()
        self.model, self.margin = model, TrainConfig(margin=margin).margin

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: torch.Tensor | None = None) -> torch.Tensor:
        """Compute the loss of a mini-batch, a scalar.

        Args:
            sentence_features: Features of the columns reference, translation, reference_negative and perhaps
                translation_negative.
            labels: Not used.
        """
        vectors = [self.model(features)["sentence_embedding"] for features in sentence_features]
        if len(vectors) not in (3, 4):
            raise InputError(
                f"expected the columns {', '.join(SIDES)} and one or two columns of negatives, found {len(vectors)} "
                "columns; give the trainer the dataset and the batch sampler of a MegaBatchMiner"
            )
        return margin_loss(*vectors, margin=self.margin)

    def get_config_dict(self) -> dict[str, Any]:
        """Return the values that the trainer shows in the model card."""
        return {"margin": self.margin}


class MegaBatchMiner:
    """Mini-batches with negatives that the model itself mines in each mega-batch (ParaNMT-50M, section 4).

    The trainer reads a mini-batch one step ahead, so a mega-batch is mined with the weights before the last step of
    the one before it. It works in one process with `dataloader_num_workers=0`, the trainer's default.

    Args:
        model: The model under training.
        pairs: A dataset with the columns `reference` and `translation`.
        mega_batch: Number of mini-batches of a mega-batch, M.
        negatives: How negatives are chosen: the most similar sentence (`max`), a random one (`rand`), or half of each
            (`mix`).
        one_sided: Whether only references get a negative, which is another reference.
        seed: Determines the order of pairs and random negatives.

    Attributes:
        dataset: The dataset for the trainer: the pairs, with the negatives of the current mega-batch.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        pairs: datasets.Dataset,
        *,
        mega_batch: int = 40,
        negatives: Negatives = "max",
        one_sided: bool = False,
        seed: int = 1,
    ) -> None:
        if missing := [side for side in SIDES if side not in pairs.column_names]:
            raise InputError(f"the pairs have no column {missing[0]}; they have {', '.join(pairs.column_names)}")
        self.config = TrainConfig(
            mega_batch=mega_batch, negatives=negatives, one_sided=one_sided, seed=seed, mining_precision="float32"
        )
        for side in SIDES:
            if not pairs.data.column(side).null_count:
                continue
            nulls = pairs.select_columns(side).with_format("arrow")[:][side].is_null().to_numpy()
            if nulls.any():
                place = int(nulls.argmax())
                raise InputError(
                    f"the {side} at index {place:,} is none; leave out the pairs without text", option="pairs"
                )
        self._model = model
        self._pairs = pairs.select_columns(list(SIDES)).add_column("row", np.arange(len(pairs)))
        # Texts of the negatives of the pairs of the current mega-batch, by the number of the pair.
        self._found: dict[int, list[str]] = {}
        self.dataset = self._pairs.with_transform(self._with_negatives)

    def _with_negatives(self, rows: Mapping[str, list[Any]]) -> dict[str, list[str]]:
        """Return rows for the trainer, as columns: s, s', t and, with two sides, t'."""
        if get_worker_info() is not None:
            raise InputError("a MegaBatchMiner works without workers that load data; set dataloader_num_workers=0")
        unmined = [""] * (1 if self.config.one_sided else 2)
        found = [self._found.get(row, unmined) for row in rows["row"]]
        columns = {side: list(rows[side]) for side in SIDES}
        return columns | {f"{side}_negative": list(texts) for side, texts in zip(SIDES, zip(*found, strict=True))}  # noqa: B905

    def sampler(
        self, dataset: datasets.Dataset, batch_size: int, drop_last: bool, **options: Any
    ) -> DefaultBatchSampler:
        """Create the batch sampler: pass `batch_sampler=miner.sampler` to `SentenceTransformerTrainingArguments`."""
        known = "row" in (getattr(dataset, "column_names", None) or ())
        if not known or len(dataset) != len(self._pairs) or dataset._indices is not None:
            raise InputError(
                "the sampler of a MegaBatchMiner takes the miner's own dataset, found another one; give the "
                "trainer train_dataset=miner.dataset, and in place of an eval_dataset an evaluator"
            )
        return _MegaBatchSampler(self, len(dataset), batch_size, drop_last)

    def mine(self, rows: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Mine the negatives of the pairs of a mega-batch.

        Args:
            rows: Numbers of the pairs [pair].
            generator: Draws random negatives.

        Returns:
            The numbers of those pairs that have all negatives.
        """
        table = self._pairs.select(rows)
        sides = [list(table[side]) for side in SIDES]
        sentences = [*sides[0], *sides[1]]
        vectors = None
        if self.config.negatives != "rand":
            training = self._model.training
            vectors = self._model.encode(
                sentences, batch_size=128, convert_to_tensor=True, show_progress_bar=False
            ).float()
            self._model.train(training)
        chosen = select_negatives(vectors, keys_of(*sides).ravel(), self.config, generator).reshape(-1, len(rows)).T
        whole = (chosen >= 0).all(axis=1)
        self._found = {
            int(row): [sentences[index] for index in indices]
            for row, indices in zip(rows[whole].tolist(), chosen[whole].tolist(), strict=True)
        }
        return rows[whole]


class _MegaBatchSampler(DefaultBatchSampler):
    """Yields mini-batches of the numbers of pairs; before each mega-batch its negatives are mined."""

    def __init__(self, miner: MegaBatchMiner, count: int, batch_size: int, drop_last: bool) -> None:
        super().__init__(range(count), batch_size=batch_size, drop_last=drop_last)
        self._miner, self._count, self.epoch = miner, count, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which determines the order of the pairs."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self._count // self.batch_size if self.drop_last else -(-self._count // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        miner, generator = self._miner, np.random.default_rng([self._miner.config.seed, self.epoch])
        order = generator.permutation(self._count)
        size = self.batch_size * miner.config.mega_batch
        for start in range(0, self._count, size):
            rows = miner.mine(order[start : start + size], generator)
            found = miner._found
            for first in range(0, len(rows), self.batch_size):
                batch = rows[first : first + self.batch_size].tolist()
                if len(batch) == self.batch_size or not self.drop_last:
                    # Set these negatives again, because an evaluation between two steps mines, too.
                    miner._found = found
                    yield batch
