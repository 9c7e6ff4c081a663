"""How fast a lexicon of word paraphrases is made, and what memory it takes; a plain loop counts beside it.

Each run is a process of its own on one core, so that the figures are CPU seconds and peak resident memory of the whole
command as the operating system counts them. Several copies of a release have distinct ids:

    python benchmarks/lexicon.py --release FOLDER --copies 1 10 --repeats 3 1
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import date
from importlib.metadata import version
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.text.definitions import words

COLUMNS = ["id", "reference", "translation", "para_score", "reference_length", "translation_length"]


def copy_release(release: Path, folder: Path, copies: int) -> int:
    """Write copies of a release's rows, each with ids of its own, a row group at a time; returns the rows."""
    rows = 0
    for copy in range(copies):
        for file in sorted((release / "data").glob("*.parquet")):
            with pq.ParquetFile(file) as source:
                schema = pa.schema([source.schema_arrow.field(name) for name in COLUMNS])
                with pq.ParquetWriter(folder / f"{copy:02d}-{file.name}", schema) as writer:
                    for group in range(source.num_row_groups):
                        table = source.read_row_group(group, columns=COLUMNS)
                        ids = pc.add(table["id"], copy * 10**9)
                        writer.write_table(table.set_column(0, schema.field("id"), ids))
                        rows += table.num_rows
    return rows


def run(data: Path, out: Path) -> tuple[float, float, float]:
    """Make a lexicon in a process of its own.

    Returns:
        CPU seconds, wall seconds, peak resident memory in GB.
    """
    command = [sys.executable, "-m", "paranmt_hf.cli", "lexicon", "build", str(data), "--out", str(out)]
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        with Path(os.devnull).open("w") as null:
            os.dup2(null.fileno(), 1)
            os.dup2(null.fileno(), 2)
        os.execv(command[0], command)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"failed with status {status}: {' '.join(command)}")
    assert isinstance(usage, resource.struct_rusage)
    return usage.ru_utime + usage.ru_stime, time.monotonic() - started, usage.ru_maxrss / 1e6


def plain_loop(rows: Iterator[dict[str, str | float | int]]) -> float:
    """Count the same word pairs with a dictionary; returns the CPU seconds."""
    started = time.process_time()
    across: Counter[tuple[str, str]] = Counter()
    references: Counter[tuple[str, str]] = Counter()
    translations: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row["para_score"] >= 0.35 and max(row["reference_length"], row["translation_length"]) <= 30:
            left, right = set(words(row["reference"])), set(words(row["translation"]))
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
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "pyarrow", "tokenizers"))
    print(f"{date.today()}, {platform.machine()}, one core, Python {platform.python_version()}, {packages}\n")
    print("| | pairs | runs | pairs per CPU second: median (min to max) | wall seconds | peak resident memory, GB |")
    print("|---|---:|---:|---:|---:|---:|")
    first = pq.ParquetFile(sorted((arguments.release / "data").glob("*.parquet"))[0])
    batch = next(first.iter_batches(arguments.plain, columns=COLUMNS)).to_pylist()
    seconds = [plain_loop(iter(batch)) for _ in range(3)]
    print(f"| plain loop | {len(batch):,} | 3 | {len(batch) / statistics.median(seconds):,.0f} | | |", flush=True)
    for copies, repeats in zip(arguments.copies, arguments.repeats, strict=True):
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "data"
            data.mkdir()
            rows = copy_release(arguments.release, data, copies)
            runs = [run(data, Path(folder) / f"lexicon{number}") for number in range(repeats)]
        rates = sorted(rows / cpu for cpu, _, _ in runs)
        wall, memory = (statistics.median(column) for column in list(zip(*runs, strict=True))[1:])
        rate = f"{statistics.median(rates):,.0f} ({rates[0]:,.0f} to {rates[-1]:,.0f})"
        print(f"| paranmt_hf | {rows:,} | {repeats} | {rate} | {wall:.0f} | {memory:.2f} |", flush=True)


if __name__ == "__main__":
    main()
