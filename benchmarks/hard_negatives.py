"""Measure what hard negatives add to in-batch negatives, with `MultipleNegativesRankingLoss` on a `StaticEmbedding`.

Both rows have the same pairs (those with negatives), tokenizer, initial vectors, seed, batches and learning rate. The
figure is Pearson's r x 100 on the papers' development set, STS 2017 track 5. Pairs with sentences of the STS sets are
left out. Compare at the rate that is best for in-batch negatives alone: at lower rates hard negatives gain more.

    python benchmarks/hard_negatives.py --pairs machine-translations.parquet --sts STS --count 50000
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from commands import development_pairs, heading

CAPTIONS = [f"caption_{number}" for number in range(1, 6)]


def read(path: Path, count: int, folder: Path) -> Path:
    """Write random pairs of a file, or those of two captions of an image, as reference and translation."""
    table = pq.read_table(path)
    if "reference" in table.column_names:
        table = table.select(["reference", "translation"])
    else:
        pairs = [table.select(list(two)) for two in itertools.combinations(CAPTIONS, 2)]
        table = pa.concat_tables([each.rename_columns(["reference", "translation"]) for each in pairs])
    chosen = np.sort(np.random.default_rng(1).permutation(table.num_rows)[:count])
    out = folder / "pairs.parquet"
    pq.write_table(table.take(pa.array(chosen)), out)
    return out


def trained(dataset: object, given: argparse.Namespace, rate: float, seed: int, folder: Path) -> tuple[float, float]:
    """Train a new encoder on the columns of a dataset; return its Pearson's r x 100, and seconds."""
    import torch
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    torch.manual_seed(seed)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    if given.vectors is None:
        embedding = StaticEmbedding(tokenizer, embedding_dim=given.dimension)
    else:
        embedding = StaticEmbedding(tokenizer, embedding_weights=initial(tokenizer.get_vocab(), given.vectors))
    model = SentenceTransformer(modules=[embedding], device="cpu")
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder / "trainer"),
        num_train_epochs=given.epochs,
        per_device_train_batch_size=given.batch_size,
        learning_rate=rate,
        warmup_steps=0.1,
        seed=seed,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        logging_strategy="no",
        batch_sampler="no_duplicates",
    )
    started = time.monotonic()
    loss = MultipleNegativesRankingLoss(model)
    SentenceTransformerTrainer(model, arguments, train_dataset=dataset, loss=loss).train()  # type: ignore[arg-type]
    seconds = time.monotonic() - started
    left, right, gold = development_pairs(given.sts)
    vectors = [model.encode(side, normalize_embeddings=True, show_progress_bar=False) for side in (left, right)]
    return 100 * float(np.corrcoef((vectors[0] * vectors[1]).sum(axis=1), gold)[0, 1]), seconds


def initial(vocabulary: dict[str, int], path: Path) -> np.ndarray:
    """Read the vectors of words, with small random ones for unknown words."""
    with gzip.open(path, "rt", encoding="utf8") as file:
        found = {word: rest.split() for word, _, rest in (line.partition(" ") for line in file) if word in vocabulary}
    width = len(next(iter(found.values())))
    weights = np.random.default_rng(0).normal(0, 0.05, (len(vocabulary), width)).astype(np.float32)
    for word, numbers in found.items():
        weights[vocabulary[word]] = np.array(numbers, np.float32)
    return weights


def write_tokenizer(dataset: object, size: int, folder: Path) -> None:
    """Write a tokenizer whose vocabulary are the `size` most frequent words of both sides, in lower case."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    text = (sentence for side in ("anchor", "positive") for sentence in dataset[side])  # type: ignore[index]
    trainer = trainers.WordLevelTrainer(vocab_size=size, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(text, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))


def main() -> None:
    """Parse the command line, train with and without negatives, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="pairs, or Multi30k's captions")
    parser.add_argument("--sts", type=Path, required=True, help="folder with the STS sets")
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--encoder", default="small", help="finds the negatives")
    parser.add_argument("--numbers", type=int, nargs="+", default=[1], help="negatives of a pair")
    parser.add_argument("--first-rank", type=int, default=1)
    parser.add_argument("--last-rank", type=int, default=50)
    parser.add_argument("--relative-margins", type=float, nargs="+", default=[0.05])
    parser.add_argument("--sampling", choices=["top", "random"], default="top")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.1])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--vectors", type=Path, help="word vectors to start from (.txt.gz), else random ones")
    parser.add_argument("--dimension", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=3)
    given = parser.parse_args()
    from paranmt_hf import HardNegativesConfig, hard_negatives

    print(heading("torch", "sentence-transformers", "numpy"))
    print("\n| negatives | relative margin | rate | seed | in-batch alone | with hard negatives | gain | seconds |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs, most = read(given.pairs, given.count, folder), max(given.numbers)
        for margin in given.relative_margins:
            config = HardNegativesConfig(
                number=most,
                first_rank=given.first_rank,
                last_rank=given.last_rank,
                relative_margin=margin,
                sampling=given.sampling,
            )
            made = hard_negatives(
                pairs, folder / f"negatives-{margin}", encoder=given.encoder, config=config, exclude=given.sts
            )
            dataset = made.load()
            write_tokenizer(dataset, given.vocabulary, folder)
            alone = dataset.select_columns(["anchor", "positive"])
            for rate, seed in itertools.product(given.rates, given.seeds):
                base, first = trained(alone, given, rate, seed, folder)
                for number in given.numbers:
                    columns = ["anchor", "positive", *(f"negative_{place}" for place in range(1, number + 1))]
                    score, seconds = trained(dataset.select_columns(columns), given, rate, seed, folder)
                    cells = [f"{base:.2f}", f"{score:.2f}", f"{score - base:+.2f}", f"{first:.0f} and {seconds:.0f}"]
                    print(f"| {number} | {margin:g} | {rate:g} | {seed} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
