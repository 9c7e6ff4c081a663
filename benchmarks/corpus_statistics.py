"""Measure the time and memory of `paranmt stats` on a release, and on several copies of it with distinct ids.

Each run is a process of its own, pinned to one core where the system can do that, so that the figures are CPU seconds
and peak resident memory of the whole command as the operating system counts them:

    python benchmarks/corpus_statistics.py --release paranmt50m --copies 1 10
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from commands import copies_of, heading, medians, paranmt, rows_of, spread


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", type=Path, required=True)
    parser.add_argument("--copies", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--sample", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--idf-repeats", type=int, default=1, help="where every sentence is cut into tokens")
    arguments = parser.parse_args()
    print(f"{heading('numpy', 'pyarrow', 'tokenizers')}; one core\n")
    print("| command | rows | runs | rows per CPU second: median (min to max) | wall seconds | peak memory, GB |")
    print("|---|---:|---:|---:|---:|---:|")
    rows = rows_of(arguments.release)
    with tempfile.TemporaryDirectory() as folder:
        releases = {copies: copies_of(arguments.release, copies, Path(folder)) for copies in arguments.copies}
        for label in ("stats", "stats --by-origin", "stats --idf-text (the same rows)"):
            for copies, release in releases.items():
                command: list[object] = ["stats", release, "--sample", arguments.sample]
                command += ["--by-origin"] if "origin" in label else []
                command += ["--idf-text", release] if "idf" in label else []
                runs = [
                    paranmt(*command) for _ in range(arguments.idf_repeats if "idf" in label else arguments.repeats)
                ]
                rate = spread([copies * rows / run.cpu for run in runs])
                middle = medians(runs)
                figures = f"{len(runs)} | {rate} | {middle.wall:.0f} | {middle.memory:.2f}"
                print(f"| {label} | {copies * rows:,} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
