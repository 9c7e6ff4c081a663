"""How fast encoders are trained: ours, sentence-transformers' trainer, and plain loops of the same algorithm.

The paper's algorithm (ParaNMT-50M, sections 4.2 and 5.1): mega-batches of 40 x 100 pairs, negatives of both sides
mined once for each, a step of Adam for each 100 pairs. Ours start from strings: cutting them into words, looking up
rows and writing them to disk is in the figure; beside it stands the rate without. All systems have a table of the same
size and get the same pairs in one process in turn; slow ones get fewer of them. Figures are pairs per CPU second.

    python benchmarks/training.py --pairs machine-translations.parquet

The checkpoint at the end of a run is left out: it takes a second however long the run was.
"""

from __future__ import annotations

import argparse
import logging
import platform
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MegaBatchMarginLoss, MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from transformers import PrinterCallback

from paranmt_hf import EncoderConfig, TrainConfig
from paranmt_hf.encoders.building import build_encoder
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.families import Kind
from paranmt_hf.encoders.units import count_units, lookup
from paranmt_hf.encoders.vocabulary import Vocabulary, most_frequent
from paranmt_hf.text.definitions import word_tokenizer
from paranmt_hf.training import checkpoint
from paranmt_hf.training.cpu_engine import CpuEngine
from paranmt_hf.training.epochs import Epochs
from paranmt_hf.training.losses import margin_loss
from paranmt_hf.training.pair_store import PairStore, write_pairs, write_tokens
from paranmt_hf.training.train import fit_encoder
from paranmt_hf.training.trainer import MegaBatchTrainer

Sides = tuple[list[str], list[str]]
CONFIG = TrainConfig(epochs=1, device="cpu")
checkpoint.CHECKPOINT_SECONDS = 1e9


@dataclass
class Result:
    """CPU seconds of one run: all of it, cutting and writing rows, mining; and the pairs."""

    pairs: int
    seconds: float
    reading: float = float("nan")
    mining: float = float("nan")


def vocabulary_of(kind: Kind, references: Sequence[pa.Array], size: int) -> Vocabulary:
    """Take the most frequent units, and made-up ones where the text has too few."""
    found = most_frequent(kind, count_units(references, [kind])[kind], size)
    return Vocabulary(kind, [*found.units, *(f"[{number}]" for number in range(size + 1 - len(found)))])


