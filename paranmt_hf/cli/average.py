"""`paranmt average`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.options import Run

SUMMARY = "average the weights of encoders trained from one start"


def configure(parser: argparse.ArgumentParser) -> Run:
    """Options of `paranmt average`."""
    parser.add_argument("models", nargs="+", help="folders or Hub ids; one that is named twice counts twice")
    parser.add_argument("--out", type=Path, required=True, help="folder of the mean")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.workflows.average import average_encoders

        average_encoders(arguments.models, arguments.out)
        print(f"{arguments.out}: the mean of {len(arguments.models)} models")
        print(f"load it: paranmt_hf.load({str(arguments.out)!r})")

    return run
