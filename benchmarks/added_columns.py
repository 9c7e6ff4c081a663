"""Speed of the columns that a release can get.

Each run is `paranmt score --add` of a release of the pairs, as a process of its own on one core:

    python benchmarks/added_columns.py --pairs machine-translations.parquet
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from commands import Run, heading, paranmt, rows_of, spread

MISMATCHES = ("number_mismatch", "negation_mismatch", "name_mismatch", "address_mismatch")


def run(release: Path, columns: tuple[str, ...]) -> tuple[Run, str]:
    """Add columns to a copy of a release; return the run, and as text the share of pairs with a mismatch in each."""
    copy = release.with_name("copy")
    shutil.copytree(release, copy)
    took = paranmt("score", copy, "--add", *columns, "--engine", "workers=1")
    table = pq.read_table(copy / "data", columns=list(columns))
    shutil.rmtree(copy)
    found = [pc.mean(pc.greater(table[name], 0).cast("int8")).as_py() for name in columns]
    return took, f"in {', '.join(f'{share:.2%}' for share in found)} of the pairs"


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet file with reference and translation")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--alone", nargs="*", default=[], help="columns to measure alone too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        release = Path(folder) / "release"
        paranmt("import", options.pairs, "--out", release, "--license", "unknown", "--engine", "workers=1")
        rows = rows_of(release)
        print(f"{rows:,} pairs, {heading('numpy', 'pyarrow')}\n")
        print("| columns | runs | pairs per CPU second: median (min to max) | memory, GB | found |")
        print("|---|---:|---:|---:|---|")
        columns = [MISMATCHES, *((name,) for name in options.alone)]
        for names in columns:
            runs = [run(release, names) for _ in range(options.repeats)]
            rates = spread([rows / took.cpu for took, _ in runs])
            memory = max(took.memory for took, _ in runs)
            print(f"| {' '.join(names)} | {len(runs)} | {rates} | {memory:.2f} | {runs[0][1]} |", flush=True)


if __name__ == "__main__":
    main()
