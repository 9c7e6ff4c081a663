"""Compare the training of Sent2Vec with the authors' program: speed, memory, loss and quality.

Each run is a process of its own with one thread, so that the figures are CPU seconds and peak resident memory of the
whole command as the operating system counts them: ours reads and cuts text as it was written, the program gets the
same text cut beforehand. The two take turns; each repeat reads the lines in another order, and ours has another seed:

    python benchmarks/sent2vec.py --text sentences.txt --sts STS --program sent2vec/fasttext --repeats 5 3
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from commands import heading, measured, paranmt, python, spread
from tokenizers import Tokenizer
from words import word_tokenizer, words_of

from paranmt_hf import evaluate

DIMENSION, BUCKETS, THRESHOLD, RARE = 300, 2_000_000, 1e-4, 5
# Shares of a training run at which losses are compared.
POINTS = (0.1, 0.25, 0.5, 0.75, 1.0)


@dataclass
class Run:
    """The figures of a run: words read, its cost, mean loss of all targets up to each of `POINTS`, and STS 2014."""

    words: int
    cpu: float
    memory: float
    losses: list[float]
    sts: float


def ours(text: Path, folder: Path, order: int, epochs: int, seed: int, sts: Path) -> Run:
    """Train with this package, and return the figures of the run."""
    out = folder / "model"
    options = {
        **{"dimension": DIMENSION, "min-count": RARE, "epochs": epochs, "ngrams": order, "seed": seed},
        "steps": f"min_target_count={RARE},threshold={THRESHOLD}",
        "ngram-settings": f"dropped_ngrams=2,buckets={BUCKETS}",
        # Makes losses comparable: like the program, ours then trains n-grams that span the target's place.
        "context": "program",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    took = paranmt("train-sent2vec", text, "--out", out, *words)
    course = json.loads((out / "sent2vec.json").read_bytes())["course"]
    return Run(course["words"], took.cpu, took.memory, curve(course["losses"]), score(out, sts))


def curve(losses: list[list[float]]) -> list[float]:
    """Return the mean loss from the beginning to each of `POINTS`.

    `losses` holds numbers of words read, each with the mean loss since the entry before.
    """
    ends, means = np.array(losses).T
    sums = np.cumsum(np.diff(ends, prepend=0) * means) / ends
    return np.interp(np.array(POINTS) * ends[-1], ends, sums).tolist()


def program(path: Path, text: Path, folder: Path, order: int, epochs: int, sts: Path) -> Run:
    """Train with the authors' program, which has no seed, and return the figures of the run."""
    options = {
        **{"dim": DIMENSION, "minCount": RARE, "minCountLabel": RARE, "t": THRESHOLD, "epoch": epochs, "lr": 0.2},
        # The program divides by the number of buckets even if there are no n-grams, so it must not be 0.
        **{"wordNgrams": order, "dropoutK": 2, "bucket": BUCKETS if order > 1 else 1, "neg": 10, "thread": 1},
    }
    words = [word for name, value in options.items() for word in (f"-{name}", str(value))]
    log = folder / "log"
    took = measured([path.resolve(), "sent2vec", "-input", text, "-output", folder / "theirs", *words], log=log)
    shown = re.findall(r"Progress: ([\d.]+)%.*?loss: ([\d.]+)", log.read_text(errors="replace"))
    shares, losses = np.array(shown, float).T
    model = folder / "theirs.bin"
    paranmt("encoder", "convert", model, "--out", folder / "converted", "--license", "unknown")
    found = np.interp(POINTS, shares / 100, losses).tolist()
    return Run(epochs * tokens_of(model), took.cpu, took.memory, found, score(folder / "converted", sts))


def tokens_of(path: Path) -> int:
    """Read the number of tokens in the training text from a model of the program, see `saveModel` in `fasttext.cc`."""
    with path.open("rb") as file:
        # Before it are fourteen settings of 32 bits, one of 64, and three sizes of the dictionary.
        file.seek(14 * 4 + 8 + 3 * 4)
        return int(np.fromfile(file, np.int64, 1)[0])


