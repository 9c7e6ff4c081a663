"""Speed of the columns that a release can get: mismatches of meaning, and the classifier behind `human_score`.

python benchmarks/added_columns.py --pairs machine-translations.parquet
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

# One core.
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import sklearn

from paranmt_hf.corpus.authorship import AuthorshipConfig, HumanScorer, learn
from paranmt_hf.corpus.jobs.shards import write_shard
from paranmt_hf.corpus.meaning.columns import MISMATCHES, MismatchReader

ROWS = 10_000


def windows(table: pa.Table) -> Iterator[tuple[pa.Array, pa.Array]]:
    """References and translations of some rows at a time."""
    for start in range(0, table.num_rows, ROWS):
        part = table.slice(start, ROWS)
        yield part["reference"].combine_chunks(), part["translation"].combine_chunks()


def mismatches(table: pa.Table, names: tuple[str, ...]) -> tuple[float, dict[str, float]]:
    """CPU seconds with an empty memory, and the share of pairs with each mismatch."""
    reader, found = MismatchReader(names), dict.fromkeys(names, 0)
    begin = time.process_time()
    for sides in windows(table):
        for name, column in reader.columns(*sides).items():
            found[name] += pc.sum(pc.greater(column, 0)).as_py() or 0
    return time.process_time() - begin, {name: count / table.num_rows for name, count in found.items()}


def classifier(table: pa.Table) -> None:
    """Print what the classifier costs and gives."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for start in range(0, table.num_rows, ROWS):
            paths.append(Path(folder) / f"shard-{start:09d}.parquet")
            write_shard(table.slice(start, ROWS), paths[-1])
        begin = time.process_time()
        found = learn(paths, table.num_rows, AuthorshipConfig())
        learned = time.process_time() - begin
    scorer, begin = HumanScorer(found), time.process_time()
    for sides in windows(table):
        scorer.scores(*sides)
    print(f"classifier: learned in {learned:.0f} CPU seconds, {found.held_out}")
    print(f"classifier: scores {table.num_rows / (time.process_time() - begin):,.0f} pairs per CPU second")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet file with reference and translation")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--alone", nargs="*", default=[], help="columns to measure alone too")
    parser.add_argument("--without-classifier", action="store_true")
    options = parser.parse_args()
    pa.set_cpu_count(1)
    table = pq.read_table(options.pairs, columns=["reference", "translation"])
    table = table.cast(pa.schema([(name, pa.string()) for name in table.column_names]))
    table = table.append_column("id", pa.array(np.arange(table.num_rows)))
    print(f"{table.num_rows:,} pairs, {platform.processor() or platform.machine()}, numpy {np.__version__}, ", end="")
    print(f"pyarrow {pa.__version__}, scikit-learn {sklearn.__version__}, Python {platform.python_version()}")
    for names in (MISMATCHES, *((name,) for name in options.alone)):
        runs = [mismatches(table, names) for _ in range(options.repeats)]
        rates = sorted(table.num_rows / seconds for seconds, _ in runs)
        print(f"{' '.join(names)}: {statistics.median(rates):,.0f} pairs per CPU second ({rates[0]:,.0f} to ", end="")
        shares = ", ".join(f"{share:.2%}" for share in runs[0][1].values())
        print(f"{rates[-1]:,.0f}); pairs with a mismatch {shares}", flush=True)
    if not options.without_classifier:
        classifier(table)
    print(f"peak resident memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
