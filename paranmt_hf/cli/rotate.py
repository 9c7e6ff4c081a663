"""`paranmt rotate`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.options import DATA_HELP, add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "order the dimensions of an averaging encoder, so that cutting some off costs less"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt rotate`."""
    from paranmt_hf.training.rotate import RotateConfig

    parser.add_argument(
        "model", help="folder or Hub id of an encoder trained on pairs; `embedded` is the one that the package carries"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the rotated encoder")
    add_options(parser, RotateConfig)
    parser.add_argument("--data", nargs="+", help=f"for the order by principal components: {DATA_HELP}")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.training.rotate import rotate_encoder

        config = from_options(RotateConfig, arguments)
        rotated = rotate_encoder(arguments.model, arguments.out, config=config, data=arguments.data)
        keep_options(arguments, arguments.out.expanduser())
        print(f"{arguments.out}: {rotated.record.values['dimension']} dimensions")
        print(f"load it: paranmt_hf.load({str(arguments.out)!r})")

    parser.finish(run, "paranmt rotate models/word-trigram --out models/word-trigram-even")
