"""`paranmt negatives`."""

from __future__ import annotations

import argparse

from paranmt_hf.cli.options import DATA_HELP, add_options, from_options
from paranmt_hf.cli.parser import CommandParser

SUMMARY = "show the hard negatives that mega-batches give"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt negatives`."""
    from paranmt_hf.corpus.pairs import PairSelection
    from paranmt_hf.hub.repository import EMBEDDED
    from paranmt_hf.training.negatives import NegativesConfig

    parser.add_argument("sentences", nargs="+", help="sentences whose negatives are shown")
    parser.add_argument("--data", nargs="+", required=True, help=DATA_HELP)
    parser.add_argument(
        "--encoder", default=EMBEDDED, help="the encoder that mines: folder or Hub id (default: %(default)s)"
    )
    add_options(parser, NegativesConfig)
    add_options(parser, PairSelection)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.training.negatives import mined_negatives

        results = mined_negatives(
            arguments.sentences,
            arguments.data,
            config=from_options(NegativesConfig, arguments),
            encoder=arguments.encoder,
            selection=from_options(PairSelection, arguments),
        )
        for sentence, negatives in zip(arguments.sentences, results, strict=True):
            print(sentence)
            for negative in negatives:
                print(f"  M = {negative.mega_batch:<4} {negative.similarity:5.2f}  {negative.sentence}")

    parser.finish(run, 'paranmt negatives "a man is playing a guitar ." --data paranmt50m --mega-batches 1 20 40')
