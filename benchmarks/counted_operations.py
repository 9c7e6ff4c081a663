"""Counts the operations of a piece of code and the bytes that they move; an operation that gives a view is none."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

MEGABYTE = 1e6


class Counting(TorchDispatchMode):
    """Counts operations and the bytes that they read and write."""

    VIEWS = frozenset(
        "alias detach expand permute select slice split split_with_sizes t transpose unbind unsqueeze view "
        "_unsafe_view empty empty_like new_empty".split()
    )

    def __init__(self) -> None:
        super().__init__()
        self.kernels: dict[str, int] = defaultdict(int)
        self.bytes: dict[str, int] = defaultdict(int)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        """Run an operation and note what it moved."""
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.removeprefix("aten::")
        if name not in self.VIEWS:
            self.kernels[name] += 1
            self.bytes[name] += self._moved(name, args, kwargs or {}, result)
        return result

    @staticmethod
    def _moved(name: str, args: Any, kwargs: Any, result: Any) -> int:  # noqa: ANN401
        def size(values: object) -> int:
            tensors = [value for value in tree_leaves(values) if isinstance(value, torch.Tensor)]
            return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

        # Of a table that is indexed only the rows are moved; what is filled or copied over is not read.
        if name == "index_select":
            return 2 * size(result) + size(args[2])
        if name in ("index_add_", "index_copy_"):
            return (3 if name == "index_add_" else 2) * size(args[3]) + size(args[2])
        if name == "index_fill_":
            return 2 * size(args[2])
        if name.startswith("_embedding_bag"):
            return len(args[1]) * args[0].shape[1] * args[0].element_size() + size(result[0]) + size(args[1:3])
        if name == "copy_":
            return 2 * size(args[0])
        if name in ("zeros", "ones", "zeros_like", "new_zeros", "zero_", "fill_", "full"):
            return size(result)
        return size((args, kwargs)) + size(result)

    @property
    def total(self) -> tuple[int, float]:
        """All operations, and megabytes."""
        return sum(self.kernels.values()), sum(self.bytes.values()) / MEGABYTE
