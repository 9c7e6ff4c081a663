"""What the host prepares for a mega-batch: everything that its ids determine.

Negatives are known on the device only. But whether a sentence can have one follows from its exclusions, so the pairs
of each step, and with them the shapes of all that a step computes on, are known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from paranmt_hf.text.tokens import Bags
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.distributed import Processes
from paranmt_hf.training.mega_batch import draw_negatives, excluded
from paranmt_hf.training.pair_store import MegaBatch
from paranmt_hf.training.teacher import TeacherVectors


@dataclass(frozen=True)
class TablePlan:
    """The rows of one table in a mega-batch."""

    rows: np.ndarray  # The distinct rows, ascending; row 0 is always among them [row]
    ids: np.ndarray  # Position in `rows` of each unit [unit]
    starts: np.ndarray  # First unit of each sentence [sentence], and `lengths` their number
    lengths: np.ndarray
    own_units: int  # Largest number of units of the pairs of a step in any process, without their negatives


@dataclass(frozen=True, kw_only=True)
class Plan(MegaBatch):
    """A mega-batch with everything about its steps that is known in advance."""

    tables: list[TablePlan]  # The rows under each table
    # Positions of the sentences of each step's pairs of this process, references first [2 x pair]
    steps: list[np.ndarray]
    shares: list[tuple[int, ...]]  # Pairs of each step that each process has
    # Position among the queries of mining and position of a candidate that it excludes, sorted by the former, both
    # [exclusion]; None if nothing is mined
    exclusions: tuple[np.ndarray, np.ndarray] | None = None
    # Negative of each sentence that was drawn at random, -1 if it is mined; None if nothing is drawn
    drawn: np.ndarray | None = None
    asking: np.ndarray | None = None  # Positions of the queries of this process [query]; None for one process
    # Positions of the sentences of each step's pairs of all processes, in the order of their ranks [2 x pair]; None
    # unless the teacher compares them
    together: list[np.ndarray] | None = None
    taught: torch.Tensor | None = None  # The teacher's vectors of the sentences [sentence, teacher dimension], float16
    pinned: bool = False  # Whether to send from pinned memory

    @cached_property
    def parcel(self) -> tuple[torch.Tensor, dict[str, int]]:
        """All integers that are sent to the device, concatenated, int32; and the length of each part by its name."""
        parts = {"steps": np.concatenate([np.empty(0, np.int64), *self.steps])}
        for index, table in enumerate(self.tables):
            parts |= {f"{name}{index}": getattr(table, name) for name in ("rows", "ids", "starts", "lengths")}
        if self.exclusions is not None:
            parts |= dict(zip(("queries", "excluded"), self.exclusions, strict=True))
        if self.together is not None:
            parts["together"] = np.concatenate([np.empty(0, np.int64), *self.together])
        parts |= {name: part for name in ("drawn", "asking") if (part := getattr(self, name)) is not None}
        parcel = torch.from_numpy(np.concatenate(list(parts.values())).astype(np.int32))
        return parcel.pin_memory() if self.pinned else parcel, {name: len(part) for name, part in parts.items()}


def owners(pairs: int, batch_size: int, processes: int) -> np.ndarray:
    """Assign each pair of a mega-batch to a process [pair]; each gets an even part of every mini-batch."""
    whole, rest = (
        np.repeat(np.arange(processes), np.diff(np.arange(processes + 1) * size // processes))
        for size in (batch_size, pairs % batch_size)
    )
    return np.concatenate([np.tile(whole, pairs // batch_size), rest])


def make_plan(
    mega: MegaBatch,
    generator: np.random.Generator,
    readers: list[str],
    config: TrainConfig,
    teacher: TeacherVectors | None = None,
    *,
    pinned: bool = False,
    processes: Processes | None = None,
) -> Plan:
    """Prepare a mega-batch, with random negatives as `select_negatives` draws them.

    If `pinned`, the parcel is in pinned memory.
    """
    count, rank = (processes.count, processes.rank) if processes is not None else (1, 0)
    owner = owners(mega.pairs, config.batch_size, count)
    exclusions, drawn, asking, has_one = _negatives(mega, generator, config, owner, rank if processes else None)
    complete = np.flatnonzero(np.logical_and.reduce(has_one.reshape(-1, mega.pairs)))
    # The pairs are grouped by mini-batch, and in it by process.
    part = complete // config.batch_size * count + owner[complete]
    minis = -(-mega.pairs // config.batch_size)
    sizes = np.bincount(part, minlength=minis * count)
    sentences = [np.concatenate([pairs, pairs + mega.pairs]) for pairs in np.split(complete, sizes.cumsum()[:-1])]
    made = np.flatnonzero(sizes.reshape(minis, count).sum(axis=1)).tolist()
    together = None
    if teacher is not None and processes is not None:
        together = [np.concatenate(sentences[mini * count : (mini + 1) * count]) for mini in made]
    taught = teacher.of(mega.keys).half() if teacher is not None else None
    plan = Plan(
        mega.bags,
        mega.keys,
        tables=[_plan_table(mega.bags[reader], complete, part) for reader in readers],
        steps=[sentences[mini * count + rank] for mini in made],
        shares=[tuple(sizes[mini * count : (mini + 1) * count].tolist()) for mini in made],
        exclusions=exclusions,
        drawn=drawn,
        asking=asking,
        together=together,
        taught=taught.pin_memory() if taught is not None and pinned else taught,
        pinned=pinned,
    )
    # Build the parcel here, on the host, while earlier mega-batches are trained on.
    _ = plan.parcel
    return plan


def _negatives(
    mega: MegaBatch, generator: np.random.Generator, config: TrainConfig, owner: np.ndarray, rank: int | None
) -> tuple[tuple[np.ndarray, np.ndarray] | None, np.ndarray | None, np.ndarray | None, np.ndarray]:
    """Find what is known about negatives; `owner` is the process of each pair, and `rank` that of the queries.

    Returns exclusions, drawn negatives and queries, as in `Plan`, and whether each sentence has a negative.
    """
    exclusions = drawn = asking = None
    has_one = np.ones(mega.pairs if config.one_sided else 2 * mega.pairs, bool)
    if not config.margin_weight:
        return exclusions, drawn, asking, has_one
    if config.negatives != "rand":
        exclusions = excluded(mega.keys, one_sided=config.one_sided)
        whose = np.tile(owner, 1 if config.one_sided else 2)
        searched: int | np.ndarray = len(whose)
        if config.mine_over == "rank":
            # Exclusions matter only among the candidates of a process.
            among = whose[exclusions[0]] == whose[exclusions[1]]
            exclusions = exclusions[0][among], exclusions[1][among]
            searched = np.bincount(whose)[whose]
        # A sentence excludes itself.
        has_one = np.bincount(exclusions[0], minlength=len(has_one)) < searched
        if rank is not None:
            # Exclusions of the queries alone, numbered among them, as are the candidates with `mine_over` rank.
            asks = whose == rank
            asking, number = np.flatnonzero(asks), asks.cumsum() - 1
            queries, columns = (numbers[asks[exclusions[0]]] for numbers in exclusions)
            exclusions = number[queries], number[columns] if config.mine_over == "rank" else columns
    if config.negatives != "max":
        drawn = draw_negatives(mega.keys, generator, one_sided=config.one_sided)
        random = generator.random(len(drawn)) < 0.5 if config.negatives == "mix" else np.ones(len(drawn), bool)
        has_one = np.where(random, drawn >= 0, has_one)
        drawn = np.where(random, drawn, -1)
    return exclusions, drawn, asking, has_one


def _plan_table(bags: Bags, pairs: np.ndarray, part: np.ndarray) -> TablePlan:
    """Plan a table; `part` is the group of mini-batch and process of each pair."""
    # Marking rows costs less than sorting units.
    used = np.zeros(int(bags.rows.max(initial=0)) + 1, bool)
    used[bags.rows] = True
    used[0] = True
    ids = (np.cumsum(used) - 1)[bags.rows]
    lengths = np.diff(bags.offsets)
    units = lengths[pairs] + lengths[pairs + len(lengths) // 2]
    own_units = int(np.bincount(part, units).max(initial=0))
    return TablePlan(np.flatnonzero(used), ids, bags.offsets[:-1], lengths, own_units)
