"""Selection beside OpusFilter: length, identical sides, exact copies; and language identification.

Each run is a process of its own, pinned to one core, in turn; figures are CPU seconds and peak resident memory of the
whole command as the operating system counts them. OpusFilter is installed in an environment of its own, because it
needs packages that this project does not:

    python -m venv of && of/bin/pip install opusfilter
    python benchmarks/selection.py --release paranmt --opusfilter of/bin/opusfilter --copies 1 10

Ours reads a release and writes a release; OpusFilter reads and writes plain text, made from the release beforehand.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import yaml

from paranmt_hf import ReleaseFilter, select
from paranmt_hf.corpus.language import LANGUAGES
from paranmt_hf.corpus.record import ReleaseRecord
from paranmt_hf.corpus.release import read_record, read_tables, release_files, write_release
from paranmt_hf.corpus.release_run import write_card

SIDES = ("reference", "translation")


@dataclass(frozen=True)
class Run:
    """What a run took: CPU seconds, wall seconds, GB at its peak; and how many pairs it left."""

    cpu: float
    wall: float
    memory: float
    left: int


def measured(command: Sequence[str], folder: Path, left: Callable[[], int]) -> Run:
    """Run a command on one core."""
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        os.chdir(folder)
        with Path(folder / "log").open("ab") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        os.execv(command[0], list(command))
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(f"failed with status {status}: {' '.join(command)}\n{(folder / 'log').read_text()[-2000:]}")
    return Run(usage.ru_utime + usage.ru_stime, time.monotonic() - started, usage.ru_maxrss / 1e6, left())


def copies_of(release: Path, copies: int, folder: Path) -> Path:
    """Write a release that holds another one so many times, with ids and sentences of its own in each copy."""
    record = read_record(release)
    most = max(int(table["id"][-1].as_py()) for table in read_tables(release_files(release), ["id"])) + 1

    def tables() -> Iterator[pa.Table]:
        for copy in range(copies):
            for table in read_tables(release_files(release)):
                changed = table.set_column(0, "id", pc.add(table["id"], copy * most))
                for side in SIDES:
                    text = pc.binary_join_element_wise(table[side], f"{copy}", " ")
                    changed = changed.set_column(changed.column_names.index(side), side, text)
                yield changed

    written = write_release(tables(), folder, optional=record.columns)
    made: ReleaseRecord = replace(record, configs=written.configs, statistics=written.statistics.summary())
    write_card(folder, made)
    return folder


def ours(release: Path, options: Sequence[str], folder: Path) -> Run:
    """One selection."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    command = [sys.executable, "-m", "paranmt_hf.cli", "select", str(release), "--out", str(folder / "out"), *options]
    return measured(command, folder, lambda: read_record(folder / "out").configs["default"].rows)


def opusfilter(program: Path, filters: Sequence[dict[str, object]], duplicates: bool, folder: Path) -> Run:
    """The same with OpusFilter, over the plain text in the folder."""
    steps = [
        {
            "type": "filter",
            "parameters": {"inputs": [*SIDES], "outputs": ["filtered.1", "filtered.2"], "filters": list(filters)},
        }
    ]
    if duplicates:
        files = {"inputs": ["filtered.1", "filtered.2"], "outputs": ["unique.1", "unique.2"]}
        steps.append({"type": "remove_duplicates", "parameters": files})
    config = {"common": {"output_directory": str(folder), "default_n_jobs": 1}, "steps": steps}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    result = folder / ("unique.1" if duplicates else "filtered.1")
    command = [str(program), "--overwrite", str(folder / "config.yaml")]
    return measured(command, folder, lambda: result.read_bytes().count(b"\n"))


def plain_text(release: Path, folder: Path) -> int:
    """Write the sides of a release as plain text; returns the number of pairs."""
    rows = 0
    with (folder / SIDES[0]).open("w") as first, (folder / SIDES[1]).open("w") as second:
        for table in read_tables(release_files(release), ["id", *SIDES]):
            for file, side in zip((first, second), SIDES, strict=True):
                file.writelines(f"{text}\n" for text in table[side].to_pylist())
            rows += table.num_rows
    return rows


