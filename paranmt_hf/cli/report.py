"""`paranmt report`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.parser import CommandParser

SUMMARY = "write what `paranmt explore` shows as one HTML file"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt report`."""
    from paranmt_hf.hub.repository import EMBEDDED

    parser.add_argument("folder", type=Path, help="a release")
    parser.add_argument("--out", type=Path, required=True, help="the HTML file")
    parser.add_argument(
        "--encoder",
        default=EMBEDDED,
        help="finds the neighbours of a sentence: folder or Hub id; `none` for no neighbours (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="decides the examples (default: %(default)s)")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.apps.explore.explore import write_report
        from paranmt_hf.encoders.scorer import ScorerConfig

        encoder = None if arguments.encoder == "none" else ScorerConfig(name=arguments.encoder).load()
        rows = write_report(arguments.folder, arguments.out, encoder=encoder, seed=arguments.seed)
        print(f"report: {arguments.out}, which carries {rows:,} of the pairs")

    parser.finish(run, "paranmt report paranmt50m --out paranmt50m.html")
