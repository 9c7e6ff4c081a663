"""Measure how fast encoders are trained on a GPU.

The paper's algorithm (ParaNMT-50M, sections 4.2 and 5.1): mega-batches of 40 x 100 pairs, negatives of both sides
mined once for each, a step of Adam for each 100 pairs. Each encoder is trained twice, for one epoch and for more. The
time of the first, which allocates memory and captures steps, is subtracted. Time is that of training in the
records, without reading text. The peer is sentence-transformers' `MegaBatchMarginLoss` with a batch of the same 4,000
pairs, which makes one update where ours make 40, on a table of the same words, in the same process, in turn. Figures
are pairs per second of wall time. `benchmarks/gpu_timeline.py` counts what a mega-batch does, without a GPU.

    python benchmarks/gpu_training.py --pairs machine-translations.parquet
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from commands import heading, spread
from training import CONFIG, Sides, fit, margins, random_word, read, tokenizer_of, write_pairs

from paranmt_hf import EncoderConfig, TrainConfig, train

# For each encoder: its name, its settings, and the shares of the pairs and of the epochs that it gets.
MODELS: dict[str, tuple[dict[str, Any], float, float]] = {
    "WORD": ({"model": "word"}, 1, 1),
    "TRIGRAM": ({"model": "trigram"}, 1, 1),
    "WORD,TRIGRAM": ({"model": "word,trigram"}, 1, 1),
    "LSTM-300": ({"model": "lstm"}, 0.1, 0.05),
    "BLSTM-2048": (
        {"model": "blstm", "directions": "concatenate", "dimension": 2048, "word_dimension": 300},
        0.1,
        0.05,
    ),
}


@dataclass
class Result:
    """The result of a run: pairs per second, and peak memory of the device in GB."""

    rate: float
    memory: float


class Machine:
    """The device, with a clock that waits for its work."""

    def __init__(self, name: str) -> None:
        self.name: Any = name
        self.on_gpu = name == "cuda"

    def now(self) -> float:
        """Return the time in seconds, after the device has done all work."""
        if self.on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter()

    def forget_peak(self) -> None:
        """Begin to measure peak memory from now on."""
        if self.on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    @property
    def peak(self) -> float:
        """Return the peak memory in GB."""
        return torch.cuda.max_memory_allocated() / 1e9 if self.on_gpu else float("nan")


def ours(encoder: EncoderConfig, config: TrainConfig, machine: Machine) -> Callable[[Sides], Result]:
    """Return a function that trains one of our encoders on pairs and measures it."""

    def run(sides: Sides) -> Result:
        machine.forget_peak()
        with tempfile.TemporaryDirectory() as name:
            pairs = write_pairs(sides, Path(name) / "pairs.parquet")
            first, all_ = (
                train(pairs, Path(name) / str(epochs), encoder=encoder, config=replace(config, epochs=epochs)).record
                for epochs in (1, config.epochs)
            )
        trained = all_.history.pairs - first.history.pairs
        return Result(trained / (all_.history.seconds - first.history.seconds), machine.peak)

    return run


def sentence_transformers(sides: Sides, dimension: int, batch: int, machine: Machine) -> Callable[[Sides], Result]:
    """Return a function that trains a `StaticEmbedding` with the trainer of sentence-transformers, and measures it."""
    tokenizer, words = tokenizer_of(sides)

    def run(sides: Sides) -> Result:
        model = random_word(tokenizer, words, dimension).to(machine.name)
        machine.forget_peak()
        seconds = fit(model, sides, batch, margins(model), machine.now)
        return Result(len(sides[0]) / seconds, machine.peak)

    return run


def largest_mega_batch(sides: Sides, encoder: EncoderConfig, config: TrainConfig, machine: Machine, most: int) -> None:
    """Double the size M of a mega-batch until memory or pairs run out, and print a row for each."""
    print("| M | pairs of a mega-batch | pairs per second | peak memory, GB |\n|---:|---:|---:|---:|")
    size = config.mega_batch
    while size <= most and size * config.batch_size <= len(sides[0]):
        try:
            result = ours(encoder, replace(config, mega_batch=size, epochs=3), machine)(sides)
        except torch.OutOfMemoryError:
            print(f"| {size} | {size * config.batch_size:,} | no memory | |")
            break
        print(f"| {size} | {size * config.batch_size:,} | {result.rate:,.0f} | {result.memory:.1f} |", flush=True)
        size *= 2
    print()


def report(results: dict[str, list[Result]], pairs: dict[str, int]) -> None:
    """Print a Markdown table of the results of each encoder; ratios are ratios of medians."""
    print("| | pairs | runs | pairs per second: median (min to max) | memory, GB | first is |")
    print("|---|---:|---:|---:|---:|---:|")
    base = statistics.median(result.rate for result in next(iter(results.values())))
    for name, own in results.items():
        rates, memory = [result.rate for result in own], max(result.memory for result in own)
        ratio = base / statistics.median(rates)
        print(f"| {name} | {pairs[name]:,} | {len(own)} | {spread(rates)} | {memory:.2f} | {ratio:.1f} x |")
    print()


def main() -> None:
    """Parse the command line, measure, print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet with the columns reference and translation")
    parser.add_argument("--count", type=int, default=100_000, help="pairs; models with an LSTM get a tenth")
    parser.add_argument("--epochs", type=int, default=40, help="of averaging models; models with an LSTM get two")
    parser.add_argument("--dimension", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--mega-batch", type=int, default=40)
    parser.add_argument("--largest", type=int, default=1000, help="where the search for the largest M ends; 0: none")
    parser.add_argument("--repeats", type=int, default=5, help="of averaging models and the peer; others get two")
    parser.add_argument("--only", nargs="+", help="names of what is measured")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: does the program run?")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    machine = Machine(arguments.device)
    config = replace(CONFIG, device=machine.name, batch_size=arguments.batch_size, mega_batch=arguments.mega_batch)
    sides, mean = read(arguments.pairs, None, 0, arguments.count)
    name = torch.cuda.get_device_name() if machine.on_gpu else "the CPU"
    print(
        f"{name}; {heading('torch', 'sentence-transformers', 'numpy', 'pyarrow')}; {arguments.dimension} dimensions,"
    )
    print(f"mega-batches of {config.mega_pairs:,} pairs, sentences of {mean:.1f} words\n")
    systems: dict[str, tuple[Callable[[Sides], Result], float]] = {}
    for name, (settings, share, passes) in MODELS.items():
        encoder = EncoderConfig(**{"dimension": arguments.dimension, **settings})
        epochs = max(2, round(passes * arguments.epochs))
        systems[name] = (ours(encoder, replace(config, epochs=epochs), machine), share)
    peer = sentence_transformers(sides, arguments.dimension, config.mega_pairs, machine)
    systems["sentence-transformers"] = (peer, 1)
    systems = {name: system for name, system in systems.items() if not arguments.only or name in arguments.only}
    results: dict[str, list[Result]] = {name: [] for name in systems}
    pairs = {name: int(share * arguments.count) for name, (_, share) in systems.items()}
    for repeat in range(arguments.repeats):
        for name, (run, share) in systems.items():
            if share == 1 or repeat < 2:
                results[name].append(run((sides[0][: pairs[name]], sides[1][: pairs[name]])))
    report(results, pairs)
    if arguments.largest:
        word = EncoderConfig(model="word", dimension=arguments.dimension)
        largest_mega_batch(sides, word, config, machine, arguments.largest)


if __name__ == "__main__":
    main()
