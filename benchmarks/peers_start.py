"""Measure the time of static encoders from the start of Python to the first vector, each in its own library.

WordLlama (pip install wordllama), whose table is also read by model2vec (pip install model2vec) and by
sentence-transformers, and ours by both of its objects. Each measurement is a process of its own; the systems take
turns. CPU seconds hardly depend on what else the machine does, wall seconds do.

    python benchmarks/peers_start.py
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from commands import in_turn, measured, spread

SENTENCE = "'A man sings.'"


def wordllama_folder() -> Path:
    """Return the folder of the installed package WordLlama, which holds its table and tokenizer."""
    found = find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("there is no wordllama; install it: pip install wordllama")
    return Path(found.submodule_search_locations[0])


def as_model2vec(package: Path, folder: Path) -> Path:
    """Save WordLlama's table and tokenizer as a model of model2vec, which sentence-transformers reads too."""
    import numpy as np
    from model2vec import StaticModel
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    (table,) = load_file(package / "weights" / "l2_supercat_256.safetensors").values()
    tokenizer = Tokenizer.from_file(str(package / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    StaticModel(table.astype(np.float32), tokenizer).save_pretrained(folder / "model2vec")
    return folder / "model2vec"


def systems(package: Path, model2vec: Path) -> dict[str, str]:
    """Return the Python program of each system, by name."""
    ours, table = "import paranmt_hf; paranmt_hf.", repr(str(model2vec))
    return {
        "`StaticEncoder`, the carried encoder": f"{ours}StaticEncoder.from_pretrained().encode({SENTENCE})",
        "`StaticEncoder`, base": f"{ours}StaticEncoder.from_pretrained('base').encode({SENTENCE})",
        # Without this folder WordLlama would look for its tokenizer elsewhere, and download it.
        "WordLlama": "from wordllama import WordLlama; "
        f"WordLlama.load(cache_dir={str(package)!r}, disable_download=True).embed({SENTENCE})",
        "model2vec, WordLlama's table": "from model2vec import StaticModel; "
        f"StaticModel.from_pretrained({table}).encode({SENTENCE})",
        "`load`, the carried encoder (imports torch)": f"{ours}load().encode({SENTENCE})",
        "sentence-transformers, WordLlama's table (imports torch)": "from sentence_transformers import "
        f"SentenceTransformer; SentenceTransformer({table}, device='cpu').encode({SENTENCE})",
    }


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    package = wordllama_folder()
    with tempfile.TemporaryDirectory() as folder:
        programs = systems(package, as_model2vec(package, Path(folder)))
        measurements = {
            name: partial(measured, [sys.executable, "-c", program], one_core=False)
            for name, program in programs.items()
        }
        runs = in_turn(measurements, arguments.repeats + 1)
    print("| from the start of Python to the first vector | CPU s, median (range) | wall s, median (range) |")
    print("|---|---:|---:|")
    # The first round does not count, because it compiles bytecode and reads files into memory.
    for name, (_, *own) in runs.items():
        cpu, wall = ([getattr(run, figure) for run in own] for figure in ("cpu", "wall"))
        print(f"| {name} | {spread(cpu, '.2f')} | {spread(wall, '.2f')} |")


if __name__ == "__main__":
    main()
