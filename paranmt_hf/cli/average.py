"""`paranmt average`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "average the weights of encoders trained from one start"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt average`."""
    parser.add_argument("models", nargs="+", help="folders or Hub ids; one that is named twice counts twice")
    parser.add_argument("--out", type=Path, required=True, help="folder of the mean")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.training.average import average_encoders

        average_encoders(arguments.models, arguments.out)
        print(f"{arguments.out}: the mean of {len(arguments.models)} models")
        keep_options(arguments, arguments.out.expanduser())
        print(f"load it: paranmt_hf.load({str(arguments.out)!r})")

    parser.finish(run, "paranmt average models/one models/two --out models/mean")
