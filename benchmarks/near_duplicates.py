"""How fast near-duplicate sentences are found, and how many of them: ours, rensa, semhash, and brute force as truth.

All systems get the same distinct sentences, and those of one kind the same sets of word pairs or the same vectors. In
each a sentence goes if it is like an earlier one that stays. Takes turns in one process:

    pip install semhash rensa
    python benchmarks/near_duplicates.py --pairs machine-translations.parquet
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path

# One thread, before numpy is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy.sparse import csr_array

from paranmt_hf.corpus.selection.near_duplicates import (
    BAND_ROWS,
    BANDS,
    COSINE,
    JACCARD,
    Likeness,
    NearDuplicateSearch,
    unit_vectors,
)
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.text.definitions import words
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.progress import Progress

LIKENESS = Likeness()


def read(path: Path, count: int) -> list[str]:
    """Read distinct translations of references that are spread over the file, so that many are alike."""
    table = pq.read_table(path, columns=["reference", "translation"])
    references = table["reference"].unique()
    chosen = references.take(pa.array(np.arange(0, len(references), max(len(references) * 17 // count, 1))))
    rows = table.filter(pc.is_in(table["reference"], pa.array(chosen.to_pylist())))
    return rows["translation"].unique().to_pylist()[:count]


def word_pairs(sentence: str) -> list[str]:
    """The shingles of ours, by definition and slowly."""
    tokens = words(sentence)
    return [f"{left} {right}" for left, right in zip(tokens, tokens[1:], strict=False)] or tokens


def first_stays(alike: Callable[[int], np.ndarray], count: int) -> set[int]:
    """Which go, one after the other: `alike` gives all that a sentence is like."""
    gone: set[int] = set()
    for row in range(count):
        if any(other < row and other not in gone for other in alike(row).tolist()):
            gone.add(row)
    return gone


def truth_of_sets(sentences: list[str]) -> set[int]:
    """Compare all sets with all."""
    numbers: dict[str, int] = {}
    sets = [sorted({numbers.setdefault(pair, len(numbers)) for pair in word_pairs(text)}) for text in sentences]
    sizes = np.array([len(one) for one in sets])
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    ones = csr_array((np.ones(bounds[-1], np.int32), np.concatenate(sets), bounds), shape=(len(sets), len(numbers)))
    shared = csr_array(ones @ ones.T)

    def alike(row: int) -> np.ndarray:
        part = slice(shared.indptr[row], shared.indptr[row + 1])
        others, common = shared.indices[part], shared.data[part]
        return others[common / (sizes[row] + sizes[others] - common) >= JACCARD]

    return first_stays(alike, len(sets))


def truth_of_vectors(sentences: list[str], encoder: Encoder) -> set[int]:
    """Compare all vectors with all."""
    vectors = unit_vectors(np.asarray(encoder.encode(sentences), np.float32))
    return first_stays(lambda row: np.flatnonzero(vectors[:row] @ vectors[row] >= COSINE), len(vectors))


def ours(sentences: list[str], likeness: Likeness, encoder: Encoder | None = None) -> set[int]:
    """Search with `NearDuplicateSearch`, whose files lie in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        search = NearDuplicateSearch(Path(folder), likeness, encoder=encoder)
        search.add([pa.array(sentences)])
        return set(np.flatnonzero(search.repeats(Progress("compare")) >= 0).tolist())


def rensa(sentences: list[str]) -> set[int]:
    """Deduplicate by rensa in memory, with as many permutations and bands as ours."""
    from rensa import RMinHash, RMinHashDeduplicator

    count = BANDS * BAND_ROWS
    found = RMinHashDeduplicator(threshold=JACCARD, num_perm=count, use_lsh=True, num_bands=BANDS, seed=1)
    signatures = RMinHash.from_token_sets(map(word_pairs, sentences), num_perm=count, seed=1)
    return {row for row, signature in enumerate(signatures) if not found.add(str(row), signature)}


def semhash(sentences: list[str], encoder: Encoder) -> set[int]:
    """Deduplicate by semhash, with its own index over vectors of the same encoder."""
    from semhash import SemHash

    class Model:
        def encode(self, inputs: list[str], **_: object) -> np.ndarray:
            return np.asarray(encoder.encode(list(inputs)), np.float32)

    row_of = {sentence: row for row, sentence in enumerate(sentences)}
    result = SemHash.from_records(sentences, model=Model()).self_deduplicate(threshold=COSINE)
    return set(row_of.values()) - {row_of[sentence] for sentence in result.selected}


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet with reference and translation")
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    sentences, encoder = read(arguments.pairs, arguments.sentences), NamedEncoder().load()
    of_sets, of_vectors = truth_of_sets(sentences), truth_of_vectors(sentences, encoder)
    exhaustive = Likeness(exhaustive=True)
    systems: dict[str, tuple[Callable[[], set[int]], set[int]]] = {
        "word pairs, Jaccard: paranmt_hf": (lambda: ours(sentences, LIKENESS), of_sets),
        "word pairs, Jaccard: rensa": (lambda: rensa(sentences), of_sets),
        "cosine, all with all: paranmt_hf": (lambda: ours(sentences, exhaustive, encoder), of_vectors),
        "cosine of MinHash's candidates: paranmt_hf": (lambda: ours(sentences, LIKENESS, encoder), of_vectors),
        "cosine: semhash": (lambda: semhash(sentences, encoder), of_vectors),
    }
    rates: dict[str, list[float]] = {name: [] for name in systems}
    found: dict[str, set[int]] = {}
    for _ in range(arguments.repeats):
        for name, (system, _) in systems.items():
            started = time.process_time()
            found[name] = system()
            rates[name].append(len(sentences) / (time.process_time() - started))
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "rensa", "semhash", "usearch"))
    print(
        f"{date.today()}, {platform.machine()}, one thread, Python {platform.python_version()}, {packages}; "
        f"{len(sentences):,} distinct sentences; Jaccard at least {JACCARD}, cosine at least "
        f"{COSINE}; {arguments.repeats} repeats in turn\n"
    )
    print("| | sentences per CPU second: median (min to max) | dropped (brute force) | precision | recall |")
    print("|---|---:|---:|---:|---:|")
    for name, (_, truth) in systems.items():
        right, values = len(found[name] & truth), rates[name]
        print(
            f"| {name} | {statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f}) | "
            f"{len(found[name]):,} ({len(truth):,}) | {right / max(len(found[name]), 1):.2%} | "
            f"{right / max(len(truth), 1):.2%} |"
        )


if __name__ == "__main__":
    main()
