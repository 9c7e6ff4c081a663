"""Measure the commands on large corpora: CPU seconds, peak memory and disk of each stage, one after another.

The pairs are real ones, and copies of them in which words are replaced, so that as many pairs as needed differ:

    python benchmarks/scale.py --pairs machine-translations.parquet --count 1000000 10000000 --scratch FOLDER

Each command runs with its default engine. Memory is that of all its processes, without files that are mapped, which
the system can drop at any time. A stage needs the results of those before it; `--stages` names those that run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from commands import environment, heading

REPLACED = 4  # Every fourth word of a copy is replaced
BLOCK = 50_000  # Number of pairs that are made at once


@dataclass(frozen=True)
class Stage:
    """What a command took for a corpus."""

    name: str
    pairs: int
    cpu: float  # Seconds of all processes
    wall: float  # Seconds
    memory: float  # Peak of all processes, without mapped files, in GB
    disk: float  # Size of the result in GB


def make_pairs(source: Path, count: int, out: Path) -> None:
    """Write `count` pairs into a Parquet file: those of `source`, and copies with other words.

    A replaced word has the same place in both sentences of its pair, as the number of a word, so the sides stay alike.
    """
    table = pq.read_table(source, columns=["reference", "translation"])
    generator = np.random.default_rng(0)
    sample = " ".join(table["reference"].slice(0, BLOCK).to_pylist()).split()
    words = sorted({word for word in sample if word.isalpha() and word.islower() and len(word) > 3})
    schema = pa.schema([("reference", pa.string()), ("translation", pa.string())])
    made = 0
    with pq.ParquetWriter(out, schema) as writer:
        for copy in range(-(-count // len(table))):
            for start in range(0, len(table), BLOCK):
                block = table.slice(start, min(BLOCK, count - made)).to_pydict()
                if copy:
                    block = {
                        name: list(changed(texts, words, copy, start, generator)) for name, texts in block.items()
                    }
                writer.write_table(pa.table(block, schema))
                made += len(block["reference"])
                if made == count:
                    return


def changed(
    texts: list[str], words: list[str], copy: int, start: int, generator: np.random.Generator
) -> Iterator[str]:
    """Yield texts in which one word of `REPLACED` is another one, from a place that differs between copies."""
    drawn = generator.integers(len(words), size=len(texts)).tolist()
    for row, (text, number) in enumerate(zip(texts, drawn, strict=True)):
        own = text.split()
        for place in range((copy + start + row) % REPLACED, len(own), REPLACED):
            own[place] = words[(number + place) % len(words)]
        yield " ".join(own)


def memory_of(process: psutil.Process) -> int:
    """Return the memory of a process and those that it started in bytes, without mapped files."""
    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            status = Path(f"/proc/{one.pid}/status").read_text()
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))
    return total


def run(name: str, pairs: int, words: list[str], out: Path) -> Stage:
    """Run and measure a command, given by its words, whose result is `out`."""
    started, before = time.monotonic(), os.times()
    child = subprocess.Popen([sys.executable, "-m", "paranmt_hf.cli", *words], env=environment(threads=1))
    peak, done = [0], threading.Event()

    def watch() -> None:
        process = psutil.Process(child.pid)
        while not done.wait(0.5):
            try:
                peak[0] = max(peak[0], memory_of(process))
            except psutil.NoSuchProcess:
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    status = child.wait()
    done.set()
    watcher.join()
    if status:
        raise SystemExit(f"failed: {' '.join(words)}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    files = [out] if out.is_file() else [path for path in out.rglob("*") if path.is_file()]
    disk = sum(path.stat().st_size for path in files) / 1e9
    return Stage(name, pairs, cpu, time.monotonic() - started, peak[0] / 1e9, disk)


def commands(pairs: Path, folder: Path) -> dict[str, tuple[list[str], Path]]:
    """Return the words of the command of each stage, and its result."""
    corpus, selected, distinct = folder / "corpus", folder / "selected", folder / "distinct.parquet"
    index, mined = folder / "index", folder / "mined.parquet"
    columns = "reference=reference,translation=translation"
    release = ["--license", "cc0-1.0", "--made-by", "machine"]
    return {
        "import": (["import", f"{pairs}", "--columns", columns, *release, "--out", f"{corpus}"], corpus),
        "score": (["score", f"{corpus}", "--scorer", "base"], corpus),
        "select": (["select", f"{corpus}", "--tenths", "4-10", "--min-length", "4", "--out", f"{selected}"], selected),
        "dedup": (
            ["dedup", f"{pairs}", "--column", "reference", "--second-column", "translation", "--out", f"{distinct}"],
            distinct,
        ),
        "index": (
            ["search", "index", f"{corpus}", "--column", "translation", "--encoder", "small", "--out", f"{index}"],
            index,
        ),
        "mine": (
            ["search", "mine", f"{corpus}", "--column", "translation", "--encoder", "small", "--out", f"{mined}"],
            mined,
        ),
    }


def main() -> None:
    """Make the pairs, run the stages, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--count", type=int, nargs="+", required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--stages", nargs="+", default=["import", "score", "select", "dedup", "index", "mine"])
    options = parser.parse_args()
    print(heading("numpy", "pyarrow", "numba"))
    print("| stage | pairs | CPU s | pairs a CPU second | wall s | peak memory, GB | result, GB |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    for count in options.count:
        folder = options.scratch / f"{count}"
        folder.mkdir(parents=True, exist_ok=True)
        pairs = folder / "pairs.parquet"
        if not pairs.exists():
            make_pairs(options.pairs, count, pairs)
        for name in options.stages:
            words, out = commands(pairs, folder)[name]
            done = run(name, count, words, out)
            print(
                f"| {name} | {count:,} | {done.cpu:,.0f} | {count / done.cpu:,.0f} | {done.wall:,.0f} "
                f"| {done.memory:.2f} | {done.disk:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
