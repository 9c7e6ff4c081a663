"""What the resumable shard job costs beside the same translator in a plain loop.

Both translate the same sentences in the same process, alternating; the job also cuts shards, checks, writes, renames
and keeps its manifest.

    python benchmarks/job_overhead.py --source train.cs --reference train.en --sentences 1000
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from datetime import date
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from paranmt_hf import EngineConfig, TranslatorConfig
from paranmt_hf.corpus.jobs.job import run_job
from paranmt_hf.corpus.jobs.shards import Manifest, write_shard
from paranmt_hf.corpus.jobs.stages import WINDOW, TranslateStage
from paranmt_hf.corpus.translation.engines import load_translator
from paranmt_hf.corpus.translation.translator import translate_table


def cut(table: pa.Table, folder: Path, rows: int) -> Manifest:
    """Write the input shards."""
    manifest = Manifest.open(folder, {})
    for index, start in enumerate(range(0, table.num_rows, rows)):
        name = f"shard-{index:06d}.parquet"
        part = table.slice(start, rows)
        manifest.shards[name] = write_shard(part, folder / name)
    manifest.save()
    return manifest


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--translator", default="embedded")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rows-per-shard", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    columns = {}
    for name in ("source", "reference"):
        with getattr(arguments, name).open(encoding="utf8") as lines:
            columns[name] = [line.strip() for line in islice(lines, arguments.sentences)]
    table = pa.table({"id": list(range(len(columns["source"]))), **columns})
    stage = TranslateStage(TranslatorConfig(name=arguments.translator, backend=arguments.backend), threads=1)
    translator = load_translator(stage.config, threads=1)
    times: dict[str, list[float]] = {"plain loop": [], "shard job": []}
    with tempfile.TemporaryDirectory() as folder:
        manifest = cut(table, Path(folder) / "input", arguments.rows_per_shard)
        warm = table.slice(0, 50)
        translate_table(warm, translator)
        # The job's own copy is loaded before the clock starts, as the loop's is.
        run_job(cut(warm, Path(folder) / "warm", 50), Path(folder) / "warmed", stage, EngineConfig(workers=1))
        for repeat in range(arguments.repeats):
            started = time.process_time()
            for start in range(0, table.num_rows, min(WINDOW, arguments.rows_per_shard)):
                translate_table(table.slice(start, min(WINDOW, arguments.rows_per_shard)), translator)
            times["plain loop"].append(time.process_time() - started)
            started = time.process_time()
            out = run_job(manifest, Path(folder) / f"output-{repeat}", stage, EngineConfig(workers=1))
            times["shard job"].append(time.process_time() - started)
            assert sum(pq.read_metadata(path).num_rows for path in out.paths()) == out.rows
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "ctranslate2", "pyarrow"))
    print(f"{date.today()}, {platform.machine()}, one thread, {table.num_rows} sentences, {packages}\n")
    print("| | CPU seconds: median (min to max) | ratio, median of pairs |\n|---|---:|---:|")
    ratios = [job / loop for loop, job in zip(times["plain loop"], times["shard job"], strict=True)]
    for name, values in times.items():
        ratio = 1.0 if name == "plain loop" else statistics.median(ratios)
        print(f"| {name} | {statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f}) | {ratio:.3f} |")


if __name__ == "__main__":
    main()
