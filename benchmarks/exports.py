"""How fast exported encoders are, and how near their vectors are to the encoder's own.

Each export encodes the same sentences as its source, one after the other, in one process. The source starts with
nothing remembered each time.

    python benchmarks/exports.py word trigram lstm word-trigram --text news.en
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from paranmt_hf import InputError, load
from paranmt_hf.encoders.export.export import export_encoder, formats
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

PACKAGES = ("torch", "sentence-transformers", "tokenizers", "model2vec", "onnxruntime")


def rates(
    encode: Callable[[list[str]], np.ndarray], prepare: Callable[[], object], sentences: list[str], repeats: int
) -> list[float]:
    """Sentences per CPU second of each repeat."""
    found = []
    for _ in range(repeats):
        prepare()
        started = time.process_time()
        encode(sentences)
        found.append(len(sentences) / (time.process_time() - started))
    return found


def unlike(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Largest distance of a cosine from 1, sentences that are zeros left out."""
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
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    print(f"{date.today()}, {platform.machine()}, Python {platform.python_version()}, {packages}\n")
    print("| encoder | read by | sentences per CPU second: median (min to max) | largest difference | 1 - cosine |")
    print("|---|---|---:|---:|---:|")
    for model in arguments.models:
        encoder = load(model, device="cpu")
        ours = encoder.encode(sentences)

        def forget(encoder: SentenceEncoder = encoder) -> None:
            encoder.forget_average()
            encoder.encode(["a"])

        rows = {"paranmt_hf.load": encoder.encode}
        with tempfile.TemporaryDirectory() as temporary:
            for format in formats():
                try:
                    made = export_encoder(model, Path(temporary) / format, format=format)
                except InputError:
                    continue
                read = formats()[format].read(made.folder)
                assert read is not None
                rows[f"`{format}`"] = read
            for name, encode in rows.items():
                theirs = encode(sentences)
                speeds = rates(encode, forget, sentences, arguments.repeats)
                speed = f"{statistics.median(speeds):,.0f} ({min(speeds):,.0f} to {max(speeds):,.0f})"
                near = f"{np.abs(theirs - ours).max():.0e} | {unlike(theirs, ours):.0e}"
                print(f"| {model} | {name} | {speed} | {near} |", flush=True)


if __name__ == "__main__":
    main()