def row(name: str, pairs: int, runs: Sequence[Run], first: Sequence[Run] | None = None) -> str:
    """A row of the table: medians; the ratio is that of the medians of rates."""
    cpu = [run.cpu for run in runs]
    spread = f"{pairs / statistics.median(cpu):,.0f} ({pairs / max(cpu):,.0f} to {pairs / min(cpu):,.0f})"
    ratio = statistics.median(run.cpu for run in first) / statistics.median(cpu) if first else 1.0
    return (
        f"| {name} | {pairs:,} | {len(runs)} | {spread} | {statistics.median(run.wall for run in runs):.0f} "
        f"| {max(run.memory for run in runs):.2f} | {runs[0].left:,} | {ratio:.1f} |"
    )


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", type=Path, required=True, help="a release made by this program")
    parser.add_argument("--opusfilter", type=Path, help="the program opusfilter")
    parser.add_argument("--copies", type=int, nargs="+", default=[1], help="of the release, for ours alone")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--language-pairs", type=int, default=50_000)
    arguments = parser.parse_args()
    os.environ |= {"PYTHONPATH": str(Path(__file__).resolve().parents[1]), "OMP_NUM_THREADS": "1"}
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "pyarrow", "duckdb", "py3langid"))
    print(f"{date.today()}, {platform.machine()}, one core, Python {platform.python_version()}, {packages}")
    if arguments.opusfilter:
        code = "from importlib.metadata import version as v; print(v('opusfilter'), v('py3langid'))"
        python = arguments.opusfilter.with_name("python")
        told = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        print(f"OpusFilter {told[0]} with py3langid {told[1]}")
    print("\n| | pairs | runs | pairs per CPU second: median (min to max) | wall s | GB | left | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        if arguments.opusfilter:
            compare(arguments, Path(name))
        for copies in arguments.copies:
            larger = copies_of(arguments.release, copies, Path(name) / f"copies{copies}")
            pairs = read_record(larger, ["sample"]).configs["default"].rows
            options = ["--tenths", "2-10", "--max-length", "30", "--drop-identical", "--drop-copies", "pair"]
            runs = [ours(larger, [*options, "--sample", str(pairs // 10)], Path(name))]
            print(row(f"paranmt select, also tenths and a sample, {copies} x", pairs, runs), flush=True)
            shutil.rmtree(larger)


def compare(arguments: argparse.Namespace, folder: Path) -> None:
    """Measure both in turn: length, identical sides and copies of all pairs; then the language of some."""
    same = {"SimilarityFilter": {"threshold": 1, "unit": "char", "lowercase": True}}
    length = {"LengthFilter": {"unit": "word", "min_length": 1, "max_length": 30}}
    options = ["--max-length", "30", "--drop-identical", "--drop-copies", "pair"]
    text = folder / "all"
    text.mkdir()
    pairs = plain_text(arguments.release, text)
    mine, theirs = [], []
    for _ in range(arguments.repeats):
        mine.append(ours(arguments.release, options, folder))
        theirs.append(opusfilter(arguments.opusfilter, [length, same], True, text))
    print(row("OpusFilter: length, identical sides, copies", pairs, theirs))
    print(row("paranmt select: the same", pairs, mine, theirs), flush=True)
    few = select(arguments.release, folder / "few", ReleaseFilter(sample=arguments.language_pairs)).folder
    text = folder / "language"
    text.mkdir()
    pairs = plain_text(few, text)
    told = {"languages": ["en", "en"], "langid_languages": [*LANGUAGES], "thresholds": [0.1, 0.1]}
    mine, theirs = [], []
    for _ in range(arguments.repeats):
        mine.append(ours(few, ["--language", "en", "--language-letters", "0"], folder))
        theirs.append(opusfilter(arguments.opusfilter, [{"LangidFilter": told}], False, text))
    print(row("OpusFilter: language of both sides", pairs, theirs))
    print(row("paranmt select: the same", pairs, mine, theirs), flush=True)


if __name__ == "__main__":
    main()
