"""Measure time and memory until an encoder gives its first vector; every measurement is a process of its own.

Ours are `StaticEncoder` and `load`, each with the small encoder that the package carries and with a WORD model of
`--rows` words. The peers read the same WORD model: sentence-transformers as it is saved, model2vec after an export.
`--before` is another tree of this package, such as an older commit. The systems take turns, so that the load of the
machine affects all of them.

    git worktree add ../before main
    python benchmarks/cold_start.py --before ../before
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from commands import PROJECT, heading, in_turn, measured, medians, python, spread

PACKAGES = ("numpy", "pyarrow", "tokenizers", "torch", "sentence-transformers", "model2vec")
START, ENCODE = "import paranmt_hf; model = paranmt_hf.", "; vector = model.encode('The cat sat on the mat.')"
STATIC = f"{START}StaticEncoder.from_pretrained({{folder}}){ENCODE}"
OURS = f"{START}load({{folder}}){ENCODE}"
# Python takes a second to take apart what was imported.
END = "; import os; os._exit(0)"
SIMILARITY = "; model.similarity(vector, vector)"
MODEL2VEC = (
    "from model2vec import StaticModel; model = StaticModel.from_pretrained({folder}); "
    "vector = model.encode('The cat sat on the mat.')"
)
STOCK = (
    "from sentence_transformers import SentenceTransformer; model = SentenceTransformer({folder}, device='cpu'); "
    "vector = model.encode('The cat sat on the mat.')"
)


def make_models(folder: Path, rows: int, dimension: int) -> tuple[Path, Path]:
    """Write a WORD model of made-up words and random vectors, and its export for model2vec."""
    # A process of its own does this, so that this one stays small.
    program = f"""
import numpy as np
from paranmt_hf import export_encoder
from benchmarks.words import static_embedding, word_tokenizer
units = ["[UNK]", "the", "cat", "sat", "on", "mat", ".", *(f"w{{number:06}}" for number in range({rows} - 7))]
weight = np.random.default_rng(1).standard_normal(({rows}, {dimension}), np.float32)
weight[0] = 0
static_embedding(word_tokenizer(), units, weight).save_pretrained({str(folder / "word")!r}, create_model_card=False)
export_encoder({str(folder / "word")!r}, {str(folder / "model2vec")!r}, format="model2vec")
"""
    python(program)
    return folder / "word", folder / "model2vec"


def systems(word: Path, exported: Path, rows: int, before: Path | None) -> dict[str, tuple[str, Path]]:
    """Return the systems by name in the order of turns: a program, and the folder of the package that it imports."""
    carried, large = "the carried encoder", f"WORD, {rows:,} words"
    programs = {
        "Python alone": "pass",
        "numpy and pyarrow alone": "import numpy, pyarrow.compute",
        f"StaticEncoder, {carried}": STATIC.format(folder=""),
        f"StaticEncoder, {carried}, and its `similarity`": STATIC.format(folder="") + SIMILARITY,
        f"StaticEncoder, {large}": STATIC.format(folder=repr(str(word))),
        f"load, {carried}": OURS.format(folder=""),
        f"load, {large}": OURS.format(folder=repr(str(word))),
        f"model2vec, {large}": MODEL2VEC.format(folder=repr(str(exported))),
        f"sentence-transformers, {large}": STOCK.format(folder=repr(str(word))),
    }
    found = {name: (program, PROJECT) for name, program in programs.items()}
    if before is not None:
        tree = before.resolve()
        if not (tree / "paranmt_hf" / "__init__.py").is_file():
            raise SystemExit(f"--before {before}: there is no paranmt_hf in it")
        found |= {
            f"load before, {carried}": (OURS.format(folder=""), tree),
            f"load before, {carried}, and its `similarity`": (OURS.format(folder="") + SIMILARITY, tree),
            f"load before, {large}": (OURS.format(folder=repr(str(word))), tree),
        }
    return found


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="folder of another tree of this package")
    parser.add_argument("--rows", type=int, default=100_000, help="words of the WORD model (default: %(default)s)")
    parser.add_argument("--dimension", type=int, default=300, help="its dimensions (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", nargs="+", default=[""], help="beginnings of the names of the systems to measure")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        word, exported = make_models(Path(folder), arguments.rows, arguments.dimension)
        measurements = {
            name: partial(measured, [sys.executable, "-c", program + END], project=tree, one_core=False)
            for name, (program, tree) in systems(word, exported, arguments.rows, arguments.before).items()
            if name.startswith(tuple(arguments.only))
        }
        runs = in_turn(measurements, arguments.repeats + 1)
    print(f"{heading(*PACKAGES)}; {arguments.repeats} runs of each in turn\n")
    print("| | CPU seconds: median (min to max) | wall seconds | peak resident memory, MB |")
    print("|---|---:|---:|---:|")
    # The first round compiles bytecode and brings files into memory.
    for name, (_, *own) in runs.items():
        cpu, wall = ([getattr(run, figure) for run in own] for figure in ("cpu", "wall"))
        memory = medians(own).memory * 1e6 / 1024
        print(f"| {name} | {spread(cpu, '.2f')} | {spread(wall, '.2f')} | {memory:.0f} |")


if __name__ == "__main__":
    main()
