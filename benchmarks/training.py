"""Compare the training speed of ours, of sentence-transformers' trainer, and of plain loops of the same algorithm.

The paper's algorithm (ParaNMT-50M, sections 4.2 and 5.1): mega-batches of 40 x 100 pairs, negatives of both sides
mined once for each, a step of Adam for each 100 pairs. Ours is `paranmt_hf.train` from strings, with all that belongs
to it: checksums, vocabulary, rows on disk, the files of the encoder. Also shown is the rate of a second pass over
the same pairs, for which the rows exist already. All systems have the table of our WORD and get the same pairs in one
process in turn; slow ones get fewer of them. Figures are pairs per CPU second.

    python benchmarks/training.py --pairs machine-translations.parquet
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

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from commands import heading, spread
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MegaBatchMarginLoss, MultipleNegativesRankingLoss
from tokenizers import Tokenizer
from torch.nn.functional import cosine_similarity, normalize
from transformers import PrinterCallback
from words import static_embedding

from paranmt_hf import EncoderConfig, TrainConfig, train

Sides = tuple[list[str], list[str]]
CONFIG = TrainConfig(epochs=1, device="cpu")


@dataclass
class Result:
    """The CPU seconds of a run, and of a second pass over its pairs."""

    pairs: int
    seconds: float
    further: float = float("nan")


def write_pairs(sides: Sides, path: Path) -> Path:
    """Write pairs into a file for `train`, and return its path."""
    pq.write_table(pa.table({"reference": sides[0], "translation": sides[1]}), path)
    return path


def ours(model: str, dimension: int) -> Callable[[Sides], Result]:
    """Return a function that trains one of our encoders on pairs and measures it."""

    def run(sides: Sides) -> Result:
        with tempfile.TemporaryDirectory() as name:
            folder, seconds = Path(name), []
            pairs = write_pairs(sides, folder / "pairs.parquet")
            encoder = EncoderConfig(model=model, dimension=dimension)
            for epochs in (1, 2):
                started = time.process_time()
                train(pairs, folder / str(epochs), encoder=encoder, config=replace(CONFIG, epochs=epochs))
                seconds.append(time.process_time() - started)
        return Result(len(sides[0]), seconds[0], seconds[1] - seconds[0])

    return run


def tokenizer_of(sides: Sides) -> tuple[Tokenizer, list[str]]:
    """Return the tokenizer and the words of our WORD on some pairs."""
    with tempfile.TemporaryDirectory() as name:
        pairs = write_pairs(sides, Path(name) / "pairs.parquet")
        model = train(pairs, Path(name) / "word", encoder=EncoderConfig(model="word", dimension=2), config=CONFIG)
        tokenizer = SentenceTransformer(str(model.folder), device="cpu")[0].tokenizer
    vocabulary = tokenizer.get_vocab()
    return tokenizer, sorted(vocabulary, key=vocabulary.__getitem__)


def margin_loss(left: torch.Tensor, right: torch.Tensor, *negatives: torch.Tensor) -> torch.Tensor:
    """Return the loss of ParaNMT-50M, section 4, from vectors of both sides of each pair and of their negatives."""
    own = cosine_similarity(left, right)
    sides = zip((left, right), negatives, strict=True)
    return sum((CONFIG.margin - own + cosine_similarity(side, other)).relu() for side, other in sides).mean()


def plain_loop(
    kind: type[torch.optim.Optimizer], words: list[str], dimension: int, **options: Any
) -> Callable[[Sides], Result]:
    """Return a function that trains by the same algorithm with torch alone: mining in one matrix, autograd, Adam."""
    get = {unit: row for row, unit in enumerate(words)}.get
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
                unit = normalize(encode(both), dim=1)
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
                loss = margin_loss(*(encode(role) for role in roles))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return Result(len(texts[0]), time.process_time() - started)

    return run


def fit(
    model: SentenceTransformer, sides: Sides, batch: int, loss: torch.nn.Module, clock: Callable[[], float]
) -> float:
    """Train a model of sentence-transformers with its trainer for an epoch, and return the time by the given clock."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            num_train_epochs=1,
            per_device_train_batch_size=batch,
            learning_rate=CONFIG.learning_rate,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            use_cpu=model.device.type == "cpu",
            disable_tqdm=True,
        )
        model.model_card_data.generate_widget_examples = False
        data = Dataset.from_dict({"anchor": sides[0], "positive": sides[1]})
        peer = SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=loss)
        peer.remove_callback(PrinterCallback)
        started = clock()
        peer.train()
        return clock() - started


def random_word(tokenizer: Tokenizer, words: list[str], dimension: int) -> SentenceTransformer:
    """Return a WORD with random weights, as a model of sentence-transformers."""
    weight = np.random.default_rng(1).standard_normal((len(words), dimension), np.float32) * np.float32(0.05)
    return static_embedding(tokenizer, words, weight)