def score(model: Path, sts: Path) -> float:
    """Return the mean of Pearson's r times 100 over the sets of STS 2014."""
    (result,) = evaluate(model, data=sts, bootstrap=0)
    return 100 * (result.value("STS14") or 0.0)


def encoding_rates(model: Path, text: Path, sentences: int = 20_000) -> list[float]:
    """Return the words per CPU second of a stock StaticEmbedding, five times the best of several batch sizes."""
    code = (
        "import os; os.environ['TOKENIZERS_PARALLELISM'] = 'false'\n"
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
    return [float(rate) for rate in python(code, model, text, str(sentences)).split()]


def write_texts(tokenizer: Tokenizer, text: Path, folder: Path, lines: int, seed: int) -> tuple[Path, Path, float]:
    """Write lines in a seeded order, as they are and cut; return both files and the mean number of words in a line."""
    chosen = text.read_text(encoding="utf8").split("\n")[:lines]
    order = np.random.default_rng(seed).permutation(len(chosen))
    chosen = [" ".join(chosen[index].split()) for index in order.tolist()]
    plain, cut = folder / "plain.txt", folder / "cut.txt"
    plain.write_text("\n".join(chosen) + "\n", encoding="utf8")
    words = [words_of(tokenizer, line) for line in chosen]
    cut.write_text("".join(f"{' '.join(line)}\n" for line in words), encoding="utf8")
    return plain, cut, sum(map(len, words)) / len(words)


def row(name: str, runs: Sequence[Run]) -> str:
    """Return a row of the table: medians, and the range of the rate and of the quality."""
    losses = " / ".join(f"{statistics.median(run.losses[index] for run in runs):.3f}" for index in range(len(POINTS)))
    memory = statistics.median(run.memory for run in runs)
    rate, quality = spread([run.words / run.cpu for run in runs]), spread([run.sts for run in runs], ".1f")
    return f"| {name} | {len(runs)} | {rate} | {memory:.2f} | {losses} | {quality} |"


def main() -> None:
    """Parse the command line, measure, print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="one sentence on a line")
    parser.add_argument("--lines", type=int, default=230_000, help="maximum number of them (default: %(default)s)")
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
    print(f"{heading('numba', 'numpy', 'torch', 'sentence-transformers')}; one thread\n")
    tokenizer = word_tokenizer()
    for order, repeats in zip(arguments.orders, arguments.repeats, strict=True):
        own: list[Run] = []
        other: list[Run] = []
        encoding: list[float] = []
        length = 0.0
        for seed in range(repeats + 1):
            with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
                folder = Path(name).resolve()
                # A run on a few lines compiles the kernels before the first run that counts.
                lines = arguments.lines if seed else min(arguments.lines, 2_000)
                plain, cut, length = write_texts(tokenizer, arguments.text, folder, lines, seed)
                mine = ours(plain, folder, order, arguments.epochs, seed, arguments.sts)
                if not seed:
                    continue
                own.append(mine)
                if order == 1 and seed == 1:
                    encoding = encoding_rates(folder / "model", plain)
                if path is not None:
                    other.append(program(path, cut, folder, order, arguments.epochs, arguments.sts))
                # These lines remain if the benchmark is interrupted.
                print(f"order {order}, repeat {seed}: {own[-1]} {other[-1:]}", file=sys.stderr, flush=True)
        print(f"### {'words' if order == 1 else f'n-grams of up to {order} words'}\n")
        shown = ", ".join(f"{share:.0%}" for share in POINTS)
        print(f"| | runs | words per CPU second: median (range) | memory, GB | mean loss up to {shown} | STS 2014 |")
        print("|---|---:|---:|---:|---|---:|")
        print(row("paranmt_hf", own))
        if other:
            print(row("the authors' program", other))
            rates = [run.words / run.cpu * past.cpu / past.words for run, past in zip(own, other, strict=True)]
            print(f"\nratio {spread(rates, '.2f')}")
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