class Clock:
    """Adds up the CPU time of a function's calls."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function."""

        def timed(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            started = time.process_time()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds += time.process_time() - started

        return timed


def store_of(encoder: SentenceTransformer, sides: Sides, folder: Path) -> PairStore:
    """Cut the sentences and write their rows."""
    vocabularies = {part.reader: part.vocabulary for part in take_apart(list(encoder)).parts}  # type: ignore[arg-type]
    readers = {name: lookup(vocabulary) for name, vocabulary in vocabularies.items()}
    columns = (
        (pa.array(sides[0][start : start + 20_000]), pa.array(sides[1][start : start + 20_000]))
        for start in range(0, len(sides[0]), 20_000)
    )
    tokens = write_tokens(columns, folder / "tokens")
    return write_pairs(tokens.tables(), folder, readers, {name: len(known) for name, known in vocabularies.items()})


def ours(model: str, vocabularies: dict[Kind, Vocabulary], dimension: int) -> Callable[[Sides], Result]:
    """Train one of our encoders as `paranmt train` does, without its evaluations and files at the end."""
    config = EncoderConfig(model=model, dimension=dimension)

    def run(sides: Sides) -> Result:
        encoder = build_encoder(config, {kind: vocabularies[kind] for kind in config.kinds})
        clock, saving = Clock(), Clock()
        kept = CpuEngine._choose, MegaBatchTrainer._mine, Epochs._save
        CpuEngine._choose = clock.around(kept[0])  # type: ignore[method-assign]
        MegaBatchTrainer._mine = clock.around(kept[1])  # type: ignore[method-assign]
        Epochs._save = saving.around(kept[2])  # type: ignore[method-assign]
        try:
            with tempfile.TemporaryDirectory() as folder:
                started = time.process_time()
                store = store_of(encoder, sides, Path(folder) / "pairs")
                reading = time.process_time() - started
                fit_encoder(encoder, store, CONFIG, Path(folder))
                seconds = time.process_time() - started - saving.seconds
        finally:
            CpuEngine._choose, MegaBatchTrainer._mine, Epochs._save = kept  # type: ignore[method-assign]
        return Result(store.pairs, seconds, reading, clock.seconds)

    return run


def plain_loop(
    kind: type[torch.optim.Optimizer], words: Vocabulary, dimension: int, **options: Any
) -> Callable[[Sides], Result]:
    """Write the same algorithm down with nothing but torch: mining in one matrix, autograd, one of torch's Adams."""
    get = {unit: row for row, unit in enumerate(words.units)}.get
    sparse = kind is torch.optim.SparseAdam

    def run(sides: Sides) -> Result:
        generator = torch.Generator().manual_seed(1)
        table = torch.nn.EmbeddingBag(len(words), dimension, mode="mean", sparse=sparse)
        with torch.no_grad():
            table.weight.normal_(0, 0.05, generator=generator)
        optimizer = kind(table.parameters(), lr=CONFIG.learning_rate, **options)
        started = time.process_time()
        texts = [[[get(word, 0) for word in text.lower().split()] for text in side] for side in sides]

        def encode(rows: list[list[int]]) -> torch.Tensor:
            offsets = torch.from_numpy(np.cumsum([0, *map(len, rows[:-1])]))
            return table(torch.tensor([row for bag in rows for row in bag]), offsets)

        for start in range(0, len(texts[0]), CONFIG.mega_pairs):
            mega = [side[start : start + CONFIG.mega_pairs] for side in texts]
            both, count = [*mega[0], *mega[1]], len(mega[0])
            with torch.no_grad():
                unit = torch.nn.functional.normalize(encode(both), dim=1)
                similarity = unit @ unit.T
                own = torch.arange(count)
                for rows, columns in ((own, own), (own + count, own + count), (own, own + count), (own + count, own)):
                    similarity[rows, columns] = -2
                negatives = similarity.argmax(dim=1).tolist()
            for low in range(0, count, CONFIG.batch_size):
                pairs = range(low, min(low + CONFIG.batch_size, count))
                roles = [
                    [both[pair] for pair in pairs],
                    [both[count + pair] for pair in pairs],
                    [both[negatives[pair]] for pair in pairs],
                    [both[negatives[count + pair]] for pair in pairs],
                ]
                loss = margin_loss(*(encode(role) for role in roles), margin=CONFIG.margin)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return Result(len(texts[0]), time.process_time() - started)

    return run


def sentence_transformers(
    words: Vocabulary, dimension: int, batch: int, loss: Callable[[SentenceTransformer], torch.nn.Module]
) -> Callable[[Sides], Result]:
    """Train its `StaticEmbedding` over the same vocabulary with its trainer."""

    def run(sides: Sides) -> Result:
        weight = np.random.default_rng(1).standard_normal((len(words), dimension), np.float32) * np.float32(0.05)
        model = SentenceTransformer(
            modules=[StaticEmbedding(word_tokenizer(words.units), embedding_weights=weight)], device="cpu"
        )
        data = Dataset.from_dict({"anchor": sides[0], "positive": sides[1]})
        with tempfile.TemporaryDirectory() as folder:
            arguments = SentenceTransformerTrainingArguments(
                output_dir=folder,
                num_train_epochs=1,
                per_device_train_batch_size=batch,
                learning_rate=CONFIG.learning_rate,
                save_strategy="no",
                logging_strategy="no",
                report_to="none",
                use_cpu=True,
                disable_tqdm=True,
            )
            model.model_card_data.generate_widget_examples = False
            peer = SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=loss(model))
            peer.remove_callback(PrinterCallback)
            started = time.process_time()
            peer.train()
            seconds = time.process_time() - started
        return Result(len(sides[0]), seconds)

    return run


def read(path: Path, length: int | None, spread: int, count: int) -> tuple[Sides, float]:
    """Read pairs in random order, with sentences near a length if one is given; and their mean number of words."""
    table = pq.read_table(path, columns=["reference", "translation"]).drop_null()
    if length is not None:
        for side in ("reference", "translation"):
            words = pc.add(pc.count_substring(table[side], " "), 1)
            near = pc.and_(pc.greater_equal(words, length - spread), pc.less_equal(words, length + spread))
            table = table.filter(near)
    order = np.random.default_rng(1).permutation(table.num_rows)[:count]
    chosen = table.take(order)
    sides = chosen["reference"].to_pylist(), chosen["translation"].to_pylist()
    if len(sides[0]) < count:
        raise SystemExit(f"{path} has only {len(sides[0])} such pairs")
    return sides, float(np.mean([len(text.split()) for side in sides for text in side]))


