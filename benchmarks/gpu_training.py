"""How fast encoders are trained on a GPU, and what one mega-batch does there.

The paper's algorithm (ParaNMT-50M, sections 4.2 and 5.1): mega-batches of 40 x 100 pairs, negatives of both sides
mined once for each, a step of Adam for each 100 pairs. Rows of the pairs lie on disk before the clock starts, and the
first epoch, in which memory is made and steps are captured, does not count; the others repeat the same pairs for
length. The peer is sentence-transformers' `MegaBatchMarginLoss` with a batch of the same 4,000 pairs, which makes one
update where ours make 40, on the same table, in the same process, in turn. Figures are pairs per second of wall time.

    python benchmarks/gpu_training.py --pairs machine-translations.parquet

`--timeline` counts the operations of a mega-batch of WORD and the bytes that they move, without a GPU: the code is the
same on torch's CPU device. An operation is a kernel; one that gives a view of its input is none. With `--processes K`
it counts what the first of K does, and what it sends.
"""

from __future__ import annotations

import argparse
import logging
import platform
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from counted_operations import MEGABYTE, Counting
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MegaBatchMarginLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from training import Sides, read, store_of, vocabulary_of
from transformers import PrinterCallback

from paranmt_hf import EncoderConfig, TrainConfig
from paranmt_hf.encoders.building import build_encoder, trainable
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.families import Kind
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.encoders.vocabulary import Vocabulary
from paranmt_hf.text.definitions import word_tokenizer
from paranmt_hf.training import checkpoint
from paranmt_hf.training.device.engine import DeviceEngine, device_engine
from paranmt_hf.training.distributed import Processes
from paranmt_hf.training.epochs import Epochs
from paranmt_hf.training.pair_store import PairStore
from paranmt_hf.training.train import fit_encoder

# Name of each encoder, its settings, and the share of the pairs that it gets.
MODELS: dict[str, tuple[dict[str, Any], float]] = {
    "WORD": ({"model": "word"}, 1.0),
    "TRIGRAM": ({"model": "trigram"}, 1.0),
    "WORD,TRIGRAM": ({"model": "word,trigram"}, 1.0),
    "LSTM-300": ({"model": "lstm"}, 0.1),
    "BLSTM-2048": ({"model": "blstm", "directions": "concatenate", "dimension": 2048, "word_dimension": 300}, 0.1),
}


@dataclass
class Result:
    """Pairs per second, share of mining in the time of the device, peak memory of the device in GB."""

    rate: float
    mining: float = float("nan")
    memory: float = float("nan")


