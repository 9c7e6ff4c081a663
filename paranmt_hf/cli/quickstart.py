"""`paranmt quickstart`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.parser import CommandParser

SUMMARY = "make a small corpus and an encoder offline, from nothing"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt quickstart`."""
    parser.add_argument("--out", type=Path, required=True, help="folder for everything that is made")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.apps.quickstart import quickstart

        for line in quickstart(arguments.out):
            print(line, flush=True)

    parser.finish(run, "paranmt quickstart --out demo")
