"""Commands that still build their own parser (`cli/COMMAND.py`)."""

from __future__ import annotations

import argparse
from importlib import import_module

from paranmt_hf.cli.parser import CommandParser
from paranmt_hf.cli.table import OLD


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    """Build the parser; only the chosen command gets its options, which keeps `--help` fast."""
    parser = argparse.ArgumentParser(
        prog="paranmt",
        description="Paraphrase corpora by back-translation, and sentence encoders trained on them.",
        epilog="example:\n  paranmt quickstart --out demo\n\n`paranmt COMMAND --help` shows the options of a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=CommandParser)
    for name, module in OLD.items():
        command = import_module(f"paranmt_hf.cli.{module}")
        summary = command.SUMMARY
        options = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        if name == chosen:
            command.configure(options)
    return parser


def run_old(words: list[str]) -> int:
    """Run a command that is not converted yet."""
    arguments = _parser(words[0]).parse_args(words)
    arguments.run(arguments)
    return 0
