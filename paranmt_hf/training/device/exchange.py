"""What several processes send each other in a step: the gradients of the rows that each of them has one for.

A GPU adds numbers to a row in an order that changes. So each process adds up the gradients under its own pairs, sends
them, and then all add up what all have sent, one process after the other: no row occurs twice in what one process
sends, so that the order of each sum is fixed, and tables stay equal in every bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from paranmt_hf.training.processes import Processes


def distinct(rows: torch.Tensor, count: int, bound: int) -> tuple[torch.Tensor, torch.Tensor]:
    """List each of some rows once, in a shape that does not depend on them.

    Args:
        rows: Rows [unit]; the last row of the table is none.
        count: Rows of the table.
        bound: Rows that are listed.

    Returns:
        The rows, ascending, then the row that is none again and again [bound]; and their number, which may be above
        the bound.
    """
    used = torch.zeros(count, dtype=torch.int32, device=rows.device).index_fill_(0, rows, 1)
    used[-1:].zero_()
    places = used.cumsum(0)
    # Whatever has no place goes into one behind the last, which is cut off.
    places = (places - 1).masked_fill_(used == 0, bound).clamp_(max=bound)
    listed = torch.full((bound + 1,), count - 1, device=rows.device)
    listed.scatter_(0, places, torch.arange(count, device=rows.device))
    return listed[:bound], used.sum()


def summed(
    processes: Processes, gradients: Sequence[torch.Tensor], rows: Sequence[torch.Tensor]
) -> list[torch.Tensor]:
    """Add up gradients over all processes, in one exchange.

    Args:
        processes: Those that train together.
        gradients: Of each table the gradient of its rows under the pairs of this process [row, dimension], float32.
        rows: Of each table its rows that have a gradient, each once, as of `distinct`; as many in each process.

    Returns:
        Of each table the gradient under the pairs of all [row, dimension].
    """
    # Numbers of all kinds travel as 32 bits.
    packed = [
        torch.cat([chosen.int()[:, None], gradient.index_select(0, chosen).view(torch.int32)], dim=1)
        for gradient, chosen in zip(gradients, rows, strict=True)
    ]
    everyone = processes.gather(torch.cat([part.flatten() for part in packed]))
    sums, start = [], 0
    for gradient, part in zip(gradients, packed, strict=True):
        total = torch.zeros_like(gradient)
        sent = everyone[:, start : start + part.numel()].view(-1, *part.shape)
        for own in sent:
            total.index_add_(0, own[:, 0].long(), own[:, 1:].view(torch.float32))
        sums.append(total)
        start += part.numel()
    return sums


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
