"""How fast pairs that are translated already become a release: read, normalise, score, write.

Each run is a process of its own, pinned to one core by `taskset` where that is there, so that the figures are CPU
seconds and peak resident memory of the whole command as the operating system counts them:

    python benchmarks/corpus_import.py --pairs machine-translations.parquet --vectors glove.100d.txt.gz --copies 1 10
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import statistics
import sys
import tempfile
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet as pq


def run(files: list[Path], vectors: Path, out: Path) -> tuple[float, float, float]:
    """Run one import.

    Returns:
        CPU seconds, wall seconds, peak resident memory in GB.
    """
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "paranmt_hf.cli", "import", *map(str, files)]
    command += ["--out", str(out), "--vectors", str(vectors), "--license", "unknown", "--workers", "1"]
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


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet with reference and translation")
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--copies", type=int, nargs="+", default=[1])
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rows = pq.read_metadata(arguments.pairs).num_rows
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "pyarrow", "torch", "tokenizers"))
    print(f"{date.today()}, {platform.machine()}, one core, Python {platform.python_version()}, {packages}\n")
    print("| pairs | pairs per CPU second: median (min to max) | wall seconds | peak resident memory, GB |")
    print("|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for copies in arguments.copies:
            runs = [
                run([arguments.pairs] * copies, arguments.vectors, Path(folder) / "out")
                for _ in range(arguments.repeats)
            ]
            rates = sorted(rows * copies / cpu for cpu, _, _ in runs)
            wall, memory = (statistics.median(column) for column in list(zip(*runs, strict=True))[1:])
            rate = f"{statistics.median(rates):,.0f} ({rates[0]:,.0f} to {rates[-1]:,.0f})"
            print(f"| {rows * copies:,} | {rate} | {wall:.0f} | {memory:.2f} |", flush=True)


if __name__ == "__main__":
    main()