def sentence_transformers(
    make: Callable[[], SentenceTransformer], batch: int, loss: Callable[[SentenceTransformer], torch.nn.Module]
) -> Callable[[Sides], Result]:
    """Return a function that trains a model of sentence-transformers with its trainer, and measures it."""

    def run(sides: Sides) -> Result:
        model = make()
        return Result(len(sides[0]), fit(model, sides, batch, loss(model), time.process_time))

    return run


def margins(model: SentenceTransformer) -> torch.nn.Module:
    """Return the loss of sentence-transformers for mega-batches."""
    # The mini-batched version of the loss needs tokens as a padded matrix, which a StaticEmbedding does not have.
    return MegaBatchMarginLoss(model, use_mini_batched_version=False)


def read(path: Path, length: int | None, spread: int, count: int) -> tuple[Sides, float]:
    """Read pairs in random order, and their mean number of words; if a length is given, only sentences near it."""
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
    """Print a Markdown table of the results of each system; ratios are ratios of medians."""
    base = statistics.median(each.pairs / each.seconds for each in next(iter(results.values())))
    print(f"| {title} | pairs | runs | pairs per CPU second: median (min to max) | a second pass | first is |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, own in results.items():
        rates = [result.pairs / result.seconds for result in own]
        further = statistics.median(result.pairs / result.further for result in own)
        ratio = base / statistics.median(rates)
        second = "-" if np.isnan(further) else f"{further:,.0f}"
        figures = f"{spread(rates)} | {second} | {ratio:.{int(ratio < 10)}f} x"
        print(f"| {name} | {own[0].pairs:,} | {len(own)} | {figures} |", flush=True)
    print()


def main() -> None:
    """Parse the command line, measure, print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet with the columns reference and translation")
    parser.add_argument("--lengths", type=int, nargs="+", default=[12, 0], help="words of a sentence; 0: as they are")
    parser.add_argument("--spread", type=int, default=2)
    parser.add_argument("--count", type=int, default=20_000, help="pairs; slow systems get fewer")
    parser.add_argument("--dimension", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=5, help="of the fast systems; the slow ones get two")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the names of what is measured")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    print(f"{heading('torch', 'sentence-transformers', 'numba', 'numpy', 'pyarrow')}; one thread,")
    print(f"{arguments.dimension} dimensions, mega-batches of {CONFIG.mega_pairs:,} pairs\n")
    for length in arguments.lengths:
        sides, mean = read(arguments.pairs, length or None, arguments.spread, arguments.count)
        tokenizer, words = tokenizer_of(sides)
        systems = systems_of(tokenizer, words, arguments.dimension)
        systems = {name: each for name, each in systems.items() if any(part in name for part in arguments.only)}
        results: dict[str, list[Result]] = {name: [] for name in systems}
        for name, (run, _, _) in systems.items():
            if name.startswith("paranmt_hf"):
                # A first run compiles the loops, and does not count.
                run((sides[0][: CONFIG.batch_size], sides[1][: CONFIG.batch_size]))
        for repeat in range(arguments.repeats):
            for name, (run, share, slow) in systems.items():
                if slow and repeat >= 2:
                    continue
                part = int(share * arguments.count)
                results[name].append(run((sides[0][:part], sides[1][:part])))
        report(f"sentences of {mean:.1f} words, {len(words):,} different ones", results)


def systems_of(
    tokenizer: Tokenizer, words: list[str], wide: int
) -> dict[str, tuple[Callable[[Sides], Result], float, bool]]:
    """Return for each system by name: how it is run, its share of the pairs, and whether it is slow."""

    def make() -> SentenceTransformer:
        return random_word(tokenizer, words, wide)

    return {
        **{
            f"paranmt_hf {model.upper()}": (ours(model, wide), 1, False)
            for model in ("word", "trigram", "word,trigram")
        },
        "paranmt_hf LSTM": (ours("lstm", wide), 0.2, True),
        "plain loop, SparseAdam": (plain_loop(torch.optim.SparseAdam, words, wide), 0.4, False),
        "plain loop, dense Adam": (plain_loop(torch.optim.Adam, words, wide), 0.2, True),
        "plain loop, dense Adam, fused": (plain_loop(torch.optim.Adam, words, wide, fused=True), 0.2, True),
        **{
            f"sentence-transformers, MultipleNegativesRanking, batch {batch}": (
                sentence_transformers(make, batch, MultipleNegativesRankingLoss),
                share,
                True,
            )
            for batch, share in ((100, 0.2), (1000, 0.4))
        },
        "sentence-transformers, MegaBatchMargin, batch 4000": (sentence_transformers(make, 4000, margins), 0.4, False),
    }


if __name__ == "__main__":
    main()
