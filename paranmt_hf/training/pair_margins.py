"""The measure of overfitting (arXiv:1511.08198, section 5) over training pairs and over scored pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from paranmt_hf.corpus.pairs import SIDES, Pairs, PairSelection
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.data_configs import OverfittingConfig
from paranmt_hf.evaluation.scored_pairs import read_scored_pairs
from paranmt_hf.evaluation.sts_data import StsSet
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.training.overfitting import mean_margin
from paranmt_hf.util.records import to_json
from paranmt_hf.util.tables import write_table


@dataclass(frozen=True)
class Margins:
    """Means of 2 cos(g1, g2) - cos(n1, g1) - cos(n2, g2), in [-4, 4].

    Attributes:
        train: Over training pairs.
        development: Over the pairs of a development set, whatever their scores; None without one.
    """

    train: float
    development: float | None

    @property
    def difference(self) -> float | None:
        """How much further training pairs stand out."""
        return None if self.development is None else self.train - self.development


@dataclass(frozen=True)
class MarginsRecord:
    """The measure of a model, as `--json` has it.

    Attributes:
        model: Its name.
        weights: Checksum of its weights.
        pairs: Training pairs that were measured.
        margins: The figures.
    """

    model: str
    weights: str
    pairs: int
    margins: Margins

    def to_json(self) -> Any:  # noqa: ANN401 - JSON values
        """The record as JSON values."""
        return to_json(self)


def compare_margins(records: Sequence[MarginsRecord], style: Literal["markdown", "text"] = "text") -> str:
    """Write a table of several models: training pairs, other pairs, and by how much the former stand out further."""
    rows = [
        [record.model, *(_figure(value) for value in (margins.train, margins.development, margins.difference))]
        for record in records
        for margins in [record.margins]
    ]
    return write_table(["model", "train", "dev", "difference"], rows, style)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


class MarginPairs:
    """Pairs over which encoders are measured, read once.

    Args:
        data: As for `train`.
        development: The development set, or where it is; see `read_scored_pairs`.
        config: How many pairs are drawn, and the pools.

    Raises:
        InputError: There are fewer than two pairs, or a source cannot be read.
    """

    def __init__(
        self,
        data: Sequence[str | Path],
        development: StsSet | str | Path | None = None,
        config: OverfittingConfig | None = None,
    ) -> None:
        self.config = config or OverfittingConfig()
        pairs = Pairs(data, PairSelection(max_pairs=self.config.pairs), seed=self.config.seed)
        tables = list(pairs.batches())
        if sum(table.num_rows for table in tables) < 2:
            raise InputError(f"{', '.join(map(str, data))}: expected two pairs at least; {pairs.left_out}")
        joined = pa.concat_tables(tables)
        self._train = [joined[side].to_pylist() for side in SIDES]
        self._development = read_scored_pairs(development) if isinstance(development, str | Path) else development

    @property
    def pairs(self) -> int:
        """Number of training pairs."""
        return len(self._train[0])

    def measure(self, encoder: Encoder) -> Margins:
        """Measure an encoder.

        Raises:
            InputError: No pair has a negative.
        """
        held_out = self._development
        other = None if held_out is None else self._mean(encoder, held_out.left, held_out.right)
        return Margins(self._mean(encoder, *self._train), other)

    def _mean(self, encoder: Encoder, first: Sequence[str], second: Sequence[str]) -> float:
        return mean_margin(encoder, first, second, pool=self.config.pool, seed=self.config.seed)
