"""Measure the CPU seconds of the first sentences of a new process; every measurement is a process of its own.

The compiled loops of averages are imported after some thousand sentences. `compiled` reads them from numba's cache;
`not compiled` begins with an empty one, as after an installation.

    python benchmarks/first_use.py --text train.en
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from commands import heading, in_turn, python, spread

BLOCK = 20_000  # Sentences of a measurement
PROGRAM = """
import sys, time
import paranmt_hf
lines = open(sys.argv[1], encoding="utf8").read().splitlines()
encoder = {load}
for start in range(0, 2 * {block}, {block}):
    before = time.process_time()
    encoder.encode(lines[start : start + {block}])
    print(time.process_time() - before)
"""
OBJECTS = {"StaticEncoder": "paranmt_hf.StaticEncoder.from_pretrained()", "load": "paranmt_hf.load()"}


def seconds(load: str, text: Path, empty: bool) -> list[float]:
    """Return the CPU seconds of the first and of the second block of sentences in a new process."""
    program = PROGRAM.format(load=load, block=BLOCK)
    if not empty:
        return [float(line) for line in python(program, text).split()]
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NUMBA_CACHE_DIR"] = cache
        try:
            return [float(line) for line in python(program, text).split()]
        finally:
            del os.environ["NUMBA_CACHE_DIR"]


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="English text, at least 40,000 lines")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    text = arguments.text.resolve()
    systems = {
        f"{name}, {state}": (lambda load=load, empty=empty: seconds(load, text, empty))
        for name, load in OBJECTS.items()
        for state, empty in (("compiled", False), ("not compiled", True))
    }
    print(f"{heading('numpy', 'numba', 'pyarrow')}; load {os.getloadavg()[0]:.1f}; {arguments.repeats} runs\n")
    print(f"| CPU seconds, median (min to max) | first {BLOCK:,} sentences | next {BLOCK:,} |\n|---|---:|---:|")
    for name, found in in_turn(systems, arguments.repeats).items():
        first, second = zip(*found, strict=True)
        print(f"| {name} | {spread(first, '.2f')} | {spread(second, '.2f')} |")


if __name__ == "__main__":
    main()
