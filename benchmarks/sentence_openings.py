"""Collect the words that usually begin sentences, for `paranmt_hf/assets/meaning/openings.txt`.

A word is one if it begins a sentence, and inside sentences stands in lower case at least three times and in three of
ten cases. Other words that begin a sentence are taken for names.

    python benchmarks/sentence_openings.py --pairs machine-translations.parquet captions.parquet --out openings.txt
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf import normal_form

WORD = re.compile(r"[^\W\d_]+")
LEAST, SHARE = 3, 0.3  # Uses in lower case, and their smallest share
SKIPPED = "source"  # The column that is not in English


def sentences(paths: list[Path]) -> Iterator[str]:
    """Yield each distinct sentence in the columns of text of some Parquet files."""
    columns = []
    for path in paths:
        table = pq.read_table(path)
        texts = [name for name in table.column_names if table[name].type == pa.string() and name != SKIPPED]
        columns += [table[name].combine_chunks() for name in texts]
    yield from normal_form(pc.unique(pa.concat_arrays(columns))).to_pylist()


def main() -> None:
    """Count the words of the files, and write those that usually begin sentences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, nargs="+", required=True, help="Parquet files with English sentences")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    openings, small, large = Counter[str](), Counter[str](), Counter[str]()
    for sentence in sentences(options.pairs):
        for number, word in enumerate(WORD.findall(sentence or "")):
            if number == 0:
                openings[word.lower()] += 1
            else:
                (small if word.islower() else large)[word.lower()] += 1
    found = [
        word
        for word in sorted(openings)
        if word.isascii() and len(word) > 1 and small[word] >= max(LEAST, SHARE * (small[word] + large[word]))
    ]
    options.out.write_text("".join(f"{word}\n" for word in found), encoding="ascii")
    print(f"{len(found):,} words of {len(openings):,} that begin sentences: {options.out}")


if __name__ == "__main__":
    main()
