"""Measure the CPU time of encoding a single string, each system in processes of its own.

`StaticEncoder` and `load` are measured with the carried small encoder and with a WORD model, the peers with the same
WORD model. `--threads` sets the threads that torch uses. `--before` is another tree of this package, such as an older
commit, whose `load` is measured too.

    python benchmarks/one_sentence.py --text lines.txt --threads 1
    python benchmarks/one_sentence.py --text lines.txt --threads 2 --before ../before
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from cold_start import make_models
from commands import PROJECT, heading, in_turn, python, spread

PACKAGES = ("numpy", "tokenizers", "torch", "sentence-transformers", "model2vec")
SYSTEMS = {
    "StaticEncoder": "import paranmt_hf; model = paranmt_hf.StaticEncoder.from_pretrained({folder!r})",
    "load": "import paranmt_hf; model = paranmt_hf.load({folder!r}).eval()",
    "load before, as it comes": "import paranmt_hf; model = paranmt_hf.load({folder!r})",
    "load before, as a SentenceTransformer": "import paranmt_hf; model = paranmt_hf.load({folder!r}).eval()",
    "SentenceTransformer": (
        "from sentence_transformers import SentenceTransformer; model = SentenceTransformer({folder!r}, device='cpu')"
    ),
    "model2vec": "from model2vec import StaticModel; model = StaticModel.from_pretrained({folder!r})",
}
# The first half of the sentences only warms up the system.
MEASURE = """
import sys, time
sentences = [line.rstrip() for line in open(sys.argv[1], encoding="utf8")][:2 * {count}]
for sentence in sentences[:{count}]:
    model.encode(sentence)
started = time.process_time()
for sentence in sentences[{count}:]:
    model.encode(sentence)
print((time.process_time() - started) / {count} * 1e6)
"""


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="English text, a sentence a line")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--before", type=Path, help="folder of another tree of this package")
    arguments = parser.parse_args()
    systems: dict[str, Callable[[], str]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        word, exported = make_models(Path(temporary), 100_000, 300)
        for name, start in SYSTEMS.items():
            if "before" in name and arguments.before is None:
                continue
            folders = {"WORD": str(exported if name == "model2vec" else word)}
            if "paranmt_hf" in start:
                folders["the carried encoder"] = "small"
            tree = arguments.before.resolve() if "before" in name else PROJECT
            for model, folder in folders.items():
                program = start.format(folder=folder) + MEASURE.format(count=arguments.sentences)
                systems[f"{model}: {name}"] = partial(
                    python, program, arguments.text.resolve(), project=tree, threads=arguments.threads
                )
        printed = in_turn(systems, arguments.repeats)
    print(f"{heading(*PACKAGES)}; threads: {arguments.threads}; {arguments.repeats} runs of each in turn\n")
    print("| | microseconds of CPU time: median (min to max) |")
    print("|---|---:|")
    for name, values in sorted(printed.items()):
        print(f"| {name} | {spread(list(map(float, values)), '.1f')} |")


if __name__ == "__main__":
    main()
