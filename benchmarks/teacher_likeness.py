"""Measure how similar an encoder is to its teacher, on sentences that it has not seen.

Sentences are put into groups of neighbours by the teacher. The figure is the mean over the groups, in percent, of
Pearson's correlation between the cosines of all pairs under the encoder and under the teacher. This is hard among
neighbours; every encoder knows that unrelated sentences are unrelated.

    python benchmarks/teacher_likeness.py models/word small --teacher all-MiniLM-L6-v2 --text held.txt
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import paranmt_hf
from paranmt_hf.distillation.likeness import likeness


def main() -> None:
    """Parse the command line, print a line for each encoder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--teacher", required=True)
    parser.add_argument("--text", type=Path, required=True, help="file with a sentence a line")
    arguments = parser.parse_args()
    sentences = list(dict.fromkeys(arguments.text.read_text(encoding="utf8").splitlines()))

    def encode(name: str) -> np.ndarray:
        encoder = paranmt_hf.load(name)
        return np.asarray(encoder.encode(sentences, normalize_embeddings=True), np.float32)

    teacher = encode(arguments.teacher)
    for name in arguments.models:
        print(f"{name}: {100 * likeness(encode(name), teacher):.1f}", flush=True)


if __name__ == "__main__":
    main()
