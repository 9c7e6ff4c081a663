"""What the host prepares of a mega-batch: everything that follows from its ids alone.

Negatives are known on the device only. But whether a sentence can have one follows from its exclusions, so the pairs
of each step, and with them the shapes of all that a step computes on, are known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from paranmt_hf.tokens import Bags
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.megabatch import draw, excluded
from paranmt_hf.training.pair_store import MegaBatch
from paranmt_hf.training.teacher import TeacherVectors


@dataclass(frozen=True)
class TablePlan:
    """The rows of one table in a mega-batch.

    Attributes:
        rows: The distinct rows, ascending; row 0 is always among them [row].
        ids: Position in `rows` of each unit [unit].
        starts: First unit of each sentence [sentence].
        lengths: Units of each sentence [sentence].
        own_units: Most units that the sentences of a step's own pairs have, their negatives not counted.
    """

    rows: np.ndarray
    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    own_units: int


@dataclass(frozen=True, kw_only=True)
class Plan(MegaBatch):
    """A mega-batch with what is known of its steps beforehand.

    Attributes:
        tables: The rows under each table.
        steps: Positions of the sentences of each step's pairs, references first [2 x pair].
        exclusions: Sentence and what it excludes of those that are searched, sorted by sentence, both [exclusion];
            None if nothing is mined.
        drawn: Negative of each sentence that was drawn at random; -1 where it is mined; None if nothing is drawn.
        parcel: All numbers of the above that go to the device, one after the other.
        taught: The teacher's vectors of the sentences [sentence, teacher dimension], float16.
    """

    tables: list[TablePlan]
    steps: list[np.ndarray]
    exclusions: tuple[np.ndarray, np.ndarray] | None
    drawn: np.ndarray | None
    parcel: torch.Tensor
    taught: torch.Tensor | None


def make_plan(
    mega: MegaBatch,
    generator: np.random.Generator,
    readers: list[str],
    config: TrainConfig,
    teacher: TeacherVectors | None = None,
    *,
    pinned: bool = False,
) -> Plan:
    """Prepare a mega-batch.

    Args:
        mega: The pairs.
        generator: For random negatives; used as `megabatch.select` uses it.
        readers: Name of the reader of each table.
        config: The settings.
        teacher: The teacher's vectors, if similarities are learned too.
        pinned: Put what is sent into memory that a GPU can read while the host goes on.
    """
    exclusions, drawn, has_negative = _negatives(mega, generator, config)
    complete = np.logical_and.reduce(has_negative.reshape(-1, mega.pairs))
    steps = []
    for start in range(0, mega.pairs, config.batch_size):
        pairs = start + np.flatnonzero(complete[start : start + config.batch_size])
        if len(pairs):
            steps.append(np.concatenate([pairs, pairs + mega.pairs]))
    tables = [_plan_table(mega.bags[reader], steps) for reader in readers]
    numbers = [np.concatenate([np.empty(0, np.int64), *steps])]
    numbers += [part for table in tables for part in (table.rows, table.ids, table.starts, table.lengths)]
    numbers += [*(exclusions or ()), *([drawn] if drawn is not None else [])]
    parcel = torch.from_numpy(np.concatenate(numbers).astype(np.int32))
    taught = teacher.of(mega.keys).half() if teacher is not None else None
    if pinned:
        parcel, taught = parcel.pin_memory(), taught.pin_memory() if taught is not None else None
    return Plan(
        mega.bags,
        mega.keys,
        tables=tables,
        steps=steps,
        exclusions=exclusions,
        drawn=drawn,
        parcel=parcel,
        taught=taught,
    )


def _negatives(
    mega: MegaBatch, generator: np.random.Generator, config: TrainConfig
) -> tuple[tuple[np.ndarray, np.ndarray] | None, np.ndarray | None, np.ndarray]:
    """What is known of negatives: exclusions and those drawn, as in `Plan`, and whether each sentence has one."""
    exclusions = drawn = None
    has_one = np.ones(mega.pairs if config.one_sided else 2 * mega.pairs, bool)
    if not config.margin_weight:
        return exclusions, drawn, has_one
    if config.negatives != "rand":
        exclusions = _exclusions(mega, one_sided=config.one_sided)
        # All are allowed that a sentence does not exclude; itself it does.
        has_one = np.bincount(exclusions[0], minlength=len(has_one)) < len(has_one)
    if config.negatives != "max":
        drawn = draw(mega.keys, generator, one_sided=config.one_sided)
        random = generator.random(len(drawn)) < 0.5 if config.negatives == "mix" else np.ones(len(drawn), bool)
        has_one = np.where(random, drawn >= 0, has_one)
        drawn = np.where(random, drawn, -1)
    return exclusions, drawn, has_one


def _exclusions(mega: MegaBatch, *, one_sided: bool) -> tuple[np.ndarray, np.ndarray]:
    """List which sentences may not be whose negatives, see `excluded`; one-sided, among the references."""
    sentences, columns = excluded(mega.keys)
    if one_sided:
        among = (sentences < mega.pairs) & (columns < mega.pairs)
        sentences, columns = sentences[among], columns[among]
    return sentences, columns


def _plan_table(bags: Bags, steps: list[np.ndarray]) -> TablePlan:
    # Bounds of memory are known, and numbers small: marking rows costs less than sorting units.
    used = np.zeros(int(bags.rows.max(initial=0)) + 1, bool)
    used[bags.rows] = True
    used[0] = True
    ids = (np.cumsum(used) - 1)[bags.rows]
    lengths = np.diff(bags.offsets)
    own_units = max((int(lengths[step].sum()) for step in steps), default=0)
    return TablePlan(np.flatnonzero(used), ids, bags.offsets[:-1], lengths, own_units)
