"""Compare selection with OpusFilter: by length, identical sides, exact copies, and language identification.

Each run is a process of its own, pinned to one core, in turn; figures are CPU seconds and peak resident memory of the
whole command as the operating system counts them. OpusFilter is installed in an environment of its own, because it
needs packages that this project does not:

    python -m venv of && of/bin/pip install opusfilter 'py3langid<0.4'
    python benchmarks/selection.py --release paranmt --opusfilter of/bin/opusfilter --copies 1 10

Ours reads a release and writes a release; OpusFilter reads and writes plain text, made from the release beforehand.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml
from commands import Run, heading, in_turn, measured, medians, paranmt, rows_of, spread

from paranmt_hf import ReleaseFilter, select

SIDES = ("reference", "translation")
# The languages that `paranmt select` chooses from.
LANGUAGES = (
    "ar bg bn ca cs da de el en es et eu fa fi fr ga he hi hr hu id is it ja ko lt lv mk ms nl no pl pt ro ru sk sl "
    "sq sr sv ta th tr uk ur vi zh"
).split()


@dataclass(frozen=True)
class Selection:
    """The cost of a selection, and the number of pairs that it kept."""

    run: Run
    left: int


def copies_of(release: Path, copies: int, folder: Path) -> Path:
    """Make a release that holds another one `copies` times, with different sentences in each copy."""
    files = []
    for copy in range(copies):
        for path in sorted((release / "data").glob("*.parquet")):
            files.append(folder / f"copy-{copy}-{path.name}")
            with pq.ParquetFile(path) as file:
                schema = pa.schema([*((side, pa.string()) for side in SIDES), ("para_score", pa.float32())])
                with pq.ParquetWriter(files[-1], schema) as writer:
                    for batch in file.iter_batches(columns=schema.names):
                        table = pa.table(batch)
                        sides = [pc.binary_join_element_wise(table[side], f"{copy}", " ") for side in SIDES]
                        writer.write_table(pa.table([*sides, table["para_score"]], schema=schema))
    columns = ",".join(f"{name}={name}" for name in (*SIDES, "para_score"))
    out = folder / f"copies{copies}"
    paranmt("import", *files, "--columns", columns, "--out", out, "--license", "unknown", "--engine", "workers=1")
    for path in files:
        path.unlink()
    return out


def ours(release: Path, options: Sequence[str], folder: Path) -> Selection:
    """Run and measure one selection with this package."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    run = paranmt("select", release, "--out", folder / "out", *options)
    return Selection(run, rows_of(folder / "out"))


def opusfilter(program: Path, filters: Sequence[dict[str, object]], duplicates: bool, folder: Path) -> Selection:
    """Run and measure the same selection with OpusFilter, over the plain text in the folder."""
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
    run = measured([program.resolve(), "--overwrite", folder / "config.yaml"])
    result = folder / ("unique.1" if duplicates else "filtered.1")
    return Selection(run, result.read_bytes().count(b"\n"))


def plain_text(release: Path, folder: Path) -> int:
    """Write the sides of a release as plain text into a new folder, and return the number of pairs."""
    folder.mkdir()
    with (folder / SIDES[0]).open("w") as first, (folder / SIDES[1]).open("w") as second:
        for path in sorted((release / "data").glob("*.parquet")):
            for batch in pq.ParquetFile(path).iter_batches(columns=[*SIDES]):
                for file, side in zip((first, second), SIDES, strict=True):
                    file.writelines(f"{text}\n" for text in batch[side].to_pylist())
    return rows_of(release)


def row(name: str, pairs: int, found: Sequence[Selection], first: Sequence[Selection] | None = None) -> str:
    """Return a row of the table with medians; the ratio is that of the median rates, to the runs `first`."""
    middle, rates = medians([each.run for each in found]), spread([pairs / each.run.cpu for each in found])
    ratio = medians([each.run for each in first]).cpu / middle.cpu if first else 1.0
    figures = f"{middle.wall:.0f} | {max(each.run.memory for each in found):.2f} | {found[0].left:,} | {ratio:.1f}"
    return f"| {name} | {pairs:,} | {len(found)} | {rates} | {figures} |"


def compare(arguments: argparse.Namespace, folder: Path) -> None:
    """Measure both systems in turn: length, identical sides and copies of all pairs, then the language of some."""
    same = {"SimilarityFilter": {"threshold": 1, "unit": "char", "lowercase": True}}
    length = {"LengthFilter": {"unit": "word", "min_length": 1, "max_length": 30}}
    options = ["--max-length", "30", "--drop-identical", "--drop-copies", "pair"]
    pairs = plain_text(arguments.release, folder / "all")
    systems = {
        "ours": partial(ours, arguments.release, options, folder),
        "theirs": partial(opusfilter, arguments.opusfilter, [length, same], True, folder / "all"),
    }
    mine, theirs = in_turn(systems, arguments.repeats).values()
    print(row("OpusFilter: length, identical sides, copies", pairs, theirs))
    print(row("paranmt select: the same", pairs, mine, theirs), flush=True)
    few = select(arguments.release, folder / "few", ReleaseFilter(sample=arguments.language_pairs)).folder
    pairs = plain_text(few, folder / "language")
    told = {"languages": ["en", "en"], "langid_languages": LANGUAGES, "thresholds": [0.1, 0.1]}
    systems = {
        "ours": partial(ours, few, ["--language", "en"], folder),
        "theirs": partial(opusfilter, arguments.opusfilter, [{"LangidFilter": told}], False, folder / "language"),
    }
    mine, theirs = in_turn(systems, arguments.repeats).values()
    print(row("OpusFilter: language of both sides", pairs, theirs))
    print(row("paranmt select: the same", pairs, mine, theirs), flush=True)


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", type=Path, required=True, help="a release made by this program")
    parser.add_argument("--opusfilter", type=Path, help="the program opusfilter")
    parser.add_argument("--copies", type=int, nargs="+", default=[1], help="of the release, for ours alone")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--language-pairs", type=int, default=50_000)
    arguments = parser.parse_args()
    print(f"{heading('numpy', 'pyarrow', 'duckdb', 'py3langid')}; one core")
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
            larger = copies_of(arguments.release, copies, Path(name))
            pairs = rows_of(larger)
            options = ["--tenths", "2-10", "--max-length", "30", "--drop-identical", "--drop-copies", "pair"]
            runs = [ours(larger, [*options, "--sample", str(pairs // 10)], Path(name))]
            print(row(f"paranmt select, also tenths and a sample, {copies} x", pairs, runs), flush=True)
            shutil.rmtree(larger)


if __name__ == "__main__":
    main()
