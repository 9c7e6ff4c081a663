"""Measure how fast `paranmt import` makes a release of translated pairs: reading, normalising, scoring, writing.

Each run is a process of its own, pinned to one core where the system can do that, so that the figures are CPU seconds
and peak resident memory of the whole command as the operating system counts them. Without `--vectors` the scorer is
the small encoder of the package. With `--before`, a folder with another version of this project, both take turns, and
the Parquet files of their releases are compared:

    python benchmarks/corpus_import.py --pairs machine-translations.parquet --vectors glove.100d.txt.gz --copies 1 10
    python benchmarks/corpus_import.py --pairs machine-translations.parquet --before ../before
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from commands import PROJECT, Run, heading, in_turn, medians, paranmt, spread


def run(files: list[Path], vectors: Path | None, out: Path, project: Path) -> Run:
    """Run and measure one import, with the package of the folder `project`."""
    shutil.rmtree(out, ignore_errors=True)
    scorer = ["--scorer", vectors] if vectors else []
    settings = ["--license", "unknown", "--engine", "workers=1"]
    return paranmt("import", *files, "--out", out, *settings, *scorer, project=project)


def contents(release: Path) -> dict[Path, bytes]:
    """Return the content of each Parquet file of a release by its relative path."""
    return {path.relative_to(release): path.read_bytes() for path in sorted(release.rglob("*.parquet"))}


def measure(arguments: argparse.Namespace, copies: int, folder: Path) -> dict[str, list[Run]]:
    """Import a number of copies of the pairs by each version in turn, and return the runs of each."""
    projects = {"before": arguments.before.resolve()} if arguments.before else {}
    projects["now"] = PROJECT
    files = [arguments.pairs] * copies
    systems = {
        name: partial(run, files, arguments.vectors, folder / name, project) for name, project in projects.items()
    }
    runs = in_turn(systems, arguments.repeats)
    if len(projects) > 1 and contents(folder / "before") != contents(folder / "now"):
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
    print(f"{heading('numpy', 'pyarrow', 'torch', 'tokenizers')}; one core\n")
    print("| pairs | | CPU seconds: median (min to max) | pairs per CPU second | wall seconds | memory, GB | ratio |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for copies in arguments.copies:
            runs = measure(arguments, copies, Path(folder))
            slowest = max(medians(found).cpu for found in runs.values())
            for name, found in runs.items():
                middle, seconds = medians(found), spread([each.cpu for each in found], ".1f")
                figures = f"{seconds} | {rows * copies / middle.cpu:,.0f} | {middle.wall:.0f} | {middle.memory:.2f}"
                print(f"| {rows * copies:,} | {name} | {figures} | {slowest / middle.cpu:.2f} |", flush=True)


if __name__ == "__main__":
    main()
