"""`paranmt vectors`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.options import DATA_HELP, add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "make word vectors from a large encoder"


def configure(parser: CommandParser) -> None:
    """Commands below `paranmt vectors`."""
    parser.show_example("paranmt vectors distill MODEL --data paranmt50m --out vectors.txt.gz")
    summary = "let large encoders read words, alone or in sentences"
    description = f"{summary[0].upper()}{summary[1:]}."
    _configure_distill(parser.kinds("WAY").add_parser("distill", help=summary, description=description))


def _configure_distill(parser: CommandParser) -> None:
    """Options of `paranmt vectors distill`."""
    from paranmt_hf.encoders.distillation import DistillConfig

    parser.add_argument(
        "model", nargs="+", help="folder or Hub id of a SentenceTransformer; the vectors of several are joined"
    )
    parser.add_argument("--data", nargs="+", help=f"take the most frequent words of: {DATA_HELP}")
    parser.add_argument("--text", nargs="+", help="and of sentences: text files with one on a line, Parquet, releases")
    parser.add_argument(
        "--vocabulary", type=Path, help="and the words in front of the lines of this file, most frequent first"
    )
    parser.add_argument(
        "--exclude",
        type=Path,
        help="folder with STS sets: leave out pairs with their sentences, and text that shares eight words with one",
    )
    parser.add_argument("--out", type=Path, required=True, help="text file of vectors; .gz compresses it")
    add_options(parser, DistillConfig)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.training.vectors import distill_vectors

        vectors = distill_vectors(
            arguments.model,
            arguments.out,
            data=arguments.data,
            text=arguments.text,
            vocabulary=arguments.vocabulary,
            exclude=arguments.exclude,
            config=from_options(DistillConfig, arguments),
        )
        keep_options(arguments, arguments.out.expanduser())
        print(f"{arguments.out}: {len(vectors.words):,} words, {vectors.matrix.shape[1]} dimensions")

    parser.finish(
        run, "paranmt vectors distill sentence-transformers/all-MiniLM-L6-v2 --data paranmt50m --out vectors.txt.gz"
    )
