"""How fast a `TextMemory` grows: time and memory for texts that are added in batches, and one by one at the end.

    python benchmarks/text_memory.py --text sentences.txt --single 500

One core; the rates are those of processor time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import islice
from pathlib import Path

import psutil

from paranmt_hf import TextMemory

STEP = 100_000  # Texts for a line of the table
CALL = 1000  # Texts that are added at once


def main() -> None:
    """Parse the command line, add the texts, and print a line for each `STEP` of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", type=Path, required=True, help="a text on each line")
    parser.add_argument("--single", type=int, default=500, help="number of texts that are added one by one at the end")
    parser.add_argument("--threshold", type=float, default=0.5, help="1 adds nearly all texts")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, TextMemory(folder, threshold=arguments.threshold) as memory:
        memory.find("a")
        print("| texts | added | ms per text | file, MB | memory of the process, MB |\n|---:|---:|---:|---:|---:|")
        read = 0
        with arguments.text.open(encoding="utf8") as file:
            single = [line.rstrip("\n") for line in islice(file, arguments.single)]
            spent, count = 0.0, 0
            while some := [line.rstrip("\n") for line in islice(file, CALL)]:
                started = time.process_time()
                memory.add(some)
                spent += time.process_time() - started
                count += len(some)
                if count < STEP:
                    continue
                read += count
                milliseconds = 1000 * spent / count
                spent, count = 0.0, 0
                size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
                most = psutil.Process().memory_info().rss / 1e6
                print(f"| {read:,} | {len(memory):,} | {milliseconds:.2f} | {size:.0f} | {most:.0f} |", flush=True)
        for name, call in (("added", memory.add), ("looked for", memory.find)):
            started = time.process_time()
            for line in single:
                call(line)
            print(f"\n{name} one by one: {1000 * (time.process_time() - started) / len(single):.2f} ms a text")
        memory.close()
        started = time.process_time()
        with TextMemory(folder) as opened:
            count = len(opened)
        print(f"\nopened with {count:,} texts: {time.process_time() - started:.1f} s")


if __name__ == "__main__":
    main()
