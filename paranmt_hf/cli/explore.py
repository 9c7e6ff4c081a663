"""`paranmt explore`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.parser import CommandParser

SUMMARY = "look at a release on a local page: filter, search, histograms, examples"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt explore`."""
    from paranmt_hf.corpus.release import FOLDERS

    parser.add_argument("folder", type=Path, help="a release")
    parser.add_argument(
        "--release-config",
        choices=FOLDERS,
        default="default",
        help="which config of the release (default: %(default)s)",
    )
    parser.add_argument(
        "--index", type=Path, help="finds neighbours: an index of the release, made by `paranmt search index`"
    )
    parser.add_argument("--port", type=int, default=0, help="port on this computer (default: any that is free)")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.apps.explore.explore import explore

        explore(
            arguments.folder,
            config=arguments.release_config,
            port=arguments.port,
            index=arguments.index,
            opened=_print_address,
        )

    parser.finish(run, "paranmt explore paranmt50m --index paranmt50m.index")


def _print_address(address: str) -> None:
    print(f"open {address}\nCtrl-C ends it", flush=True)
