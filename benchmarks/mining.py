"""Compare paraphrase mining with sentence-transformers and usearch: time, memory, and whether pairs are the same.

    python benchmarks/mining.py make --release RELEASE --captions captions.parquet --sentences 4000000 --out all.txt
    python benchmarks/mining.py compare --text all.txt --sentences 50000 200000 --repeats 3 1
    python benchmarks/mining.py lists --text all.txt --sentences 200000
    python benchmarks/mining.py large --text all.txt --sentences 1000000 4000000

Each measurement is a process of its own; what it needs is encoded in it, with the small encoder of the package.
`make` writes the distinct sentences of a release's two sides and of captions, and then sentences of these of which a
word was dropped, drawn by a seed, until there are enough.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from commands import in_turn

SEED = 1
# The defaults of the peer.
TOP, MOST = 100, 500_000


def make(arguments: argparse.Namespace) -> None:
    """Write distinct sentences into a file, as many as were asked for."""
    columns = []
    for path in sorted((arguments.release / "data").glob("*.parquet")):
        table = pq.read_table(path, columns=["reference", "translation"])
        columns += [*table["reference"].chunks, *table["translation"].chunks]
    captions = pq.read_table(arguments.captions)
    columns += [
        chunk for name in captions.column_names for chunk in captions[name].chunks if chunk.type == pa.string()
    ]
    found = pc.unique(pa.chunked_array(columns)).to_pylist()
    generator = np.random.default_rng(SEED)
    found = [found[index] for index in generator.permutation(len(found))]
    whole, seen = len(found), set(found)
    while len(found) < arguments.sentences:
        for index, draw in zip(generator.integers(whole, size=100_000), generator.random(100_000), strict=True):
            words = found[index].split()
            del words[int(draw * len(words))]
            text = " ".join(words)
            if text and text not in seen:
                seen.add(text)
                found.append(text)
    arguments.out.write_text("".join(f"{text}\n" for text in found[: arguments.sentences]), encoding="utf8")
    print(
        f"{arguments.out}: {min(whole, arguments.sentences):,} sentences as they are, {arguments.sentences:,} in all"
    )


class Memory:
    """The peak memory of this process in GB, without the files that it maps; it is looked at ten times a second."""

    def __init__(self) -> None:
        self.own = 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("RssAnon"):
                    self.own = max(self.own, int(line.split()[1]) / 1e6)
            time.sleep(0.1)


def ours(text: Path, result: Path, **settings: object) -> None:
    """Mine the pairs of a text with this package, and write them to `result`."""
    from paranmt_hf import MineConfig, mine_pairs

    with tempfile.TemporaryDirectory(dir=result.parent) as work:
        made = mine_pairs(text, Path(work) / "pairs.parquet", config=MineConfig(**settings))  # type: ignore[arg-type]
        table = pq.read_table(made.folder, columns=["first_line", "second_line", "cosine"])
    first, second, score = (column.to_numpy() for column in table.columns)
    np.savez(result, first=first - 1, second=second - 1, score=score)


def peer(text: Path, result: Path) -> None:
    """Mine the pairs of a text with sentence-transformers and the same encoder, and write them to `result`."""
    from sentence_transformers.util import paraphrase_mining

    from paranmt_hf import load

    rows = paraphrase_mining(load(), text.read_text(encoding="utf8").splitlines())
    score, first, second = (np.array(column) for column in zip(*rows, strict=True))
    np.savez(result, first=first, second=second, score=score)


def graph(text: Path, result: Path) -> None:
    """Find the ten nearest neighbours of each sentence with usearch, and write the pairs to `result`."""
    from usearch.index import Index

    from paranmt_hf import load

    vectors = load().encode(text.read_text(encoding="utf8").splitlines(), normalize_embeddings=True)
    index = Index(ndim=vectors.shape[1], metric="ip", dtype="f32")
    index.add(np.arange(len(vectors)), vectors, threads=2)
    found = index.search(vectors, 11, threads=2)
    first, rank = np.nonzero(found.keys != np.arange(len(vectors))[:, None])
    second, score = found.keys[first, rank].astype(np.int64), 1 - found.distances[first, rank]
    np.savez(result, first=np.minimum(first, second), second=np.maximum(first, second), score=score)


def usual_lists(text: Path) -> int:
    """Return the number of lists that the sentences of a text get by default."""
    return round(2 * math.sqrt(len(text.read_text(encoding="utf8").splitlines())))


SYSTEMS = {
    "peer": peer,
    "ours": lambda text, result: ours(text, result, top=TOP, max_pairs=MOST, min_score=-1.0, lists=0),
    "exact": lambda text, result: ours(text, result, min_score=-1.0, lists=0),
    "lists": lambda text, result: ours(text, result, min_score=-1.0, lists=usual_lists(text)),
    "lists 4": lambda text, result: ours(text, result, min_score=-1.0, lists=usual_lists(text), probes=4),
    "usearch": graph,
    "large": lambda text, result: ours(text, result),
    "large half": lambda text, result: ours(text, result, precision="float16"),
}


def run(arguments: argparse.Namespace) -> None:
    """Make one measurement in this process."""
    memory, start = Memory(), time.monotonic()
    SYSTEMS[arguments.system](arguments.text, arguments.result)
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = {"wall": time.monotonic() - start, "cpu": used.ru_utime + used.ru_stime}
    print(json.dumps({**seconds, "own": memory.own, "all": used.ru_maxrss / 1e6}))


def measured(system: str, text: Path, result: Path) -> dict[str, float]:
    """Make one measurement in a new process, and return its figures."""
    command = [sys.executable, __file__, "run", system, "--text", str(text), "--result", str(result)]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures = json.loads(found.stdout.splitlines()[-1])
    print(system, {name: round(value, 2) for name, value in figures.items()}, file=sys.stderr, flush=True)
    return figures


def head(text: Path, count: int, folder: Path) -> Path:
    """Write the first `count` sentences of a text into a file, and return its path."""
    path = folder / f"{count}.txt"
    with text.open(encoding="utf8") as file:
        path.write_text("".join(islice(file, count)), encoding="utf8")
    return path


def keys(path: Path, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Read mined pairs, each as a single number [pair], ascending, and their scores [pair]."""
    with np.load(path) as found:
        numbers = found["first"].astype(np.int64) * count + found["second"]
        order = np.argsort(numbers)
        return numbers[order], found["score"][order]


