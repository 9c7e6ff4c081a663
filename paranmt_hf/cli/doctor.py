"""`paranmt doctor`."""

from __future__ import annotations

import argparse
import json

from paranmt_hf.cli.parser import CommandParser

SUMMARY = "show what is installed, what this machine has, and what commands would choose on it"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt doctor`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--imports", action="store_true", help="import every package; takes a minute")
    parser.add_argument("--online", action="store_true", help="ask the Hub whether it answers")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.apps.doctor import diagnose

        found = diagnose(imports=arguments.imports, online=arguments.online)
        print(json.dumps(found.to_json(), indent=2) if arguments.json else found.summary())

    parser.finish(run, "paranmt doctor --online")