class Machine:
    """The device, with clocks that wait for it."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.on_gpu = device.type == "cuda"

    def now(self) -> float:
        """Seconds, after all work is done."""
        if self.on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter()

    def forget_peak(self) -> None:
        """Measure memory from now on."""
        if self.on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    @property
    def peak(self) -> float:
        """Peak memory, GB."""
        return torch.cuda.max_memory_allocated() / 1e9 if self.on_gpu else float("nan")


def encoder_of(settings: dict[str, Any], vocabularies: dict[Kind, Vocabulary], dimension: int) -> SentenceEncoder:
    """Build an encoder with random weights."""
    config = EncoderConfig(**{"dimension": dimension, **settings})
    return build_encoder(config, {kind: vocabularies[kind] for kind in config.kinds})


@contextmanager
def mining_timed(machine: Machine) -> Iterator[list[float]]:
    """Collect the seconds of mining; waits for the device, so that nothing overlaps."""
    spent: list[float] = []
    original = DeviceEngine._mine

    def mine(self: DeviceEngine, *arguments: Any) -> None:  # noqa: ANN401
        started = machine.now()
        original(self, *arguments)
        spent.append(machine.now() - started)

    DeviceEngine._mine = mine  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        DeviceEngine._mine = original  # type: ignore[method-assign]


class Unsaved(Epochs):
    """A course without files."""

    def _save(self) -> None:
        pass

    def _finish(self) -> None:
        pass


def train_loop(encoder: SentenceEncoder, store: PairStore, config: TrainConfig, machine: Machine) -> Result:
    """Train an averaging encoder in the loop; the first epoch is not timed, the last one shows the share of mining."""
    epochs = max(3, config.epochs)
    trainer = device_engine(
        take_apart(list(encoder)), replace(config, epochs=epochs + 1), store.pairs, None, machine.device
    )
    machine.forget_peak()

    def run(count: int) -> float:
        # So many epochs over the same trainer.
        loop = Unsaved(trainer, store, Path("nowhere"), None, trainer.prepare)
        loop.config = replace(config, epochs=count)
        started = machine.now()
        loop.run()
        return machine.now() - started

    run(1)
    seconds = run(epochs - 1)
    with mining_timed(machine) as spent:
        whole = run(1)
    return Result((epochs - 1) * store.pairs / seconds, sum(spent) / whole, machine.peak)


def train_trainer(encoder: SentenceEncoder, store: PairStore, config: TrainConfig, machine: Machine) -> Result:
    """Train an encoder with weights beside its table, through the trainer."""
    machine.forget_peak()
    with tempfile.TemporaryDirectory() as folder:
        started = machine.now()
        fit_encoder(trainable(encoder), store, replace(config, epochs=1, device=machine.device.type), Path(folder))
        return Result(store.pairs / (machine.now() - started), memory=machine.peak)


def ours(
    settings: dict[str, Any],
    vocabularies: dict[Kind, Vocabulary],
    dimension: int,
    config: TrainConfig,
    machine: Machine,
) -> Callable[[Sides], Result]:
    """Train one of our encoders."""

    def run(sides: Sides) -> Result:
        encoder = encoder_of(settings, vocabularies, dimension)
        way = train_loop if take_apart(list(encoder)).only_tables else train_trainer
        with tempfile.TemporaryDirectory() as folder:
            return way(encoder, store_of(encoder, sides, Path(folder) / "pairs"), config, machine)

    return run


def sentence_transformers(
    words: Vocabulary, dimension: int, config: TrainConfig, machine: Machine
) -> Callable[..., Result]:
    """Train its `StaticEmbedding` over the same vocabulary with its trainer and `MegaBatchMarginLoss`."""

    def run(sides: Sides) -> Result:
        weight = np.random.default_rng(1).standard_normal((len(words), dimension), np.float32) * np.float32(0.05)
        model = SentenceTransformer(
            modules=[StaticEmbedding(word_tokenizer(words.units), embedding_weights=weight)],
            device=str(machine.device),
        )
        # Its mini-batched version reads tokens as a padded matrix, which a StaticEmbedding has not.
        loss = MegaBatchMarginLoss(model, use_mini_batched_version=False)
        with tempfile.TemporaryDirectory() as folder:
            arguments = SentenceTransformerTrainingArguments(
                output_dir=folder,
                num_train_epochs=1,
                per_device_train_batch_size=config.mega_pairs,
                learning_rate=config.learning_rate,
                save_strategy="no",
                logging_strategy="no",
                report_to="none",
                use_cpu=not machine.on_gpu,
                disable_tqdm=True,
            )
            model.model_card_data.generate_widget_examples = False
            data = Dataset.from_dict({"anchor": sides[0], "positive": sides[1]})
            peer = SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=loss)
            peer.remove_callback(PrinterCallback)
            machine.forget_peak()
            started = machine.now()
            peer.train()
            return Result(len(sides[0]) / (machine.now() - started), memory=machine.peak)

    return run


def largest_mega_batch(
    sides: Sides, words: Vocabulary, dimension: int, config: TrainConfig, machine: Machine, most: int
) -> None:
    """Double M until memory or pairs run out; prints a row for each."""
    print("| M | pairs of a mega-batch | pairs per second | mining | peak memory, GB |\n|---:|---:|---:|---:|---:|")
    size = config.mega_batch
    while size <= most and size * config.batch_size <= len(sides[0]):
        try:
            result = ours(
                {"model": "word"}, {"word": words}, dimension, replace(config, mega_batch=size, epochs=3), machine
            )(sides)
        except torch.OutOfMemoryError:
            print(f"| {size} | {size * config.batch_size:,} | no memory | | |")
            break
        rate = f"{result.rate:,.0f} | {result.mining:.0%} | {result.memory:.1f} |"
        print(f"| {size} | {size * config.batch_size:,} | {rate}", flush=True)
        size *= 2
    print()


class Pretended(Processes):
    """The first of several processes of which there are no others: they would send as much as it does.

    Attributes:
        sent: Bytes that it has sent.
    """

    sent = 0

    def gather(self, own: torch.Tensor) -> torch.Tensor:
        """Note what is sent, and get it back from each."""
        self.sent += own.numel() * own.element_size()
        return own.expand(self.count, *own.shape).contiguous()


def timeline(sides: Sides, words: Vocabulary, dimension: int, config: TrainConfig, count: int) -> None:
    """Print what one mega-batch of WORD does in one of so many processes, counted on torch's CPU device."""
    process = Pretended(0, count) if count > 1 else None
    encoder = encoder_of({"model": "word"}, {"word": words}, dimension)
    with tempfile.TemporaryDirectory() as folder:
        store = store_of(encoder, sides, Path(folder) / "pairs")
        trainer = device_engine(
            take_apart(list(encoder)), config, store.pairs, None, torch.device("cpu"), processes=process
        )
        mega = next(store.mega_batches(config.mega_pairs, seed=1, epoch=0))
        started = time.process_time()
        plan = trainer.prepare(mega, np.random.default_rng(1))
        seconds = time.process_time() - started
    if process is not None:
        # How many rows a step sends is known after a mega-batch.
        trainer.train_on(plan, np.random.default_rng(1))
        process.sent = 0
    phases: dict[str, tuple[int, Counting]] = {name: (1, Counting()) for name in ("read rows", "mine")}
    phases |= {"a step": (len(plan.steps), Counting()), "write rows": (1, Counting())}
    table = trainer.tables[0]
    with phases["read rows"][1]:
        steps, rest = trainer._send(plan)
    with phases["mine"][1]:
        trainer._mine(plan, rest, torch.zeros(()))
    trainer._schedule.go_to(1)
    with phases["a step"][1]:
        result = trainer._step(steps[0].long(), plan.shares[0], steps[0])
    if process is not None:
        print(
            f"The first of {count} processes: {int(result[2]):,} distinct rows in a step ({table.row_bound:,} sent, "
            f"with room), {process.sent / MEGABYTE:.2f} MB sent in a step and "
            f"{(count - 1) * process.sent / MEGABYTE:.2f} received.\n"
        )
    with phases["write rows"][1]:
        table.write()
    own, sentences = plan.tables[0], len(plan.keys)
    print(
        f"{sentences:,} sentences of {len(own.ids) / sentences:.1f} words, {len(own.rows):,} distinct rows "
        f"({len(table._local[0]):,} with room); a step has {int(result[1]):,} words ({table.bound:,} with room). "
        f"Sent: {plan.parcel.numel() * 4 / MEGABYTE:.2f} MB. Prepared by the host in {1000 * seconds:.0f} ms.\n"
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


def report(results: dict[str, list[Result]], pairs: dict[str, int]) -> None:
    """Print a Markdown table; ratios are those of medians."""
    print("| | pairs | runs | pairs per second: median (min to max) | mining | memory, GB | WORD is |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    base = statistics.median(result.rate for result in next(iter(results.values())))
    for name, own in results.items():
        rates = [result.rate for result in own]
        median = statistics.median(rates)
        mining = statistics.median(result.mining for result in own)
        share = f"{mining:.0%}" if not np.isnan(mining) else "-"
        rate = f"{median:,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"
        memory = f"{max(result.memory for result in own):.2f}"
        print(f"| {name} | {pairs[name]:,} | {len(own)} | {rate} | {share} | {memory} | {base / median:.1f} x |")
    print()


def main() -> None:
    """Parse the command line, measure, print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet with the columns reference and translation")
    parser.add_argument("--count", type=int, default=100_000, help="pairs; models with an LSTM get a tenth")
    parser.add_argument("--copies", type=int, default=40, help="times that averaging models see the pairs")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--mega-batch", type=int, default=40)
    parser.add_argument("--largest", type=int, default=1000, help="where the search for the largest M ends; 0: none")
    parser.add_argument("--repeats", type=int, default=5, help="of averaging models and the peer; others get two")
    parser.add_argument("--only", nargs="+", help="names of what is measured")
    parser.add_argument("--device", default="cuda", help="cpu: does the program run?")
    parser.add_argument("--processes", type=int, default=1, help="of which the timeline is that of the first")
    parser.add_argument("--timeline", action="store_true", help="count operations and bytes, and measure nothing")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    machine = Machine(torch.device(arguments.device))
    checkpoint.CHECKPOINT_SECONDS = 1e9
    config = TrainConfig(batch_size=arguments.batch_size, mega_batch=arguments.mega_batch, epochs=arguments.copies)
    sides, mean = read(arguments.pairs, None, 0, arguments.count)
    columns = [pa.array(side) for side in sides]
    vocabularies: dict[Kind, Vocabulary] = {
        kind: vocabulary_of(kind, columns, arguments.rows - 1)
        for kind in ("word", "trigram")  # type: ignore[misc]
    }
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "sentence-transformers", "numpy", "pyarrow"))
    name = torch.cuda.get_device_name() if machine.on_gpu and not arguments.timeline else "the CPU"
    print(f"{date.today()}, {name}, {platform.machine()}, Python {platform.python_version()}, {packages},")
    print(f"table {arguments.rows:,} x {arguments.dimension} float32, mega-batches of {config.mega_pairs:,} pairs,")
    print(f"sentences of {mean:.1f} words\n")
    if arguments.timeline:
        timeline(sides, vocabularies["word"], arguments.dimension, config, arguments.processes)
        return
    systems: dict[str, tuple[Callable[[Sides], Result], float]] = {
        name: (ours(settings, vocabularies, arguments.dimension, config, machine), share)
        for name, (settings, share) in MODELS.items()
    }
    peer = sentence_transformers(vocabularies["word"], arguments.dimension, config, machine)
    systems["sentence-transformers"] = (peer, 1.0)
    systems = {name: system for name, system in systems.items() if not arguments.only or name in arguments.only}
    results: dict[str, list[Result]] = {name: [] for name in systems}
    pairs = {name: int(share * arguments.count) for name, (_, share) in systems.items()}
    for repeat in range(arguments.repeats):
        for name, (run, share) in systems.items():
            if share == 1 or repeat < 2:
                results[name].append(run((sides[0][: pairs[name]], sides[1][: pairs[name]])))
    report(results, pairs)
    if arguments.largest:
        largest_mega_batch(sides, vocabularies["word"], arguments.dimension, config, machine, arguments.largest)


if __name__ == "__main__":
    main()
