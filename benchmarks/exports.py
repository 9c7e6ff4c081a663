"""Measure how fast exported encoders are, and how near their vectors are to those of the encoder.

Each export encodes the same sentences as its source, one after the other, in one process. The source starts with
nothing remembered each time.

    python benchmarks/exports.py word trigram lstm word-trigram --text news.en
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from commands import heading, spread

from paranmt_hf import InputError, export_encoder, load

FORMATS = ("static", "tokenizers", "model2vec", "onnx", "transformers.js")


def rates(
    encode: Callable[[list[str]], np.ndarray], prepare: Callable[[], object], sentences: list[str], repeats: int
) -> list[float]:
    """Return the sentences per CPU second of each repeat; `prepare` is called before the clock starts."""
    found = []
    for _ in range(repeats):
        prepare()
        started = time.process_time()
        encode(sentences)
        found.append(len(sentences) / (time.process_time() - started))
    return found


def unlike(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Return the largest distance from 1 of a cosine between both vectors of a sentence, without vectors of zeros."""
    theirs, ours = theirs.astype(np.float64), ours.astype(np.float64)
    lengths = np.linalg.norm(theirs, axis=1) * np.linalg.norm(ours, axis=1)
    some = lengths > 0
    return float(np.abs(1 - (theirs * ours).sum(axis=1)[some] / lengths[some]).max())


def main() -> None:
    """Parse the command line, export, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="folders of encoders; formats that do not hold one are left out")
    parser.add_argument("--text", type=Path, required=True, help="file of sentences, one a line")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with arguments.text.open(encoding="utf8") as file:
        sentences = [line.rstrip("\n") for line in islice(file, arguments.sentences)]
    print(f"{heading('torch', 'sentence-transformers', 'tokenizers', 'model2vec', 'onnxruntime')}\n")
    print("| encoder | read by | sentences per CPU second: median (min to max) | largest difference | 1 - cosine |")
    print("|---|---|---:|---:|---:|")
    for model in arguments.models:
        encoder = load(model, device="cpu")
        ours = encoder.encode(sentences)

        def forget(encoder: Any = encoder) -> None:  # noqa: ANN401
            encoder.forget_average()
            encoder.encode(["a"])

        rows = {"paranmt_hf.load": encoder.encode}
        with tempfile.TemporaryDirectory() as temporary:
            for format in FORMATS:
                try:
                    made = export_encoder(model, Path(temporary) / format, format=format)
                except InputError:
                    continue
                if (read := made.load()) is not None:
                    rows[f"`{format}`"] = read
            for name, encode in rows.items():
                theirs = encode(sentences)
                speeds = rates(encode, forget, sentences, arguments.repeats)
                near = f"{np.abs(theirs - ours).max():.0e} | {unlike(theirs, ours):.0e}"
                print(f"| {model} | {name} | {spread(speeds)} | {near} |", flush=True)


if __name__ == "__main__":
    main()
