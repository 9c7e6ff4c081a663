"""How fast Sent2Vec trains, in what memory, to what loss and quality; the authors' program beside it.

Each run is a process of its own with one thread, so that the figures are CPU seconds and peak resident memory of the
whole command as the operating system counts them: ours reads and cuts text as it was written, the program gets the
same text cut beforehand. The two take turns; each repeat reads the lines in another order, and ours has another seed:

    python benchmarks/sent2vec.py --text sentences.txt --sts STS --program sent2vec/fasttext --repeats 5 3
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf import evaluate_sts
from paranmt_hf.encoders.modules.paranmt_averages import NgramEmbedding
from paranmt_hf.encoders.sentence_encoder import SentenceEncoder
from paranmt_hf.evaluation.sts_data import read_sts
from paranmt_hf.text.tokens import WordTokenizer
from paranmt_hf.training.sent2vec.config import Sent2VecHistory, Sent2VecRecord

DIMENSION, BUCKETS, THRESHOLD, RARE = 300, 2_000_000, 1e-4, 5
# Shares of a run at which the losses are compared.
POINTS = (0.1, 0.25, 0.5, 0.75, 1.0)


@dataclass
class Run:
    """Figures of a run: words read, what it took, mean loss of all targets up to each of `POINTS`, STS 2014."""

    words: int
    cpu: float
    memory: float
    losses: list[float]
    sts: float


def measured(command: Sequence[str], log: Path) -> tuple[float, float]:
    """Run a command; returns CPU seconds and peak resident memory in GB."""
    child = os.fork()
    if child == 0:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.execv(command[0], list(command))
    _, status, usage = os.wait4(child, 0)
    if status:
        raise SystemExit(
            f"failed with status {status}: {' '.join(command)}\n{log.read_text(errors='replace')[-2000:]}"
        )
    assert isinstance(usage, resource.struct_rusage)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e6


def ours(text: Path, folder: Path, order: int, epochs: int, seed: int, sts: Path) -> Run:
    """Train with this package."""
    out = folder / "model"
    options = {
        **{"dimension": DIMENSION, "min-count": RARE, "epochs": epochs, "ngrams": order, "seed": seed},
        "steps": f"min_target_count={RARE},threshold={THRESHOLD}",
        # So that the losses are of the same: the program trains n-grams over the target's place.
        "ngram-settings": f"dropped_ngrams=2,buckets={BUCKETS}",
        "context": "program",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = [
        sys.executable,
        "-m",
        "paranmt_hf.cli",
        "train-sent2vec",
        str(text),
        "--out",
        str(out),
        *words,
    ]
    cpu, memory = measured(command, folder / "log")
    from paranmt_hf import load

    course = Sent2VecRecord.read(out).course
    return Run(course.words, cpu, memory, curve(course), score(load(out), sts))


def curve(course: Sent2VecHistory) -> list[float]:
    """Mean loss from the beginning to each of `POINTS`."""
    ends = np.array([words for words, _ in course.losses])
    means = np.cumsum(np.diff(ends, prepend=0) * [loss for _, loss in course.losses]) / ends
    return np.interp(np.array(POINTS) * course.words, ends, means).tolist()


def program(path: Path, text: Path, folder: Path, order: int, epochs: int, sts: Path) -> Run:
    """Train with the authors' program; it has no seed."""
    options = {
        **{"dim": DIMENSION, "minCount": RARE, "minCountLabel": RARE, "t": THRESHOLD, "epoch": epochs, "lr": 0.2},
        # It divides by the number of buckets, also without n-grams.
        **{"wordNgrams": order, "dropoutK": 2, "bucket": BUCKETS if order > 1 else 1, "neg": 10, "thread": 1},
    }
    words = [word for name, value in options.items() for word in (f"-{name}", str(value))]
    command = [str(path), "sent2vec", "-input", str(text), "-output", str(folder / "model"), *words]
    cpu, memory = measured(command, folder / "log")
    shown = re.findall(r"Progress: ([\d.]+)%.*?loss: ([\d.]+)", (folder / "log").read_text(errors="replace"))
    shares, losses = np.array(shown, float).T
    encoder, tokens = read_program(folder / "model.bin")
    return Run(epochs * tokens, cpu, memory, np.interp(POINTS, shares / 100, losses).tolist(), score(encoder, sts))


