"""`paranmt vectors`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.options import DATA_HELP, Run, add_options, from_options

SUMMARY = "make word vectors from a large encoder"


def configure(parser: argparse.ArgumentParser) -> Run:
    """Options of `paranmt vectors`."""
    from paranmt_hf.encoders.distillation import DistillConfig

    parser.add_argument("kind", choices=["distill"], help="distill: let a large encoder encode words one by one")
    parser.add_argument("model", help="folder or Hub id of a SentenceTransformer")
    parser.add_argument("--data", nargs="+", help=f"take the most frequent words of: {DATA_HELP}")
    parser.add_argument(
        "--vocabulary", type=Path, help="and the words in front of the lines of this file, most frequent first"
    )
    parser.add_argument("--out", type=Path, required=True, help="text file of vectors; .gz compresses it")
    add_options(parser, DistillConfig)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.workflows.vectors import distill_vectors

        vectors = distill_vectors(
            arguments.model,
            arguments.out,
            data=arguments.data,
            vocabulary=arguments.vocabulary,
            config=from_options(DistillConfig, arguments),
        )
        print(f"{arguments.out}: {len(vectors.words):,} words, {vectors.matrix.shape[1]} dimensions")

    return run
