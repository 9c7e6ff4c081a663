"""The plan of a mega-batch: everything about its steps that its sentences determine, prepared on the host.

Negatives are found on the device. But whether a sentence can have one follows from its exclusions, so the pairs of
each step, and with them the shapes of all arrays that a step computes, are known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from paranmt_hf.text.tokens import Bags
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.mega_batch import draw_negatives, excluded
from paranmt_hf.training.pair_store import MegaBatch
from paranmt_hf.training.teacher_vectors import TeacherVectors


@dataclass(frozen=True)
class LocalRows:
    """The rows of one table that a mega-batch reads, and its units as positions among these rows."""

    rows: np.ndarray  # The distinct rows, ascending; row 0 is always among them [row]
    ids: np.ndarray  # Position in `rows` of the row of each unit [unit]
    starts: np.ndarray  # Position of the first unit of each sentence [sentence]
    lengths: np.ndarray  # Number of units of each sentence [sentence]
    own_units: int  # Largest number of units in the pairs of one step, without their negatives


@dataclass(frozen=True, kw_only=True)
class Plan(MegaBatch):
    """A mega-batch with everything about its steps that is known beforehand."""

    rows: list[LocalRows]  # The rows that it reads of each table
    steps: list[np.ndarray]  # Positions of the sentences of each step's pairs, references first [2 x pair]
    # Positions of a sentence and of one that may not be its negative, sorted by the former, both [exclusion]; None if
    # no negatives are mined
    exclusions: tuple[np.ndarray, np.ndarray] | None = None
    # Position of the random negative of each sentence, -1 if its negative is mined; None if no negatives are random
    drawn: np.ndarray | None = None
    taught: torch.Tensor | None = None  # The teacher's vectors of the sentences [sentence, teacher dimension], float16
    pinned: bool = False  # Whether to send from pinned memory

    @cached_property
    def parcel(self) -> tuple[torch.Tensor, dict[str, int]]:
        """All integers that are sent to the device, concatenated, int32; and the length of each part, by its name."""
        parts = {"steps": np.concatenate([np.empty(0, np.int64), *self.steps])}
        for index, table in enumerate(self.rows):
            parts |= {f"{name}{index}": getattr(table, name) for name in ("rows", "ids", "starts", "lengths")}
        if self.exclusions is not None:
            parts["queries"], parts["excluded"] = self.exclusions
        if self.drawn is not None:
            parts["drawn"] = self.drawn
        parcel = torch.from_numpy(np.concatenate(list(parts.values())).astype(np.int32))
        return parcel.pin_memory() if self.pinned else parcel, {name: len(part) for name, part in parts.items()}


def make_plan(
    mega: MegaBatch,
    generator: np.random.Generator,
    readers: list[str],
    config: TrainConfig,
    teacher: TeacherVectors | None = None,
    *,
    pinned: bool = False,
) -> Plan:
    """Make the plan of a mega-batch; random negatives are drawn as `select_negatives` does.

    Args:
        mega: The mega-batch.
        generator: Draws random negatives.
        readers: Kind of units of each table.
        config: How the encoder is trained.
        teacher: Vectors of the teacher; None without one.
        pinned: Whether to put what is sent to the device into pinned memory.
    """
    exclusions, drawn, has_one = _negatives(mega, generator, config)
    complete = np.flatnonzero(np.logical_and.reduce(has_one.reshape(-1, mega.pairs)))
    mini_batch = complete // config.batch_size
    steps = []
    for start in range(0, mega.pairs, config.batch_size):
        pairs = complete[mini_batch == start // config.batch_size]
        if len(pairs):
            steps.append(np.concatenate([pairs, pairs + mega.pairs]))
    taught = None
    if teacher is not None:
        taught = teacher.of(mega.keys).half()
        taught = taught.pin_memory() if pinned else taught
    plan = Plan(
        mega.bags,
        mega.keys,
        rows=[_local_rows(mega.bags[reader], complete, mini_batch) for reader in readers],
        steps=steps,
        exclusions=exclusions,
        drawn=drawn,
        taught=taught,
        pinned=pinned,
    )
    # Build the parcel now, in the thread that prepares mega-batches, not when it is sent.
    _ = plan.parcel
    return plan


def _negatives(
    mega: MegaBatch, generator: np.random.Generator, config: TrainConfig
) -> tuple[tuple[np.ndarray, np.ndarray] | None, np.ndarray | None, np.ndarray]:
    """Find what is known about the negatives of a mega-batch before its sentences are encoded.

    Returns:
        Exclusions and random negatives, as in `Plan`, and whether each sentence has a negative [sentence].
    """
    exclusions = drawn = None
    sentences = mega.pairs if config.one_sided else 2 * mega.pairs
    has_one = np.ones(sentences, bool)
    if not config.margin_weight:
        return exclusions, drawn, has_one
    if config.negatives != "rand":
        exclusions = excluded(mega.keys, one_sided=config.one_sided)
        # A sentence excludes itself.
        has_one = np.bincount(exclusions[0], minlength=sentences) < sentences
    if config.negatives != "max":
        drawn = draw_negatives(mega.keys, generator, one_sided=config.one_sided)
        random = np.ones(sentences, bool)
        if config.negatives == "mix":
            random = generator.random(sentences) < 0.5
        has_one = np.where(random, drawn >= 0, has_one)
        drawn = np.where(random, drawn, -1)
    return exclusions, drawn, has_one


def _local_rows(bags: Bags, pairs: np.ndarray, mini_batch: np.ndarray) -> LocalRows:
    """Find the rows of a table that a mega-batch reads, and number them.

    Args:
        bags: Rows of the sentences of the mega-batch.
        pairs: The pairs that are trained on [pair].
        mini_batch: The mini-batch of each of these [pair].
    """
    # Marking the rows in use is faster than sorting all units.
    used = np.zeros(int(bags.rows.max(initial=0)) + 1, bool)
    used[bags.rows] = True
    used[0] = True
    ids = (np.cumsum(used) - 1)[bags.rows]
    lengths = np.diff(bags.offsets)
    units = lengths[pairs] + lengths[pairs + len(lengths) // 2]
    own_units = int(np.bincount(mini_batch, units).max(initial=0))
    return LocalRows(np.flatnonzero(used), ids, bags.offsets[:-1], lengths, own_units)
