"""Table 6 of PARAGRAM-PHRASE (arXiv:1511.08198, section 4.4.2): vectors learned from phrases, fixed, as features.

WORD and projections of it to 1200 and 2400 dimensions learn from pairs, and then do not change. For each task the
development items choose lambda_s and the optimizer. A program that was interrupted continues.

    python benchmarks/papers/paragram_table6.py ppdb-2.0-xl-phrasal.gz --data senteval --out table6
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from comparison import table

import paranmt_hf

# The settings that the paper tunes for each task.
LAMBDAS = [1e-3, 1e-4, 1e-5, 1e-6]
OPTIMIZERS = ["adam", "adagrad"]


def encoders(options: argparse.Namespace) -> dict[str, Path]:
    """Train WORD and its projections, and return their folders by name."""
    config = paranmt_hf.TrainConfig(epochs=options.epochs)
    word = paranmt_hf.train(
        options.pairs,
        options.out / "word",
        encoder=paranmt_hf.EncoderConfig(vectors=options.vectors, dimension=options.dimension),
        config=config,
    )
    found = {"PARAGRAM-PHRASE": word.folder}
    for dimension in options.projections:
        projection = paranmt_hf.EncoderConfig(
            model="projection", vectors=options.vectors, dimension=dimension, word_dimension=word.record.dimension
        )
        place = options.out / f"projection-{dimension}"
        trained = paranmt_hf.train(options.pairs, place, encoder=projection, config=config)
        found[f"projection to {dimension}"] = trained.folder
    return found


def test_figure(encoder: Path, task: str, options: argparse.Namespace) -> float:
    """Return the figure of an encoder on the test items, with the settings that are best on the development items."""
    tried = []
    for optimizer, weight in product(OPTIMIZERS, options.lambdas):
        place = options.out / f"{task}-{encoder.name}-{optimizer}-{weight:g}"
        config = paranmt_hf.SuperviseConfig(task, way="fixed", optimizer=optimizer, lambda_s=weight)
        trained = paranmt_hf.supervise(options.data, place, config=config, init_from=str(encoder))
        figures = trained.record.figures
        tried.append((next(iter(figures["dev"].values())), next(iter(figures["test"].values()))))
    return max(tried, key=lambda figures: figures[0])[1]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each encoder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", help="pairs that the encoders learn from, such as PPDB XL")
    parser.add_argument("--out", type=Path, required=True, help="folder of the encoders and of the models")
    parser.add_argument("--data", required=True, help="folder with the files of the tasks in SentEval's layout")
    parser.add_argument("--tasks", nargs="+", default=["SICK-R", "SICK-E", "SST2"])
    parser.add_argument("--vectors", help="word vectors that WORD starts from")
    parser.add_argument("--dimension", type=int, help="dimensions of WORD without such vectors")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--projections", nargs="*", type=int, default=[1200, 2400])
    parser.add_argument("--lambdas", nargs="+", type=float, default=LAMBDAS)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, folder in encoders(options).items():
        rows.append([name, *(f"{100 * test_figure(folder, task, options):.1f}" for task in options.tasks)])
    print("Pearson's r or accuracy times 100 on the test items; vectors are fixed.\n")
    print(table(["vectors", *options.tasks], rows))


if __name__ == "__main__":
    main()
