# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "numpy>=2.0.0",
#     "pyarrow>=24",
# ]
# ///
"""Write training pairs from the outputs of many translation systems and from independent captions of images.

The Parquet file of the systems has the columns `reference` and `translation`, several rows for each reference; that of
the captions has a row for each image, with the columns `caption_1` to `caption_5`. The program writes

- `every.parquet`: every pair of a reference and a translation that differ, shuffled, so that its first N are a sample;
- `varied.parquet`: one drawn translation of each reference, and caption 1 beside caption 2 of each image;
- `captions.parquet`: caption 3 beside caption 4 of each image.

    python dataset_scripts/pairs_from_systems.py SYSTEMS.parquet CAPTIONS.parquet --out pairs
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SIDES = ["reference", "translation"]


def read(path: Path, columns: list[str]) -> pa.Table:
    """Read columns of a Parquet file; errors end the program with a sentence."""
    try:
        return pq.read_table(path, columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise SystemExit(f"{path}: expected Parquet with the columns {', '.join(columns)}; {error}") from None


def one_of_each(pairs: pa.Table, generator: np.random.Generator) -> pa.Table:
    """Draw one row of each reference at random."""
    shuffled = pairs.take(generator.permutation(pairs.num_rows))
    references = shuffled["reference"].combine_chunks().dictionary_encode()
    _, first = np.unique(references.indices.to_numpy(), return_index=True)
    return shuffled.take(first)


def captions(table: pa.Table, left: str, right: str) -> pa.Table:
    """Return pairs of the captions `left` and `right` of each image."""
    return pa.table({"reference": table[left], "translation": table[right]})


def main() -> None:
    """Parse the command line, and write the three files of pairs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("systems", type=Path)
    parser.add_argument("captions", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    generator = np.random.default_rng(arguments.seed)
    pairs = read(arguments.systems, SIDES)
    pairs = pairs.filter(pc.not_equal(pairs["reference"], pairs["translation"]))
    images = read(arguments.captions, [f"caption_{number}" for number in range(1, 5)])
    varied = pa.concat_tables([one_of_each(pairs, generator), captions(images, "caption_1", "caption_2")])
    written = {
        "varied": varied,
        "every": pairs.take(generator.permutation(pairs.num_rows)),
        "captions": captions(images, "caption_3", "caption_4"),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, table in written.items():
        pq.write_table(table, arguments.out / f"{name}.parquet")
        print(f"{arguments.out / name}.parquet: {table.num_rows:,} pairs")


if __name__ == "__main__":
    main()
