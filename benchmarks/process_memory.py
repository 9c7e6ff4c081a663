"""Measure the memory of several processes that use one encoder, and how fast they encode; Linux only.

Memory is that of all processes at the same time, after each has encoded the same sentences: private memory that was
written to (`Private_Dirty`), and with a share of what several use (`Pss`). With `--serve`, the processes are those of
`paranmt serve`: first as many servers, then the workers of one. For each figure of speed, processes take turns.
`--before` is another tree of this package, such as an older commit, which is measured in turn.

    git worktree add ../before main
    python benchmarks/process_memory.py base --text train.en --before ../before
    python benchmarks/process_memory.py base --text train.en --serve
    python benchmarks/process_memory.py base word trigram --text train.en --before ../before --speed
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import psutil
from commands import PROJECT, environment, heading, in_turn, python, spread

PACKAGES = ("numpy", "safetensors", "tokenizers", "pyarrow", "numba", "uvicorn")
START = """
import sys
from itertools import islice
from paranmt_hf import StaticEncoder
model = sys.argv[1]
def lines_of(file, start, stop):
    with open(file, encoding="utf8") as lines:
        return [line.rstrip("\\n") for line in islice(lines, start, stop)]
"""
MEMORY = f"""{START}
encoder = StaticEncoder.from_pretrained(model)
count = int(sys.argv[3])
for begin in range(0, count, 100):
    encoder.encode(lines_of(sys.argv[2], begin, min(count, begin + 100)))
print("ready", flush=True)
sys.stdin.read()
"""
# Microseconds of CPU time for each sentence; the start in milliseconds.
SPEED = f"""{START}
import gc, json, time
found = {{}}
def measure(name, work, count):
    gc.collect()
    gc.freeze()
    started = time.process_time()
    work()
    found[name] = (time.process_time() - started) / count * 1e6
def each(lines):
    for line in lines:
        encoder.encode(line)
def lists(lines):
    for begin in range(0, len(lines), 1000):
        encoder.encode(lines[begin : begin + 1000])
