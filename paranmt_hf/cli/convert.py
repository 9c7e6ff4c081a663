"""`paranmt convert`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.options import add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "turn a .bin model of the original Sent2Vec program into an encoder for the Hub"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt convert`."""
    from paranmt_hf.training.conversion_record import ConvertConfig

    parser.add_argument("model", help="the .bin file, plain or compressed by gzip; - reads standard input")
    parser.add_argument("--out", type=Path, required=True, help="folder of the encoder")
    add_options(parser, ConvertConfig)
    parser.add_argument(
        "--license", required=True, help="Hub licence id that the model has, such as cc-by-4.0; its card states it"
    )
    parser.add_argument("--license-name", help="with --license other: its name, such as my-license-1.0")
    parser.add_argument("--license-link", help="with --license other: the address of its text")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.hub.licenses import License
        from paranmt_hf.training.convert import convert_model

        made = convert_model(
            arguments.model,
            arguments.out,
            license=License(arguments.license, arguments.license_name, arguments.license_link),
            config=from_options(ConvertConfig, arguments),
        )
        record, state = made.record, "" if made.fresh else " (was converted already)"
        print(
            f"{arguments.out}{state}: {record.title} of {record.dimension} dimensions, {record.words:,} words"
            + (f" and {record.ngrams:,} buckets of n-grams of up to {record.order} words" if record.ngrams else "")
        )
        if record.unreachable:
            print(f"{record.unreachable:,} words are never met, because text is cut otherwise; see --cut")
        keep_options(arguments, made.folder, fresh=made.fresh)
        print(f"load it: paranmt_hf.load({str(arguments.out)!r})")

    parser.finish(run, "paranmt convert model.bin --out models/sent2vec --license cc-by-4.0")
