"""`paranmt sources`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.experiments import add_trials, trials_of
from paranmt_hf.cli.options import add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "find out which source of text makes the best encoders"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt sources`."""
    from paranmt_hf.evaluation.data_configs import SourcesConfig

    parser.add_argument("folders", nargs="+", type=Path, help="releases")
    add_options(parser, SourcesConfig)
    add_trials(parser, epochs=5)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.experiments.sources import TABLE, compare_sources, table_of

        outcome, fresh = compare_sources(
            arguments.folders, arguments.out, trials_of(arguments), from_options(SourcesConfig, arguments)
        )
        keep_options(arguments, arguments.out, fresh=fresh)
        print(table_of(outcome))
        print(f"Pearson x 100; the same in Markdown: {arguments.out / TABLE}")

    parser.finish(run, "paranmt sources news captions --development FOLDER_WITH_STS --sample 100000 --out sources")
