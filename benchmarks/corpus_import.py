"""How fast pairs that are translated already become a release: read, normalise, score, write.

Each run is a process of its own, pinned to one core by `taskset` where that is there, so that the figures are CPU
seconds and peak resident memory of the whole command as the operating system counts them. Without `--vectors` the
scorer is the small encoder of the package. With `--before`, a folder with another version of this project, both take
turns, and the Parquet files of their releases are compared:

    python benchmarks/corpus_import.py --pairs machine-translations.parquet --vectors glove.100d.txt.gz --copies 1 10
    python benchmarks/corpus_import.py --pairs machine-translations.parquet --before ../before
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

from paranmt_hf.util.files import checksum

HERE = Path(__file__).parent.parent


def run(files: list[Path], vectors: Path | None, out: Path, project: Path) -> tuple[float, float, float]:
    """Run one import.

    Returns:
        CPU seconds, wall seconds, peak resident memory in GB.
    """
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "paranmt_hf.cli", "import", *map(str, files)]
    command += ["--out", str(out), "--license", "unknown", "--engine", "workers=1"]
    command += ["--vectors", str(vectors)] if vectors else []
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        # The folder in which Python starts comes before all others in which it looks for the package.
        os.chdir(project)
        with Path(os.devnull).open("w") as null:
            os.dup2(null.fileno(), 1)
            os.dup2(null.fileno(), 2)
        os.execv(command[0], command)
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"failed with status {status}: {' '.join(command)}")
    assert isinstance(usage, resource.struct_rusage)
    return usage.ru_utime + usage.ru_stime, time.monotonic() - started, usage.ru_maxrss / 1e6


def digests(release: Path) -> dict[str, str]:
    """SHA-256 of each Parquet file of a release."""
    return {str(path.relative_to(release)): checksum(path) for path in sorted(release.rglob("*.parquet"))}


def measure(arguments: argparse.Namespace, copies: int, folder: Path) -> dict[str, list[tuple[float, float, float]]]:
    """Run all versions in turn: CPU seconds, wall seconds and memory of each run."""
    projects = {"before": arguments.before.resolve()} if arguments.before else {}
    projects["now"] = HERE
    files = [path.resolve() for path in [arguments.pairs] * copies]
    vectors = arguments.vectors.resolve() if arguments.vectors else None
    runs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in projects}
    for _ in range(arguments.repeats):
        for name, project in projects.items():
            runs[name].append(run(files, vectors, folder / name, project))
    if len(projects) > 1 and digests(folder / "before") != digests(folder / "now"):
        raise SystemExit("the two versions made different releases")
    return runs


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet with reference and translation")
    parser.add_argument("--vectors", type=Path, help="word vectors to score with, in place of the package's encoder")
    parser.add_argument("--before", type=Path, help="folder of another version of this project")
    parser.add_argument("--copies", type=int, nargs="+", default=[1])
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rows = pq.read_metadata(arguments.pairs).num_rows
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "pyarrow", "torch", "tokenizers"))
    print(f"{date.today()}, {platform.machine()}, one core, Python {platform.python_version()}, {packages}\n")
    print("| pairs | | CPU seconds: median (min to max) | pairs per CPU second | wall seconds | memory, GB | ratio |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for copies in arguments.copies:
            runs = measure(arguments, copies, Path(folder))
            slowest = max(statistics.median(cpu for cpu, _, _ in found) for found in runs.values())
            for name, found in runs.items():
                seconds = sorted(cpu for cpu, _, _ in found)
                cpu, wall, memory = (statistics.median(column) for column in zip(*found, strict=True))
                figures = (
                    f"{cpu:.1f} ({seconds[0]:.1f} to {seconds[-1]:.1f}) | {rows * copies / cpu:,.0f} | {wall:.0f}"
                )
                print(f"| {rows * copies:,} | {name} | {figures} | {memory:.2f} | {slowest / cpu:.2f} |", flush=True)


if __name__ == "__main__":
    main()