def compare(arguments: argparse.Namespace, folder: Path) -> None:
    """Measure this package and sentence-transformers in turn, and print a table."""
    print("| sentences | | wall s | CPU s | memory, GB | ratio, wall | pairs | pairs of both | largest difference |")
    print("|---:|---|---:|---:|---:|---:|---:|---:|---:|")
    for count, repeats in zip(arguments.sentences, arguments.repeats, strict=True):
        text = head(arguments.text, count, folder)
        figures = in_turn(
            {system: partial(measured, system, text, folder / f"{system}.npz") for system in ("peer", "ours")}, repeats
        )
        (one, one_scores), (two, two_scores) = (keys(folder / f"{name}.npz", count) for name in figures)
        _, left, right = np.intersect1d(one, two, assume_unique=True, return_indices=True)
        gap = float(np.abs(one_scores[left] - two_scores[right]).max())
        ratio = statistics.median(a["wall"] / b["wall"] for a, b in zip(*figures.values(), strict=True))
        for name, system in (("sentence-transformers", "peer"), ("paranmt search mine", "ours")):
            middle = {key: statistics.median(row[key] for row in figures[system]) for key in ("wall", "cpu", "all")}
            more = (
                ("1.0", len(one), "", "") if system == "peer" else (f"{ratio:.1f}", len(two), len(left), f"{gap:.1e}")
            )
            shown = [f"{middle['wall']:.0f}", f"{middle['cpu']:.0f}", f"{middle['all']:.1f}", *map(str, more)]
            print(f"| {count:,} | {name} | {' | '.join(shown)} |", flush=True)


def lists(arguments: argparse.Namespace, folder: Path) -> None:
    """Compare lists and usearch with the exact search, by ten neighbours of each sentence, and print a table."""
    print("| sentences | | wall s | CPU s | memory, GB | neighbours found | of pairs from 0.8 |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    for count in arguments.sentences:
        text, wanted = head(arguments.text, count, folder), np.empty(0)
        for system in ("exact", "lists", "lists 4", "usearch"):
            figures = measured(system, text, folder / "found.npz")
            found, scores = keys(folder / "found.npz", count)
            if system == "exact":
                wanted, near = found, found[scores >= 0.8]
            shares = [f"{np.isin(some, found).mean():.4f}" for some in (wanted, near)]
            shown = [f"{figures['wall']:.0f}", f"{figures['cpu']:.0f}", f"{figures['all']:.1f}", *shares]
            print(f"| {count:,} | {system} | {' | '.join(shown)} |", flush=True)


def large(arguments: argparse.Namespace, folder: Path) -> None:
    """Measure this package alone, on more sentences than the others can hold, and print a table."""
    print("| sentences | | wall s | CPU s | memory, GB | of it no mapped files | pairs |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    for count in arguments.sentences:
        text, system = head(arguments.text, count, folder), "large half" if arguments.half else "large"
        figures = measured(system, text, folder / "found.npz")
        shown = [f"{figures['wall']:.0f}", f"{figures['cpu']:.0f}", f"{figures['all']:.1f}", f"{figures['own']:.1f}"]
        print(
            f"| {count:,} | {system} | {' | '.join(shown)} | {len(keys(folder / 'found.npz', count)[0]):,} |",
            flush=True,
        )


def main() -> None:
    """Parse the command line, and run what it asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("make", "run", "compare", "lists", "large"))
    parser.add_argument("system", nargs="?", choices=SYSTEMS)
    parser.add_argument("--release", type=Path)
    parser.add_argument("--captions", type=Path)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--result", type=Path)
    parser.add_argument("--half", action="store_true", help="float16 vectors")
    parser.add_argument("--sentences", type=int, nargs="+", default=[200_000])
    parser.add_argument("--repeats", type=int, nargs="+", default=[1])
    parser.add_argument("--scratch", type=Path, help="folder for what is in between")
    arguments = parser.parse_args()
    if arguments.command == "make":
        arguments.sentences = arguments.sentences[0]
        make(arguments)
    elif arguments.command == "run":
        run(arguments)
    else:
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
            {"compare": compare, "lists": lists, "large": large}[arguments.command](arguments, Path(folder))


if __name__ == "__main__":
    main()