def read_program(path: Path) -> tuple[SentenceEncoder, int]:
    """Read a model of the program (`saveModel` in its `fasttext.cc`); returns it and the tokens of its text."""
    with path.open("rb") as file:
        _, _, _, _, _, _, _, order, _, _, buckets, *_ = np.fromfile(file, np.int32, 14).tolist()
        file.seek(8, os.SEEK_CUR)
        size, _, _ = np.fromfile(file, np.int32, 3).tolist()
        tokens, _ = np.fromfile(file, np.int64, 2).tolist()
        content, units = file.peek(0) and Path(path).read_bytes()[file.tell() : file.tell() + 200 * size], []
        at = 0
        for _ in range(size):
            end = content.index(b"\0", at)
            units.append(content[at:end].decode())
            at = end + 10
        file.seek(at + 1, os.SEEK_CUR)
        rows, width = np.fromfile(file, np.int64, 2).tolist()
        weight = np.fromfile(file, np.float32, rows * width).reshape(rows, width)
    units[0], weight[0] = "[UNK]", 0
    hashes = np.arange(buckets if order > 1 else 0)
    module = NgramEmbedding(
        units, weight[: size + len(hashes)], order=order, buckets=buckets if order > 1 else 0, hashes=hashes
    )
    return SentenceEncoder(modules=[module], device="cpu", similarity_fn_name="cosine"), tokens


def score(encoder: SentenceEncoder, sts: Path) -> float:
    """Mean of Pearson's r times 100 over the sets of STS 2014."""
    sets = [part for part in read_sts(sts) if part.year == "STS14"]
    result = evaluate_sts(encoder, sets, name="sent2vec", bootstrap=0)
    return 100 * (result.value("STS14") or 0.0)


def encoding_rates(model: Path, text: Path, sentences: int = 20_000) -> list[float]:
    """Words per CPU second with which stock StaticEmbedding encodes, the best of several batch sizes, five times."""
    code = (
        "import sys, time, torch; from sentence_transformers import SentenceTransformer; torch.set_num_threads(1)\n"
        "model = SentenceTransformer(sys.argv[1], device='cpu')\n"
        "lines = open(sys.argv[2], encoding='utf8').read().split('\\n')[:int(sys.argv[3])]\n"
        "for _ in range(5):\n"
        "    best = []\n"
        "    for size in (32, 128, 512, 2048):\n"
        "        start = time.process_time(); model.encode(lines, batch_size=size, show_progress_bar=False)\n"
        "        best.append(time.process_time() - start)\n"
        "    print(len(lines) / min(best))\n"
    )
    command = [sys.executable, "-c", code, str(model), str(text), str(sentences)]
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.split()
    return [float(rate) for rate in printed]


def write_texts(text: Path, folder: Path, lines: int, seed: int) -> tuple[Path, Path, float]:
    """Write lines in a seeded order, as they are and cut; returns both files and the words of a sentence."""
    chosen = text.read_text(encoding="utf8").split("\n")[:lines]
    order = np.random.default_rng(seed).permutation(len(chosen))
    chosen = [" ".join(chosen[index].split()) for index in order.tolist()]
    plain, cut, words = folder / "plain.txt", folder / "cut.txt", 0
    plain.write_text("\n".join(chosen) + "\n", encoding="utf8")
    tokenizer = WordTokenizer()
    with cut.open("w", encoding="utf8") as file:
        for start in range(0, len(chosen), 50_000):
            (table,) = tokenizer.tables(pa.array(chosen[start : start + 50_000]))
            ids, bounds, known = table.ids.tolist(), table.offsets.tolist(), table.vocabulary
            for low, high in zip(bounds[:-1], bounds[1:], strict=True):
                file.write(" ".join(known[index] for index in ids[low:high]) + "\n")
            words += len(ids)
    return plain, cut, words / len(chosen)


