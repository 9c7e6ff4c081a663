"""Count the operations of one mega-batch of WORD on a GPU, and the bytes that they move.

They are counted without a GPU: the code is the same on torch's CPU device. An operation is a kernel; one that gives a
view of its input is none.

    python benchmarks/gpu_timeline.py --pairs machine-translations.parquet
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from commands import heading
from negatives import store_of, vocabulary_of
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from training import Sides, read

from paranmt_hf import EncoderConfig, TrainConfig
from paranmt_hf.encoders.building import build_encoder
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.vocabulary import Vocabulary
from paranmt_hf.training.device.engine import device_engine

MEGABYTE = 1e6


class Counting(TorchDispatchMode):
    """A mode of torch that counts operations and the bytes that they read and write."""

    VIEWS = frozenset(
        "alias detach expand permute select slice split split_with_sizes t transpose unbind unsqueeze view "
        "_unsafe_view empty empty_like new_empty".split()
    )

    def __init__(self) -> None:
        super().__init__()
        self.kernels: dict[str, int] = defaultdict(int)
        self.bytes: dict[str, int] = defaultdict(int)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        """Run an operation, and count it and the bytes that it moved."""
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

        # If a table is indexed, only the chosen rows are moved. A tensor that is filled or overwritten is not read.
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
        """Return the number of all operations, and the megabytes that they moved."""
        return sum(self.kernels.values()), sum(self.bytes.values()) / MEGABYTE


def timeline(sides: Sides, words: Vocabulary, dimension: int, config: TrainConfig) -> None:
    """Print the operations of one mega-batch of WORD, counted on torch's CPU device."""
    encoder = build_encoder(EncoderConfig(model="word", dimension=dimension), {"word": words})
    with tempfile.TemporaryDirectory() as folder:
        store = store_of(encoder, sides, Path(folder) / "pairs")
        trainer = device_engine(take_apart(encoder), config, store.pairs, None, torch.device("cpu"))
        mega = next(store.mega_batches(config.mega_pairs, seed=1, epoch=0))
        started = time.process_time()
        plan = trainer.prepare(mega, np.random.default_rng(1))
        seconds = time.process_time() - started
    phases: dict[str, tuple[int, Counting]] = {name: (1, Counting()) for name in ("read rows", "mine")}
    phases |= {"a step": (len(plan.steps), Counting()), "write rows": (1, Counting())}
    table = trainer.tables[0]
    with phases["read rows"][1]:
        sent = trainer._send(plan)
    with phases["mine"][1]:
        trainer._mine(plan, sent, torch.zeros(()))
    trainer._schedule.now.copy_(trainer._schedule.steps[1])
    step = sent["steps"][: len(plan.steps[0])]
    with phases["a step"][1]:
        result = trainer._step(step.long())
    with phases["write rows"][1]:
        table.write()
    own, sentences = plan.rows[0], len(plan.keys)
    print(
        f"{sentences:,} sentences of {len(own.ids) / sentences:.1f} words, {len(own.rows):,} distinct rows "
        f"({len(table._local[0]):,} with room); a step has {int(result[1]):,} words ({table.bound:,} with room). "
        f"Sent: {plan.parcel[0].numel() * 4 / MEGABYTE:.2f} MB. Prepared by the host in {1000 * seconds:.0f} ms.\n"
    )
    print("| | times | kernels | MB moved | most of it |\n|---|---:|---:|---:|---|")
    for name, (times, counting) in phases.items():
        kernels, megabytes = counting.total
        largest = sorted(counting.bytes.items(), key=lambda item: -item[1])[:5]
        parts = ", ".join(f"{part} {moved / MEGABYTE:.0f}" for part, moved in largest)
        print(f"| {name} | {times} | {kernels} | {megabytes:.0f} | {parts} |")
    kernels = sum(times * counting.total[0] for times, counting in phases.values())
    megabytes = sum(times * counting.total[1] for times, counting in phases.values())
    print(f"| all | | {kernels:,} | {megabytes:,.0f} | |\n")


def main() -> None:
    """Parse the command line, count, print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet with the columns reference and translation")
    parser.add_argument("--count", type=int, default=100_000, help="pairs")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--mega-batch", type=int, default=40)
    arguments = parser.parse_args()
    config = TrainConfig(batch_size=arguments.batch_size, mega_batch=arguments.mega_batch)
    sides, mean = read(arguments.pairs, None, 0, arguments.count)
    words = vocabulary_of("word", [pa.array(side) for side in sides], arguments.rows - 1)
    print(f"{heading('torch', 'numpy')}; table {arguments.rows:,} x {arguments.dimension} float32, mega-batches of")
    print(f"{config.mega_pairs:,} pairs, sentences of {mean:.1f} words\n")
    timeline(sides, words, arguments.dimension, config)


if __name__ == "__main__":
    main()
