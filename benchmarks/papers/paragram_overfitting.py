"""The measure of overfitting of PARAGRAM-PHRASE (arXiv:1511.08198), section 5.

It is the mean of 2 cos(g1, g2) - cos(n1, g1) - cos(n2, g2) over pairs (g1, g2) and their negatives n1 and n2, the most
similar sentences of a pool of pairs, in [-4, 4]. A model that sets its training pairs apart by much more than pairs
that it has not seen has overfitted. All pairs of the development set count, so give pairs that mean the same.

    python benchmarks/papers/paragram_overfitting.py models/word --data pairs.parquet --development other.parquet
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import datasets
import numpy as np

import paranmt_hf

SIDES = ("reference", "translation")


def mean_margin(encoder: Any, pairs: datasets.Dataset, pool: int, seed: int) -> float:  # noqa: ANN401
    """Return the mean margin of pairs and their negatives in random pools, over the pairs that have negatives."""
    miner = paranmt_hf.MegaBatchMiner(encoder, pairs)
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(pairs))
    margins = []
    for start in range(0, len(order), pool):
        rows = miner.mine(order[start : start + pool], generator)
        if len(rows):
            mined = [miner.dataset[row] for row in rows.tolist()]
            columns = {name: [row[name] for row in mined] for name in mined[0]}
            vectors = {name: encoder.encode(texts, normalize_embeddings=True) for name, texts in columns.items()}
            margin = 2 * (vectors[SIDES[0]] * vectors[SIDES[1]]).sum(axis=1)
            for side in SIDES:
                margin -= (vectors[side] * vectors[f"{side}_negative"]).sum(axis=1)
            margins.append(margin)
    return float(np.concatenate(margins).mean())


def read(path: str, count: int, seed: int) -> datasets.Dataset:
    """Draw `count` pairs at random from a Parquet file or a corpus."""
    if path.endswith(".parquet"):
        pairs = datasets.load_dataset("parquet", data_files=path, split="train")
    else:
        pairs = datasets.load_dataset(path, split="train")
    return pairs.shuffle(seed=seed).select(range(min(count, len(pairs))))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--data", required=True, help="a corpus or a Parquet file that they were trained on")
    parser.add_argument("--development", required=True, help="the same of other pairs")
    parser.add_argument("--pool", type=int, default=100, help="pairs among which negatives are searched")
    parser.add_argument("--pairs", type=int, default=10_000, help="pairs that are measured, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    sets = [read(path, options.pairs, options.seed) for path in (options.data, options.development)]
    print("train  development  difference  model")
    for name in options.models:
        encoder = paranmt_hf.load(name)
        train, other = (mean_margin(encoder, pairs, options.pool, options.seed) for pairs in sets)
        print(f"{train:5.3f}  {other:11.3f}  {train - other:10.3f}  {name}")


if __name__ == "__main__":
    main()
