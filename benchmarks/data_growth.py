r"""How does the development score grow with the number of pairs?

Draws, for encoders that `paranmt train` made with one setting and different numbers of pairs, the Pearson on STS 2017
track 5 over the pairs.

    for n in 10000 30000 100000 200000 400000; do
      paranmt train --data pairs/every.parquet --model word --dimension 100 --vectors glove.100d.100k.txt.gz \
        --selection first_pairs=$n --development sts --exclude sts --seed 1 --out growth/$n
    done
    python benchmarks/data_growth.py growth/* --out docs/growth.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib.figure


def main() -> None:
    """Read the records, print a table, draw."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    records = [json.loads((folder / "training.json").read_text(encoding="utf8")) for folder in arguments.models]
    points = sorted((record["pairs"], 100 * record["development"]) for record in records)
    print("| pairs | Pearson x 100 |\n|---:|---:|")
    for pairs, score in points:
        print(f"| {pairs:,} | {score:.1f} |")
    figure = matplotlib.figure.Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(*zip(*points, strict=True), marker="o")
    axes.set_xscale("log")
    axes.set(xlabel="training pairs", ylabel="Pearson x 100, STS 2017 track 5", title="WORD from GloVe 100-d, M = 40")
    axes.grid(alpha=0.3)
    figure.savefig(arguments.out, dpi=120)


if __name__ == "__main__":
    main()
