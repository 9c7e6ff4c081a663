"""`paranmt negatives`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from paranmt_hf.cli.options import DATA_HELP, Run, add_options, from_options

if TYPE_CHECKING:
    pass


SUMMARY = "show the hard negatives that mega-batches give"


def configure(parser: argparse.ArgumentParser) -> Run:
    """Options of `paranmt negatives`."""
    from paranmt_hf.corpus.pairs import SelectionConfig

    parser.add_argument("sentences", nargs="+", help="sentences whose negatives are shown")
    parser.add_argument("--data", nargs="+", required=True, help=DATA_HELP)
    parser.add_argument(
        "--encoder", default="embedded", help="the encoder that mines: folder or Hub id (default: embedded)"
    )
    parser.add_argument("--mega-batches", type=int, nargs="+", default=[1, 20, 40], help="values of M (1 20 40)")
    parser.add_argument("--batch-size", type=int, default=100, help="pairs of a mini-batch (100)")
    parser.add_argument("--seed", type=int, default=1, help="decides which pairs the mega-batches hold (1)")
    add_options(parser, SelectionConfig)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.workflows.negatives import mined_negatives

        found = mined_negatives(
            arguments.sentences,
            arguments.data,
            encoder=arguments.encoder,
            mega_batches=arguments.mega_batches,
            batch_size=arguments.batch_size,
            seed=arguments.seed,
            selection=from_options(SelectionConfig, arguments),
        )
        for sentence, negatives in zip(arguments.sentences, found, strict=True):
            print(sentence)
            for negative in negatives:
                print(f"  M = {negative.mega_batch:<4} {negative.similarity:5.2f}  {negative.sentence}")

    return run
