"""Measure how fast negatives are mined by torch, compiled loops and int8, and how many are those of float32.

For each encoder mega-batches of real pairs are mined by each way in turn, with the vectors of an encoder after some
training. "agree" is the share of sentences with the same negative as with torch, the last column the mean by which
negatives are less similar.

    python benchmarks/negatives.py --pairs machine-translations.parquet
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from commands import heading
from sentence_transformers import SentenceTransformer
from torch.nn.functional import normalize
from training import Sides, read

from paranmt_hf import EncoderConfig, TrainConfig
from paranmt_hf.encoders.building import build_encoder
from paranmt_hf.encoders.composition import take_apart
from paranmt_hf.encoders.config import UnitKind
from paranmt_hf.encoders.units import count_units, lookup
from paranmt_hf.encoders.vocabulary import Vocabulary, most_frequent
from paranmt_hf.training.cpu_engine import cpu_engine
from paranmt_hf.training.mega_batch import excluded, hardest, mine_negatives
from paranmt_hf.training.pair_store import PairStore, write_pairs
from paranmt_hf.training.token_store import write_tokens

Way = Callable[[torch.Tensor, np.ndarray], np.ndarray]


def vocabulary_of(kind: UnitKind, references: Sequence[pa.Array], size: int) -> Vocabulary:
    """Return a vocabulary of the `size` most frequent units, with made-up ones if the text has too few."""
    found = most_frequent(kind, count_units(references, [kind])[kind], size)
    return Vocabulary(kind, [*found.units, *(f"[{number}]" for number in range(size + 1 - len(found)))])


def store_of(encoder: SentenceTransformer, sides: Sides, folder: Path) -> PairStore:
    """Cut the sentences of pairs into units, and store their rows in the table of an encoder."""
    vocabularies = {part.unit_kind: part.vocabulary for part in take_apart(encoder).parts}  # type: ignore[arg-type]
    readers = {name: lookup(vocabulary) for name, vocabulary in vocabularies.items()}
    columns = (
        (pa.array(sides[0][start : start + 20_000]), pa.array(sides[1][start : start + 20_000]))
        for start in range(0, len(sides[0]), 20_000)
    )
    tokens = write_tokens(columns, folder / "tokens")
    return write_pairs(tokens.batches(), folder, readers)


def by_torch(vectors: torch.Tensor, keys: np.ndarray) -> np.ndarray:
    """Mine negatives with torch in blocks, as on a GPU."""
    rows, columns = excluded(keys)
    bounds = np.searchsorted(rows, np.arange(len(vectors) + 1))
    exclusions = torch.from_numpy(rows), torch.from_numpy(columns)
    return hardest(vectors, exclusions, bounds, block=500).numpy()


WAYS: dict[str, Way] = {
    "torch, float32": by_torch,
    "compiled, float32": partial(mine_negatives, precision="float32"),
    "compiled, int8, then float32": partial(mine_negatives, precision="int8"),
}


def vectors_of(
    config: EncoderConfig, sides: tuple[list[str], list[str]], arguments: argparse.Namespace, folder: Path
) -> list[tuple[torch.Tensor, np.ndarray]]:
    """Train an encoder on all pairs but the last mega-batches, and return the vectors and keys of each of these."""
    columns = [pa.array(side) for side in sides]
    encoder = build_encoder(config, {kind: vocabulary_of(kind, columns, arguments.rows - 1) for kind in config.kinds})
    store = store_of(encoder, sides, folder)
    train_config = TrainConfig(mega_batch=arguments.mega_batch)
    composition = take_apart(encoder)
    engine = cpu_engine(composition, train_config, store.pairs)
    megas = list(store.mega_batches(train_config.mega_pairs, seed=1, epoch=0))
    megas = [mega for mega in megas if mega.pairs == train_config.mega_pairs]
    for mega in megas[: -arguments.mega_batches]:
        engine.train_on(mega, np.random.default_rng(1))
    return [(torch.from_numpy(engine.encode(mega)), mega.keys) for mega in megas[-arguments.mega_batches :]]


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet with the columns reference and translation")
    parser.add_argument("--models", nargs="+", default=["word", "trigram", "word,trigram"])
    parser.add_argument("--dimensions", type=int, nargs="+", default=[300])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--count", type=int, nargs="+", default=[20_000, 200_000], help="pairs to read")
    parser.add_argument("--mega-batch", type=int, default=40)
    parser.add_argument("--mega-batches", type=int, default=5, help="how many are mined")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{heading('torch', 'numba', 'numpy')}; one thread")
    print(f"{arguments.mega_batches} mega-batches of {arguments.mega_batch} x 100 pairs\n")
    print("| encoder | mining | ms a mega-batch: median (min to max) | times as fast | agree | less similar by |")
    print("|---|---|---:|---:|---:|---:|")
    for count in arguments.count:
        sides, _ = read(arguments.pairs, None, 0, count)
        for model in arguments.models:
            for dimension in arguments.dimensions:
                with tempfile.TemporaryDirectory() as folder:
                    config = EncoderConfig(model=model, dimension=dimension)
                    megas = vectors_of(config, sides, arguments, Path(folder) / "pairs")
                trained = count - arguments.mega_batches * arguments.mega_batch * 100
                report(f"{model}, {dimension}, after {trained:,} pairs", megas)


def report(title: str, megas: list[tuple[torch.Tensor, np.ndarray]]) -> None:
    """Mine the mega-batches of one encoder in each way, and print the rows of the table."""
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    agree: dict[str, list[float]] = {name: [] for name in WAYS}
    worse: dict[str, list[float]] = {name: [] for name in WAYS}
    looking = []
    for round_, (vectors, keys) in enumerate([megas[0], *megas]):
        unit, wanted = normalize(vectors, dim=1), None
        started = time.process_time()
        excluded(keys)
        looking.append(time.process_time() - started)
        for name, way in WAYS.items():
            started = time.process_time()
            found = way(vectors, keys)
            spent = time.process_time() - started
            wanted = found if wanted is None else wanted
            if round_ == 0:
                # The first time does not count, because it compiles loops and allocates memory.
                continue
            seconds[name].append(spent)
            agree[name].append(float((found == wanted).mean()))
            cosines = [(unit * unit[torch.from_numpy(chosen)]).sum(dim=1) for chosen in (wanted, found)]
            worse[name].append(float((cosines[0] - cosines[1]).mean()))
    base = statistics.median(seconds["torch, float32"])
    for name, own in seconds.items():
        median = statistics.median(own)
        print(
            f"| {title} | {name} | {1000 * median:.0f} ({1000 * min(own):.0f} to {1000 * max(own):.0f}) | "
            f"{base / median:.1f} | {statistics.mean(agree[name]):.2%} | {statistics.mean(worse[name]):.6f} |",
            flush=True,
        )
        title = ""
    print(f"| | of that `excluded` | {1000 * statistics.median(looking):.0f} | | | |")


if __name__ == "__main__":
    main()
