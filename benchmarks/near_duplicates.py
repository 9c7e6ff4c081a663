"""Measure how fast this package and rensa find near-duplicate sentences, and how many, with brute force as truth.

Both systems get the same distinct sentences and the same sets of word pairs. In both a sentence goes if it is like an
earlier one that stays. They take turns in one process. Our time is what the filter adds to a `select` that drops
nothing, because `select` also reads and writes a release:

    pip install rensa
    python benchmarks/near_duplicates.py --pairs machine-translations.parquet
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# The number of threads must be set before numpy is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from commands import heading, in_turn, spread
from scipy.sparse import csr_array
from tokenizers import Tokenizer
from words import word_tokenizer, words_of

from paranmt_hf import EngineConfig, ReleaseConfig, ReleaseFilter, import_pairs, select
from paranmt_hf.corpus.selection.minhash import bands_and_rows

# The default of `paranmt select --drop-near-duplicates` is measured.
JACCARD = 0.7


def read(path: Path, count: int) -> list[str]:
    """Read distinct translations of references that are spread over the file, so that many are alike."""
    table = pq.read_table(path, columns=["reference", "translation"])
    references = table["reference"].unique()
    chosen = references.take(pa.array(np.arange(0, len(references), max(len(references) * 17 // count, 1))))
    rows = table.filter(pc.is_in(table["reference"], pa.array(chosen.to_pylist())))
    return [" ".join(text.split()) for text in rows["translation"].unique().to_pylist()[:count]]


def word_pairs(tokenizer: Tokenizer, sentence: str) -> list[str]:
    """Return the pairs of words by which this package compares a sentence, computed slowly by their definition."""
    words = words_of(tokenizer, sentence)
    return [f"{left} {right}" for left, right in zip(words, words[1:], strict=False)] or words


def first_stays(alike: Callable[[int], np.ndarray], count: int) -> set[int]:
    """Return the rows that go, because an earlier one that stays is like them; `alike` gives all rows like a row."""
    gone: set[int] = set()
    for row in range(count):
        if any(other < row and other not in gone for other in alike(row).tolist()):
            gone.add(row)
    return gone


def truth_of_sets(shingles: list[list[str]]) -> set[int]:
    """Return the rows that go, by comparing all sets of word pairs with each other."""
    numbers: dict[str, int] = {}
    sets = [sorted({numbers.setdefault(pair, len(numbers)) for pair in own}) for own in shingles]
    sizes = np.array([len(one) for one in sets])
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    ones = csr_array((np.ones(bounds[-1], np.int32), np.concatenate(sets), bounds), shape=(len(sets), len(numbers)))
    shared = csr_array(ones @ ones.T)

    def alike(row: int) -> np.ndarray:
        part = slice(shared.indptr[row], shared.indptr[row + 1])
        others, common = shared.indices[part], shared.data[part]
        return others[common / (sizes[row] + sizes[others] - common) >= JACCARD]

    return first_stays(alike, len(sets))


def release_of(sentences: list[str], folder: Path) -> Path:
    """Make a release whose references are the sentences, and return its folder."""
    path = folder / "pairs.parquet"
    pq.write_table(pa.table({"reference": sentences, "translation": sentences, "score": [0.5] * len(sentences)}), path)
    columns = {"reference": "reference", "translation": "translation", "para_score": "score"}
    settings = {"release": ReleaseConfig(license="unknown"), "engine": EngineConfig(workers=1)}
    return import_pairs([path], folder / "release", columns=columns, **settings).folder


def ours(release: Path, count: int, **settings: Any) -> set[int]:
    """Select from a release, always with a filter that drops nothing; return the rows that were dropped."""
    with tempfile.TemporaryDirectory() as folder:
        selected = select(release, Path(folder) / "selected", ReleaseFilter(min_length=1, **settings)).folder
        return set(range(count)) - set(pq.read_table(selected / "data", columns=["id"])["id"].to_pylist())


def rensa(tokenizer: Tokenizer, sentences: list[str]) -> set[int]:
    """Deduplicate with rensa in memory, with as many permutations and bands as ours; return the rows that go."""
    from rensa import RMinHash, RMinHashDeduplicator

    bands, rows = bands_and_rows(JACCARD)
    found = RMinHashDeduplicator(threshold=JACCARD, num_perm=bands * rows, use_lsh=True, num_bands=bands, seed=1)
    shingles = (word_pairs(tokenizer, sentence) for sentence in sentences)
    signatures = RMinHash.from_token_sets(shingles, num_perm=bands * rows, seed=1)
    return {row for row, signature in enumerate(signatures) if not found.add(str(row), signature)}


def measure(
    systems: dict[str, Callable[[], set[int]]], without: Callable[[], set[int]], repeats: int
) -> tuple[dict[str, list[float]], dict[str, set[int]]]:
    """Run the systems in turn.

    Returns:
        CPU seconds of each repeat by system, ours without those of `without`; and the rows that each system drops.
    """

    def timed(system: Callable[[], set[int]]) -> tuple[float, set[int]]:
        started = time.process_time()
        dropped = system()
        return time.process_time() - started, dropped

    runs = in_turn(
        {name: partial(timed, system) for name, system in {"without": without, **systems}.items()}, repeats + 1
    )
    # The first round compiles loops, so it does not count.
    seconds = {name: [spent for spent, _ in own[1:]] for name, own in runs.items()}
    base = statistics.median(seconds.pop("without"))
    for name in systems:
        if "paranmt_hf" in name:
            seconds[name] = [spent - base for spent in seconds[name]]
    return seconds, {name: runs[name][-1][1] for name in systems}


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet with reference and translation")
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    sentences, tokenizer = read(arguments.pairs, arguments.sentences), word_tokenizer()
    truth = truth_of_sets([word_pairs(tokenizer, sentence) for sentence in sentences])
    with tempfile.TemporaryDirectory() as folder:
        selected = partial(ours, release_of(sentences, Path(folder)), len(sentences))
        near = partial(selected, drop_near_duplicates="reference")
        systems = {
            "word pairs, Jaccard: paranmt_hf": near,
            "word pairs, Jaccard: rensa": partial(rensa, tokenizer, sentences),
        }
        seconds, found = measure(systems, selected, arguments.repeats)
    print(
        f"{heading('numpy', 'rensa')}; one thread; {len(sentences):,} distinct sentences; "
        f"Jaccard at least {JACCARD}; {arguments.repeats} repeats in turn\n"
    )
    print("| | sentences per CPU second: median (min to max) | dropped (brute force) | precision | recall |")
    print("|---|---:|---:|---:|---:|")
    for name in systems:
        rates = spread([len(sentences) / each for each in seconds[name]])
        right = len(found[name] & truth)
        shares = f"{right / max(len(found[name]), 1):.2%} | {right / max(len(truth), 1):.2%}"
        print(f"| {name} | {rates} | {len(found[name]):,} ({len(truth):,}) | {shares} |")


if __name__ == "__main__":
    main()
