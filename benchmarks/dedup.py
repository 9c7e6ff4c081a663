"""Compare `paranmt dedup` by meaning with semhash: time, memory, and dropped lines, on the same text and threshold.

Each run is a process on one core; the systems take turns, and medians are shown. semhash has the model2vec export of
the encoder of this package, whose vectors are the same, and its default search. Brute force over the first lines says
what is right: a line goes if an earlier line that stays is near to it.

    pip install semhash
    python benchmarks/dedup.py --pairs machine-translations.parquet --lines 100000 1000000
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from commands import Run, heading, in_turn, measured, medians, paranmt

from paranmt_hf import load

SEMHASH = """
import sys
from pathlib import Path
import numpy as np
from model2vec import StaticModel
from semhash import SemHash

model, file, threshold, out = sys.argv[1:]
lines = Path(file).read_text(encoding="utf8").split("\\n")[:-1]
found = SemHash.from_records(lines, model=StaticModel.from_pretrained(model)).self_deduplicate(float(threshold))
left = set(found.selected)
kept = []
for row, line in enumerate(lines):
    if line in left:
        left.remove(line)
        kept.append(row)
np.save(out, np.setdiff1d(np.arange(len(lines)), kept))
"""
TRUTH_LINES = 20_000


def write_lines(pairs: Path, count: int, path: Path) -> list[str]:
    """Write the first `count` translations of a file of pairs, one on each line, and return them."""
    column = pq.read_table(pairs, columns=["translation"])["translation"]
    lines = [" ".join(text.split()) for text in column.slice(0, count).to_pylist()]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    return lines


def ours(file: Path, threshold: float, scratch: Path) -> tuple[Run, set[int]]:
    """Deduplicate a file with this package; return what the run took, and the dropped lines by number."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    # Mismatches are not used, because semhash does not know them.
    words = ["--by", "meaning", "--no-same-meaning", "--cosine", threshold]
    words += ["--keep-dropped", folder / "dropped.parquet"]
    run = paranmt("dedup", file, "--out", folder / "distinct.txt", *words)
    return run, {line - 1 for line in pq.read_table(folder / "dropped.parquet")["line"].to_pylist()}


def semhash(file: Path, threshold: float, scratch: Path) -> tuple[Run, set[int]]:
    """Deduplicate a file with semhash, in memory; return what the run took, and the dropped lines by number."""
    model, out = scratch / "static", scratch / "dropped.npy"
    command = [sys.executable, "-c", SEMHASH, str(model), str(file), str(threshold), str(out)]
    return measured(command), set(np.load(out).tolist())


def truth(lines: list[str], threshold: float) -> set[int]:
    """Return the numbers of the lines that must go, by comparing each line with all earlier ones that stay."""
    vectors = load().encode(lines, normalize_embeddings=True)
    stay = np.zeros(len(lines), bool)
    for row, vector in enumerate(vectors):
        stay[row] = not (vectors[:row][stay[:row]] @ vector >= threshold).any()
    return set(np.flatnonzero(~stay).tolist())


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet with translations")
    parser.add_argument("--lines", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--threshold", type=float, default=0.9)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{heading('numpy', 'semhash', 'usearch', 'model2vec')}; one core; cosine at least {arguments.threshold}\n")
    print("| lines | | CPU seconds | memory, GB | dropped | by both | of the right ones | wrong |")
    print("|---:|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as scratch:
        folder, file = Path(scratch), Path(scratch) / "lines.txt"
        paranmt("encoder", "export", "small", "--format", "static", "--out", folder / "static")
        for count in [TRUTH_LINES, *arguments.lines]:
            lines = write_lines(arguments.pairs, count, file)
            right = truth(lines, arguments.threshold) if count == TRUTH_LINES else None
            systems = {"paranmt dedup": ours, "semhash": semhash}
            calls = {name: partial(system, file, arguments.threshold, folder) for name, system in systems.items()}
            found = in_turn(calls, arguments.repeats)
            # All runs of a system drop the same lines, so one of them is shown.
            both = len(set.intersection(*(dropped for runs in found.values() for _, dropped in runs)))
            for name, runs in found.items():
                run, dropped = medians([run for run, _ in runs]), runs[0][1]
                checked = "| |"
                if right is not None:
                    checked = f"{len(dropped & right) / len(right):.2%} | {len(dropped - right):,} |"
                figures = f"{run.cpu:.1f} | {run.memory:.2f} | {len(dropped):,} | {both:,}"
                print(f"| {len(lines):,} | {name} | {figures} | {checked}")


if __name__ == "__main__":
    main()