encoders = []
few, many, all_lines = (lines_of(sys.argv[2], *part) for part in ((0, 1000), (1000, 11_000), (0, 29_000)))
measure("load", lambda: encoders.append(StaticEncoder.from_pretrained(model)), 1000)
encoder = encoders.pop()
measure("one by one, the first 1,000", lambda: each(few), 1000)
measure("one by one, the next 10,000", lambda: each(many), 10_000)
measure("one by one, the same again", lambda: each(many), 10_000)
encoder = StaticEncoder.from_pretrained(model)
measure("a list of 1,000, the first", lambda: lists(few), 1000)
measure("a list of 1,000, the same again", lambda: lists(few), 1000)
encoder = StaticEncoder.from_pretrained(model)
encoder.warm_up()
encoder.encode(["a " * 1000] * 1000)
measure("lists of 29,000, the first", lambda: encoder.encode(all_lines), len(all_lines))
measure("lists of 29,000, the same again", lambda: encoder.encode(all_lines), len(all_lines))
print(json.dumps(found))
"""


def memory(processes: Sequence[int]) -> tuple[float, float]:
    """Return the private memory of processes that was written to, and with their share of the rest, in MB."""
    private = shares = 0
    for process in processes:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
        figures = {name: int(number) for name, number in re.findall(r"(\w+): +(\d+) kB", text)}
        private += figures["Private_Dirty"]
        shares += figures["Pss"]
    return private / 1024, shares / 1024


def encoders(tree: Path, model: str, text: Path, sentences: int, count: int) -> tuple[float, float]:
    """Return the memory of processes that each have a `StaticEncoder` and have encoded some sentences."""
    command = [sys.executable, "-c", MEMORY, model, str(text), str(sentences)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(command, env=environment(tree), cwd=tree, **pipes) for _ in range(count)]
    try:
        for process in started:
            if process.stdout.readline() != "ready\n":
                raise SystemExit("a process ended before it was ready")
        return memory([process.pid for process in started])
    finally:
        for process in started:
            process.communicate()


@contextmanager
def server(model: str, workers: int) -> Iterator[tuple[int, psutil.Process]]:
    """Run a server in a `with` block; gives its port and its process."""
    command = [sys.executable, "-m", "paranmt_hf.cli", "serve", model, "--port", "0", "--workers", str(workers)]
    process = subprocess.Popen(command, env=environment(), cwd=PROJECT, stderr=subprocess.PIPE, text=True)
    port = 0
    # The last line comes when it answers.
    while "Ctrl-C" not in (line := process.stderr.readline()):
        if found := re.search(r":(\d+)$", line.strip()):
            port = int(found[1])
        if not line:
            raise SystemExit("a server ended before it answered")
    try:
        yield port, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def servers(model: str, text: Path, sentences: int, count: int, *, workers: bool) -> tuple[float, float]:
    """Return the memory of processes that answer requests, as workers of one server or as servers of their own."""
    with text.open(encoding="utf8") as file:
        lines = [line.rstrip("\n") for line, _ in zip(file, range(sentences), strict=False)]
    with ExitStack() as stack:
        given = [count] if workers else [1] * count
        running = [stack.enter_context(server(model, each)) for each in given]
        # A new connection goes to any worker, so there are enough of them for each to get about all sentences.
        for port, _ in running:
            for _ in range(4 * count if workers else 1):
                with suppress(ConnectionError):
                    connection = HTTPConnection("127.0.0.1", port)
                    for begin in range(0, len(lines), 50):
                        connection.request("POST", "/embed", json.dumps({"inputs": lines[begin : begin + 50]}))
                        connection.getresponse().read()
                    connection.close()
        processes = [each for _, process in running for each in (process, *process.children())]
        return memory([process.pid for process in processes])


def print_memory(arguments: argparse.Namespace, trees: dict[str, Path]) -> None:
    """Measure and print the memory of processes."""
    print(f"| {arguments.processes} processes | private memory, MB: median (min to max) | with their share, MB |")
    print("|---|---:|---:|")
    for model in arguments.models:
        common = (model, arguments.text.resolve(), arguments.sentences, arguments.processes)
        systems = {
            f"`StaticEncoder`, {model}, {name}": partial(encoders, tree, *common) for name, tree in trees.items()
        }
        if arguments.serve:
            systems = {
                f"`paranmt serve {model}`, as many servers": partial(servers, *common, workers=False),
                f"`paranmt serve {model} --workers {arguments.processes}`": partial(servers, *common, workers=True),
            }
        for name, found in in_turn(systems, arguments.repeats).items():
            private, shares = zip(*found, strict=True)
            print(f"| {name} | {spread(private)} | {spread(shares)} |", flush=True)


def print_speed(arguments: argparse.Namespace, trees: dict[str, Path]) -> None:
    """Measure and print the speed of encoding, and its ratio to that of the other tree."""
    print("| | " + " | ".join(f"{name}: median (min to max)" for name in trees) + " | ratio |")
    print("|---|" + "---:|" * (len(trees) + 1))
    for model in arguments.models:
        text = arguments.text.resolve()
        systems = {name: partial(python, SPEED, model, text, project=tree) for name, tree in trees.items()}
        runs = {name: list(map(json.loads, found)) for name, found in in_turn(systems, arguments.repeats).items()}
        for phase in runs["now"][0]:
            values = {name: [run[phase] for run in found] for name, found in runs.items()}
            middles = [statistics.median(found) for found in values.values()]
            unit = "milliseconds" if phase == "load" else "microseconds"
            cells = " | ".join(spread(found, ".1f") for found in values.values())
            print(f"| {Path(model).name}: {phase}, {unit} | {cells} | {middles[-1] / middles[0]:.2f} |", flush=True)


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="names or folders of averaging encoders")
    parser.add_argument("--text", type=Path, required=True, help="English text, a sentence a line")
    parser.add_argument("--sentences", type=int, default=3000, help="of each process (default: %(default)s)")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--before", type=Path, help="folder of another tree of this package")
    parser.add_argument("--serve", action="store_true", help="measure the memory of servers instead")
    parser.add_argument("--speed", action="store_true", help="measure speed instead")
    arguments = parser.parse_args()
    arguments.models = [str(Path(each).resolve()) if Path(each).is_dir() else each for each in arguments.models]
    trees = {"before": arguments.before.resolve()} if arguments.before else {}
    trees["now"] = PROJECT
    print(f"{heading(*PACKAGES)}; {arguments.sentences:,} sentences; {arguments.repeats} runs of each in turn\n")
    (print_speed if arguments.speed else print_memory)(arguments, trees)


if __name__ == "__main__":
    main()
