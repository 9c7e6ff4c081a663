"""How fast a converted Sent2Vec model encodes, beside WORD and beside the authors' program on the same model.

The program is run in turn with ours, as its users run it: `print-sentence-vectors`, text on standard input, vectors as
text on standard output, which nobody reads. The CPU time of the same command on one line, which reads the model, is
taken off. Ours gets the text as people write it, the program the same sentences lower-cased and cut into words.

    python benchmarks/sent2vec_encoding.py --program fasttext --model bigrams.bin --pairs pairs.parquet
"""

from __future__ import annotations

import argparse
import platform
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch

from paranmt_hf import load
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.training.convert import ConvertConfig, convert_model

THEIRS = "the program, less the time to read the model"


def cut(sentences: list[str]) -> list[str]:
    """Write sentences as the program wants them: tokens with blanks between."""
    (table,) = WordTokenizer().tables(sentences)
    words, bounds = [table.vocabulary[token] for token in table.ids], table.offsets
    return [" ".join(words[bounds[index] : bounds[index + 1]]) for index in range(len(table))]


def cpu_seconds(program: str, model: Path, text: Path) -> float:
    """CPU seconds of the program on a text."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    with text.open("rb") as lines:
        subprocess.run([program, "print-sentence-vectors", model], stdin=lines, stdout=subprocess.DEVNULL, check=True)
    return used() - before


def ours(encoder: SentenceEncoder, sentences: list[str]) -> float:
    """CPU seconds of our encoder, with nothing remembered of earlier text."""
    encoder.forget_average()
    start = time.process_time()
    encoder.encode(sentences)
    return time.process_time() - start


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the compiled program")
    parser.add_argument("--model", type=Path, required=True, help="a .bin model of the program, with n-grams")
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet with a column reference")
    parser.add_argument("--sentences", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    column = pq.read_table(chosen.pairs, columns=["reference"])["reference"]
    sentences = [" ".join(text.split()) for text in column.slice(0, chosen.sentences).to_pylist()]
    tokens = cut(sentences)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        licence = "unknown"
        blanks = convert_model(
            chosen.model, folder / "blanks", license=licence, config=ConvertConfig(cut="blanks")
        ).folder
        words = convert_model(chosen.model, folder / "words", license=licence, config=ConvertConfig(order=1)).folder
        raw = convert_model(chosen.model, folder / "raw", license=licence).folder
        for file, lines in (("text", tokens), ("line", tokens[:1])):
            (folder / file).write_text("\n".join(lines) + "\n", encoding="utf8")
        encoders = {kind: load(path) for kind, path in (("words", words), ("raw", raw), ("blanks", blanks))}
        printed = subprocess.run(
            [chosen.program, "print-sentence-vectors", chosen.model],
            input="\n".join(tokens[:2000]) + "\n",
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        theirs = np.array([line.split() for line in printed.splitlines()], np.float32)
        difference = float(np.abs(theirs - encoders["blanks"].encode(tokens[:2000])).max())
        runs: dict[str, Callable[[], float]] = {
            THEIRS: lambda: (
                cpu_seconds(chosen.program, chosen.model, folder / "text")
                - cpu_seconds(chosen.program, chosen.model, folder / "line")
            ),
            "Sent2Vec converted with --cut blanks, the program's text": lambda: ours(encoders["blanks"], tokens),
            "Sent2Vec converted, raw text": lambda: ours(encoders["raw"], sentences),
            "WORD, the same words alone, raw text": lambda: ours(encoders["words"], sentences),
        }
        seconds: dict[str, list[float]] = {label: [] for label in runs}
        for _ in range(chosen.repeats):
            for label, run in runs.items():
                seconds[label].append(run())
    length = sum(map(len, map(str.split, tokens))) / len(tokens)
    print(
        f"{len(sentences):,} references of {length:.1f} tokens, {theirs.shape[1]} dimensions, {chosen.repeats} "
        f"repeats in turn. {date.today()}, {platform.machine()}, Python {platform.python_version()}, "
        f"torch {version('torch')}, numpy {version('numpy')}. Largest difference of a number: {difference:.1e}.\n"
    )
    print("| | sentences per CPU second, median | min | max | ratio |\n|---|---:|---:|---:|---:|")
    first = statistics.median(seconds[THEIRS])
    for label, values in seconds.items():
        rates = sorted(len(sentences) / value for value in values)
        median = len(sentences) / statistics.median(values)
        ratio = first / statistics.median(values)
        print(f"| {label} | {median:,.0f} | {rates[0]:,.0f} | {rates[-1]:,.0f} | {ratio:.1f} |")


if __name__ == "__main__":
    main()
