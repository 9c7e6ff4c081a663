"""Measure time and memory of making a lexicon of word paraphrases, compared with a plain loop that counts.

Each run is a process of its own on one core, so that the figures are CPU seconds and peak resident memory of the whole
command as the operating system counts them. Several copies of a release have distinct ids:

    python benchmarks/lexicon.py --release FOLDER --copies 1 10 --repeats 3 1
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from commands import copies_of, heading, medians, paranmt, rows_of, spread

# The pairs of words that are counted.
SCORE, LENGTH = 0.35, 30
# This expression cuts nearly the same words as the package.
WORD = re.compile(r"\w+|[^\w\s]")


def plain_loop(rows: Iterable[dict[str, Any]]) -> float:
    """Count the pairs of words with a dictionary, and return the CPU seconds."""
    started = time.process_time()
    across: Counter[tuple[str, str]] = Counter()
    references: Counter[tuple[str, str]] = Counter()
    translations: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row["para_score"] >= SCORE and max(row["reference_length"], row["translation_length"]) <= LENGTH:
            left, right = (set(WORD.findall(row[side].lower())) for side in ("reference", "translation"))
            across.update(product(left, right))
            across.update(product(right, left))
            references.update(product(left, left))
            translations.update(product(right, right))
    return time.process_time() - started


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", type=Path, required=True)
    parser.add_argument("--copies", type=int, nargs="+", default=[1])
    parser.add_argument("--repeats", type=int, nargs="+", default=[5], help="for each number of copies")
    parser.add_argument("--plain", type=int, default=20_000, help="pairs for the plain loop")
    arguments = parser.parse_args()
    print(f"{heading('numpy', 'scipy', 'pyarrow', 'tokenizers')}; one core\n")
    print("| | pairs | runs | pairs per CPU second: median (min to max) | wall seconds | peak resident memory, GB |")
    print("|---|---:|---:|---:|---:|---:|")
    first = pq.ParquetFile(min((arguments.release / "data").glob("*.parquet")))
    batch = next(first.iter_batches(arguments.plain)).to_pylist()
    seconds = [plain_loop(batch) for _ in range(3)]
    print(f"| plain loop | {len(batch):,} | 3 | {len(batch) / statistics.median(seconds):,.0f} | | |", flush=True)
    for copies, repeats in zip(arguments.copies, arguments.repeats, strict=True):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            data = copies_of(arguments.release, copies, folder)
            rows = rows_of(data)
            runs = [
                paranmt("lexicon", "build", data, "--out", folder / f"lexicon{number}") for number in range(repeats)
            ]
        rate = spread([rows / run.cpu for run in runs])
        middle = medians(runs)
        print(f"| paranmt_hf | {rows:,} | {repeats} | {rate} | {middle.wall:.0f} | {middle.memory:.2f} |", flush=True)


if __name__ == "__main__":
    main()