def report(title: str, results: dict[str, list[Result]]) -> None:
    """Print a Markdown table; ratios are those of medians."""
    rates = {name: [result.pairs / result.seconds for result in own] for name, own in results.items()}
    base = statistics.median(next(iter(rates.values())))
    print(f"| {title} | pairs | runs | pairs per CPU second: median (min to max) | stored rows | mining | first is |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, own in results.items():
        median = statistics.median(rates[name])
        rate = f"{median:,.0f} ({min(rates[name]):,.0f} to {max(rates[name]):,.0f})"
        bare = statistics.median(result.pairs / (result.seconds - result.reading) for result in own)
        mining = statistics.median(result.mining / result.seconds for result in own)
        both = (f"{bare:,.0f}", f"{mining:.0%}") if not np.isnan(bare) else ("-", "-")
        ratio = f"{base / median:.1f}" if base / median < 10 else f"{base / median:.0f}"
        print(f"| {name} | {own[0].pairs:,} | {len(own)} | {rate} | {both[0]} | {both[1]} | {ratio} x |", flush=True)
    print()


def main() -> None:
    """Parse the command line, measure, print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet with the columns reference and translation")
    parser.add_argument("--lengths", type=int, nargs="+", default=[12, 0], help="words of a sentence; 0: as they are")
    parser.add_argument("--spread", type=int, default=2)
    parser.add_argument("--count", type=int, default=20_000, help="pairs; slow systems get fewer")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=5, help="of the fast systems; the slow ones get two")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the names of what is measured")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    whole, _ = read(arguments.pairs, None, 0, 200_000)
    vocabularies: dict[Kind, Vocabulary] = {
        kind: vocabulary_of(kind, [pa.array(side) for side in whole], arguments.rows - 1)
        for kind in ("word", "trigram")  # type: ignore[misc]
    }
    words, wide = vocabularies["word"], arguments.dimension

    def ranking(model: SentenceTransformer) -> torch.nn.Module:
        return MultipleNegativesRankingLoss(model)

    def margins(model: SentenceTransformer) -> torch.nn.Module:
        # Its mini-batched version reads tokens as a padded matrix, which a StaticEmbedding has not.
        return MegaBatchMarginLoss(model, use_mini_batched_version=False)

    # Name: how it is run, how many of the pairs it gets, whether it is slow.
    systems: dict[str, tuple[Callable[[Sides], Result], float, bool]] = {
        **{
            f"paranmt_hf {model.upper()}": (ours(model, vocabularies, wide), 1, False)
            for model in ("word", "trigram", "word,trigram")
        },
        "paranmt_hf LSTM": (ours("lstm", vocabularies, wide), 0.2, True),
        "plain loop, SparseAdam": (plain_loop(torch.optim.SparseAdam, words, wide), 0.4, False),
        "plain loop, dense Adam": (plain_loop(torch.optim.Adam, words, wide), 0.2, True),
        "plain loop, dense Adam, fused": (plain_loop(torch.optim.Adam, words, wide, fused=True), 0.2, True),
        "sentence-transformers, MultipleNegativesRanking, batch 100": (
            sentence_transformers(words, wide, 100, ranking),
            0.2,
            True,
        ),
        "sentence-transformers, MultipleNegativesRanking, batch 1000": (
            sentence_transformers(words, wide, 1000, ranking),
            0.4,
            True,
        ),
        "sentence-transformers, MegaBatchMargin, batch 4000": (
            sentence_transformers(words, wide, 4000, margins),
            0.4,
            False,
        ),
    }
    systems = {name: system for name, system in systems.items() if any(part in name for part in arguments.only)}
    named = ("torch", "sentence-transformers", "numba", "numpy", "pyarrow")
    packages = ", ".join(f"{name} {version(name)}" for name in named)
    processor = next(
        (line.split(": ")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), ""
    )
    print(f"{date.today()}, {processor or platform.machine()}, one thread, Python {platform.python_version()},")
    print(f"{packages}, table {arguments.rows:,} x {wide} float32, mega-batches of {CONFIG.mega_pairs:,} pairs\n")
    for length in arguments.lengths:
        sides, mean = read(arguments.pairs, length or None, arguments.spread, arguments.count)
        results: dict[str, list[Result]] = {name: [] for name in systems}
        for name, (run, _, _) in systems.items():
            if name.startswith("paranmt_hf"):
                # Loops are compiled before anything counts.
                run((sides[0][: CONFIG.mega_pairs], sides[1][: CONFIG.mega_pairs]))
        for repeat in range(arguments.repeats):
            for name, (run, share, slow) in systems.items():
                if slow and repeat >= 2:
                    continue
                part = int(share * arguments.count)
                results[name].append(run((sides[0][:part], sides[1][:part])))
        report(f"sentences of {mean:.1f} words", results)


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


if __name__ == "__main__":
    main()
