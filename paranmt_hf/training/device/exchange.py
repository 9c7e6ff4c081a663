"""What several processes send each other in a step: the gradients of the rows that each of them has one for.

A GPU adds numbers to a row in an order that changes. So each process adds up the gradients under its own pairs, sends
them, and then all add up what all have sent, one process after the other: no row occurs twice in what one process
sends, so that the order of each sum is fixed, and tables stay equal in every bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from paranmt_hf.training.processes import Processes


def distinct(rows: torch.Tensor, count: int, bound: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """List each of some rows once, in a shape that does not depend on them.

    Args:
        rows: Rows [unit]; the last row of the table is none.
        count: Rows of the table.
        bound: Rows that are listed.

    Returns:
        The rows, ascending, then the row that is none again and again [bound]; the place of each row of the table in
        that list, behind its end where it has none [row]; and their number, which may be above the bound.
    """
    used = torch.zeros(count, dtype=torch.int32, device=rows.device).index_fill_(0, rows, 1)
    used[-1:].zero_()
    places = (used.cumsum(0) - 1).masked_fill_(used == 0, bound).clamp_(max=bound)
    listed = torch.full((bound + 1,), count - 1, device=rows.device)
    # What has no place meets behind the end, which is cut off.
    listed.scatter_(0, places, torch.arange(count, device=rows.device))
    return listed[:bound], places, used.sum()


def summed(
    processes: Processes, sent: Sequence[tuple[torch.Tensor, torch.Tensor]], totals: Sequence[torch.Tensor]
) -> None:
    """Add up gradients over all processes, in one exchange.

    Args:
        processes: Those that train together.
        sent: Of each table the rows that have a gradient under the pairs of this process, each once, as of `distinct`,
            and their gradients, float32 [row] and [row, dimension]; as many rows in each process.
        totals: Of each table zeros [row of the table, dimension]; they get the gradient under the pairs of all.
    """
    # Numbers of all kinds travel as 32 bits.
    packed = [torch.cat([rows.int()[:, None], gradient.view(torch.int32)], dim=1) for rows, gradient in sent]
    everyone = processes.gather(torch.cat([part.flatten() for part in packed]))
    start = 0
    for total, part in zip(totals, packed, strict=True):
        stop = start + part.numel()
        for own in everyone[:, start:stop].view(-1, *part.shape):
            total.index_add_(0, own[:, 0].long(), own[:, 1:].view(torch.float32))
        start = stop


def with_others(processes: Processes, vectors: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Set vectors of this process among those of the others, which are constants.

    Args:
        processes: Those that train together.
        vectors: Vectors of this process [sentence, dimension].
        sizes: Sentences of each process.

    Returns:
        The vectors of all, one process after the other [sentence, dimension].
    """
    room = vectors.new_zeros(max(sizes), vectors.shape[1])
    room[: len(vectors)] = vectors.detach()
    parts = [part[:size] for part, size in zip(processes.gather(room), sizes, strict=True)]
    parts[processes.rank] = vectors
    return torch.cat(parts)
