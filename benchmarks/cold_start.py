"""How long the first vector takes, and how much memory: every measurement is a process of its own.

Ours are both objects, `StaticEncoder` and `load`, with the small encoder that the package carries and a WORD model of
`--rows` words. The peers read the same WORD
model: sentence-transformers as it is saved, model2vec as it is exported. `--before` is another tree of this package,
such as an older commit; the systems take turns, so that the load of the machine falls on all of them.

    git worktree add ../before main
    python benchmarks/cold_start.py --before ../before
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from commands import heading, spread

PACKAGES = ("numpy", "pyarrow", "tokenizers", "torch", "sentence-transformers", "model2vec")
HERE = Path(__file__).resolve().parents[1]
START, ENCODE = "import paranmt_hf; model = paranmt_hf.", "; vector = model.encode('The cat sat on the mat.')"
STATIC = f"{START}StaticEncoder.from_pretrained({{folder}}){ENCODE}"
OURS = f"{START}load({{folder}}){ENCODE}"
SIMILARITY = "; model.similarity(vector, vector)"
MODEL2VEC = (
    "from model2vec import StaticModel; model = StaticModel.from_pretrained({folder}); "
    "vector = model.encode('The cat sat on the mat.')"
)
STOCK = (
    "from sentence_transformers import SentenceTransformer; model = SentenceTransformer({folder}, device='cpu'); "
    "vector = model.encode('The cat sat on the mat.')"
)


@dataclass
class System:
    """A program to measure.

    Attributes:
        name: What it is.
        program: Its text.
        tree: Folder of the package that it imports.
        runs: Wall seconds, CPU seconds and peak megabytes of each run.
    """

    name: str
    program: str
    tree: Path = HERE
    runs: list[tuple[float, float, float]] = field(default_factory=list)

    def run(self) -> tuple[float, float, float]:
        """Run it in a new process: wall seconds, CPU seconds, peak resident megabytes."""
        environment = {**os.environ, "PYTHONPATH": str(self.tree), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        started = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-c", self.program], env=environment, cwd=self.tree)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{self.name} failed")
        return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def make_models(folder: Path, rows: int, dimension: int) -> tuple[Path, Path]:
    """Write a WORD model of made-up words and random vectors, and its export for model2vec."""
    # In a process of its own, so that this one stays small.
    program = f"""
import numpy as np
from paranmt_hf import export_encoder
from words import static_embedding, word_tokenizer
units = ["[UNK]", "the", "cat", "sat", "on", "mat", ".", *(f"w{{number:06}}" for number in range({rows} - 7))]
weight = np.random.default_rng(1).standard_normal(({rows}, {dimension}), np.float32)
weight[0] = 0
static_embedding(word_tokenizer(), units, weight).save_pretrained({str(folder / "word")!r}, create_model_card=False)
export_encoder({str(folder / "word")!r}, {str(folder / "model2vec")!r}, format="model2vec")
"""
    tree = f"{HERE}{os.pathsep}{HERE / 'benchmarks'}"
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": tree}, check=True)
    return folder / "word", folder / "model2vec"


def systems(word: Path, exported: Path, rows: int, before: Path | None) -> list[System]:
    """What is measured, in the order in which it takes turns."""
    carried, large = "the carried encoder", f"WORD, {rows:,} words"
    found = [
        System("Python alone", "pass"),
        System("numpy and pyarrow alone", "import numpy, pyarrow.compute"),
        System(f"StaticEncoder, {carried}", STATIC.format(folder="")),
        System(f"StaticEncoder, {carried}, and its `similarity`", STATIC.format(folder="") + SIMILARITY),
        System(f"StaticEncoder, {large}", STATIC.format(folder=repr(str(word)))),
        System(f"load, {carried}", OURS.format(folder="")),
        System(f"load, {large}", OURS.format(folder=repr(str(word)))),
        System(f"model2vec, {large}", MODEL2VEC.format(folder=repr(str(exported)))),
        System(f"sentence-transformers, {large}", STOCK.format(folder=repr(str(word)))),
    ]
    if before is not None:
        tree = before.resolve()
        if not (tree / "paranmt_hf" / "__init__.py").is_file():
            raise SystemExit(f"--before {before}: there is no paranmt_hf in it")
        found += [
            System(f"load before, {carried}", OURS.format(folder=""), tree),
            System(f"load before, {carried}, and its `similarity`", OURS.format(folder="") + SIMILARITY, tree),
            System(f"load before, {large}", OURS.format(folder=repr(str(word))), tree),
        ]
    return found


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="folder of another tree of this package")
    parser.add_argument("--rows", type=int, default=100_000, help="words of the WORD model (default: %(default)s)")
    parser.add_argument("--dimension", type=int, default=300, help="its dimensions (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        word, exported = make_models(Path(folder), arguments.rows, arguments.dimension)
        measured = systems(word, exported, arguments.rows, arguments.before)
        for repeat in range(arguments.repeats + 1):
            for system in measured:
                result = system.run()
                # The first round compiles bytecode and brings files into memory.
                if repeat:
                    system.runs.append(result)
    print(f"{heading(*PACKAGES)}; {arguments.repeats} runs of each in turn\n")
    print("| | CPU seconds: median (min to max) | wall seconds | peak resident memory, MB |")
    print("|---|---:|---:|---:|")
    for system in measured:
        wall, cpu, memory = (list(values) for values in np.transpose(system.runs))
        print(f"| {system.name} | {spread(cpu, '.2f')} | {spread(wall, '.2f')} | {statistics.median(memory):.0f} |")


if __name__ == "__main__":
    main()
