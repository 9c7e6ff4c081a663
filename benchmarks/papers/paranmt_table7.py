"""Table 7 of ParaNMT-50M: the negatives that sentences get in mega-batches of several sizes.

A larger mega-batch holds the smaller ones, so its negative is at least as similar.

    python benchmarks/papers/paranmt_table7.py "a man is playing a guitar ." --data paranmt50m --mega-batches 1 20 40
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import datasets
import numpy as np

import paranmt_hf


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the negatives below each sentence, with the size M of their mega-batches and their cosines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sentences", nargs="+")
    parser.add_argument("--data", required=True, help="a corpus, or another dataset that `load_dataset` reads")
    parser.add_argument("--encoder", default="small", help="the encoder that mines")
    parser.add_argument("--mega-batches", nargs="+", type=int, default=[1, 20, 40], help="values of M")
    parser.add_argument("--batch-size", type=int, default=100, help="pairs of a mini-batch")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    encoder = paranmt_hf.load(options.encoder)
    corpus = datasets.load_dataset(options.data, split="train").shuffle(seed=options.seed)
    corpus = corpus.select(range(min(len(corpus), max(options.mega_batches) * options.batch_size)))
    # Each sentence, paired with itself, is put in front of the pairs of a mega-batch.
    sentences = options.sentences
    pairs = {side: [*sentences, *corpus[side]] for side in ("reference", "translation")}
    miner = paranmt_hf.MegaBatchMiner(encoder, datasets.Dataset.from_dict(pairs))
    found: dict[str, list[str]] = {sentence: [] for sentence in sentences}
    for size in options.mega_batches:
        count = min(len(sentences) + size * options.batch_size, len(miner.dataset))
        mined = miner.mine(np.arange(count), np.random.default_rng(options.seed)).tolist()
        for row, sentence in enumerate(sentences):
            if row in mined:
                negative = miner.dataset[row]["reference_negative"]
                cosine = float(encoder.similarity(encoder.encode(sentence), encoder.encode(negative)))
                found[sentence].append(f"  M = {size:<4} {cosine:5.2f}  {negative}")
    for sentence, lines in found.items():
        print(sentence, *(lines or ["  no negative"]), sep="\n")


if __name__ == "__main__":
    main()
