"""Compare the speed of a converted Sent2Vec model with WORD, and with the authors' program on the same model.

The program is run in turn with ours, as its users run it: `print-sentence-vectors`, text on standard input, vectors as
text on standard output, which is discarded. The CPU time of the same command on one line, which reads the model, is
subtracted. Ours gets text as people write it, the program the same sentences lower-cased and cut into words.

    python benchmarks/sent2vec_encoding.py --program fasttext --model bigrams.bin --pairs pairs.parquet
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from commands import heading, in_turn, measured, paranmt
from words import word_tokenizer, words_of

from paranmt_hf import load

THEIRS = "the program, less the time to read the model"
# Options of the conversion by the name of its folder.
CONVERSIONS = {"blanks": ["--cut", "blanks"], "raw": []}


def ours(encoder: Any, sentences: list[str]) -> float:  # noqa: ANN401 - what `load` gives
    """Return the CPU seconds of our encoder, which remembers nothing of earlier text."""
    encoder.forget_average()
    start = time.process_time()
    encoder.encode(sentences)
    return time.process_time() - start


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True, help="the compiled program")
    parser.add_argument("--model", type=Path, required=True, help="a .bin model of the program, with n-grams")
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet with a column reference")
    parser.add_argument("--sentences", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    column = pq.read_table(chosen.pairs, columns=["reference"])["reference"]
    sentences = [" ".join(text.split()) for text in column.slice(0, chosen.sentences).to_pylist()]
    tokenizer = word_tokenizer()
    tokens = [" ".join(words_of(tokenizer, sentence)) for sentence in sentences]
    command = [chosen.program.resolve(), "print-sentence-vectors", chosen.model.resolve()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, options in CONVERSIONS.items():
            paranmt("encoder", "convert", chosen.model, "--out", folder / kind, "--license", "unknown", *options)
        for file, lines in (("text", tokens), ("line", tokens[:1])):
            (folder / file).write_text("\n".join(lines) + "\n", encoding="utf8")
        encoders = {kind: load(folder / kind) for kind in CONVERSIONS}
        printed = subprocess.run(
            command, input="\n".join(tokens[:2000]) + "\n", capture_output=True, text=True, check=True
        ).stdout
        theirs = np.array([line.split() for line in printed.splitlines()], np.float32)
        difference = float(np.abs(theirs - encoders["blanks"].encode(tokens[:2000])).max())
        runs: dict[str, Callable[[], float]] = {
            THEIRS: lambda: (
                measured(command, stdin=folder / "text").cpu - measured(command, stdin=folder / "line").cpu
            ),
            "Sent2Vec converted with --cut blanks, the program's text": lambda: ours(encoders["blanks"], tokens),
            "Sent2Vec converted, raw text": lambda: ours(encoders["raw"], sentences),
        }
        seconds = in_turn(runs, chosen.repeats)
    length = sum(map(len, map(str.split, tokens))) / len(tokens)
    print(
        f"{len(sentences):,} references of {length:.1f} tokens, {theirs.shape[1]} dimensions, {chosen.repeats} "
        f"repeats in turn. {heading('torch', 'numpy')}. Largest difference of a number: {difference:.1e}.\n"
    )
    print("| | sentences per CPU second, median | min | max | ratio |\n|---|---:|---:|---:|---:|")
    first = statistics.median(seconds[THEIRS])
    for label, values in seconds.items():
        rates = sorted(len(sentences) / value for value in values)
        middle = statistics.median(values)
        figures = f"{len(sentences) / middle:,.0f} | {rates[0]:,.0f} | {rates[-1]:,.0f} | {first / middle:.1f}"
        print(f"| {label} | {figures} |")


if __name__ == "__main__":
    main()