def row(name: str, runs: Sequence[Run]) -> str:
    """A row of the table: medians, and the range of the rate and of the quality."""
    rates = sorted(run.words / run.cpu for run in runs)
    scores = sorted(run.sts for run in runs)
    losses = " / ".join(f"{statistics.median(run.losses[index] for run in runs):.3f}" for index in range(len(POINTS)))
    memory = statistics.median(run.memory for run in runs)
    rate = f"{statistics.median(rates):,.0f} ({rates[0]:,.0f} to {rates[-1]:,.0f})"
    quality = f"{statistics.median(scores):.1f} ({scores[0]:.1f} to {scores[-1]:.1f})"
    return f"| {name} | {len(runs)} | {rate} | {memory:.2f} | {losses} | {quality} |"


def main() -> None:
    """Parse the command line, measure, print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="one sentence on a line")
    parser.add_argument("--lines", type=int, default=230_000, help="so many of them (default: %(default)s)")
    parser.add_argument("--sts", type=Path, required=True, help="folder with the STS sets")
    parser.add_argument("--program", type=Path, help="the authors' program, compiled; without it, ours alone")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--orders", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, nargs="+", default=[5, 3], help="for each of the orders")
    parser.add_argument("--folder", type=Path, help="where to put models of up to 3 GB")
    arguments = parser.parse_args()
    path = arguments.program if arguments.program and arguments.program.is_file() else None
    if path is None:
        print("The authors' program is not there: figures of ours alone. Compile it from epfml/sent2vec: make.\n")
    packages = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy", "torch", "sentence-transformers"))
    print(f"{date.today()}, {platform.machine()}, one thread, Python {platform.python_version()}, {packages}\n")
    for order, repeats in zip(arguments.orders, arguments.repeats, strict=True):
        own: list[Run] = []
        other: list[Run] = []
        encoding: list[float] = []
        length = 0.0
        for seed in range(repeats + 1):
            with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
                folder = Path(name)
                # Before the first run that counts the kernels are compiled, on a few lines.
                lines = arguments.lines if seed else 2_000
                plain, cut, length = write_texts(arguments.text, folder, lines, seed)
                mine = ours(plain, folder, order, arguments.epochs, seed, arguments.sts)
                if not seed:
                    continue
                own.append(mine)
                if order == 1 and seed == 1:
                    encoding = encoding_rates(folder / "model", plain)
                if path is not None:
                    other.append(program(path, cut, folder, order, arguments.epochs, arguments.sts))
                # What there is of an interrupted benchmark.
                print(f"order {order}, repeat {seed}: {own[-1]} {other[-1:]}", file=sys.stderr, flush=True)
        print(f"### {'words' if order == 1 else f'n-grams of up to {order} words'}\n")
        shown = ", ".join(f"{share:.0%}" for share in POINTS)
        print(f"| | runs | words per CPU second: median (range) | memory, GB | mean loss up to {shown} | STS 2014 |")
        print("|---|---:|---:|---:|---|---:|")
        print(row("paranmt_hf", own))
        if other:
            print(row("the authors' program", other))
            rates = [run.words / run.cpu * past.cpu / past.words for run, past in zip(own, other, strict=True)]
            print(f"\nratio {statistics.median(rates):.2f} ({min(rates):.2f} to {max(rates):.2f})")
        if encoding:
            stock = statistics.median(encoding)
            share = statistics.median(run.words / run.cpu for run in own) / (stock * length)
            print(
                f"\nStaticEmbedding encodes {stock:,.0f} sentences ({stock * length:,.0f} words) per CPU second; "
                f"training reads words at {share:.2f} of that rate."
            )
        print(flush=True)


if __name__ == "__main__":
    main()
