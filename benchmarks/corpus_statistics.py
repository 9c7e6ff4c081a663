"""How fast and in how much memory `paranmt stats` measures a release, and several copies of it with ids of their own.

Each run is a process of its own, pinned to one core where the system can do that, so that the figures are CPU seconds
and peak resident memory of the whole command as the operating system counts them:

    python benchmarks/corpus_statistics.py --release paranmt50m --copies 1 10
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
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def copy_release(release: Path, copies: int, folder: Path) -> Path:
    """Write a release of several copies of another, whose ids are all different.

    Returns:
        Its folder.
    """
    sources = sorted((release / "data").glob("*.parquet"))
    data = folder / f"copies-{copies}" / "data"
    data.mkdir(parents=True)
    largest = max(pc.max(pq.read_table(path, columns=["id"])["id"]).as_py() for path in sources)
    total = copies * len(sources)
    for number in range(total):
        with pq.ParquetFile(sources[number % len(sources)]) as file:
            target = data / f"train-{number:05d}-of-{total:05d}.parquet"
            with pq.ParquetWriter(target, file.schema_arrow, compression="zstd") as writer:
                for group in range(file.num_row_groups):
                    table = file.read_row_group(group)
                    ids = pc.add(table["id"], pa.scalar(number // len(sources) * (largest + 1)))
                    writer.write_table(table.set_column(0, table.schema.field("id"), ids))
    return data.parent


def run(arguments: Sequence[str]) -> tuple[float, float, float]:
    """Run one command.

    Returns:
        CPU seconds, wall seconds, peak resident memory in GB.
    """
    command = [sys.executable, "-m", "paranmt_hf.cli", "stats", *arguments]
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        if hasattr(os, "sched_setaffinity"):
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


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", type=Path, required=True)
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--sample", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--idf-repeats", type=int, default=1, help="where every sentence is cut into tokens")
    arguments = parser.parse_args()
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "pyarrow", "tokenizers"))
    print(f"{date.today()}, {platform.machine()}, one core, Python {platform.python_version()}, {packages}\n")
    print("| command | rows | runs | rows per CPU second: median (min to max) | wall seconds | peak memory, GB |")
    print("|---|---:|---:|---:|---:|---:|")
    rows = sum(pq.read_metadata(path).num_rows for path in (arguments.release / "data").iterdir())
    with tempfile.TemporaryDirectory() as folder:
        releases = {copies: copy_release(arguments.release, copies, Path(folder)) for copies in arguments.copies}
        for label in ("stats", "stats --by origin", "stats --idf-text (the same rows)"):
            for copies, release in releases.items():
                command = [str(release), "--sample", str(arguments.sample)]
                command += ["--by", "origin"] if "origin" in label else []
                command += ["--idf-text", str(release)] if "idf" in label else []
                repeats = arguments.idf_repeats if "idf" in label else arguments.repeats
                runs = [run(command) for _ in range(repeats)]
                rates = sorted(copies * rows / cpu for cpu, _, _ in runs)
                wall, memory = (statistics.median(column) for column in list(zip(*runs, strict=True))[1:])
                rate = f"{statistics.median(rates):,.0f} ({rates[0]:,.0f} to {rates[-1]:,.0f})"
                print(f"| {label} | {copies * rows:,} | {repeats} | {rate} | {wall:.0f} | {memory:.2f} |", flush=True)


if __name__ == "__main__":
    main()
