"""`paranmt sizes`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.experiments import add_trials, trials_of
from paranmt_hf.cli.options import add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "find out how much encoders learn from how many pairs"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt sizes`."""
    from paranmt_hf.evaluation.data_configs import SizesConfig

    parser.add_argument("folder", type=Path, help="a release")
    add_options(parser, SizesConfig)
    parser.add_argument(
        "--sts",
        nargs="+",
        default=[],
        help="STS data that the models are measured on too, and the picture shows: the mean over the sets",
    )
    add_trials(parser, epochs=1)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.experiments.sizes import TABLE, compare_sizes, table_of

        outcome, fresh = compare_sizes(
            arguments.folder, arguments.out, trials_of(arguments), from_options(SizesConfig, arguments)
        )
        keep_options(arguments, arguments.out, fresh=fresh)
        print(table_of(outcome))
        print(f"Pearson x 100; the same in Markdown: {arguments.out / TABLE}")

    parser.finish(run, "paranmt sizes paranmt50m --development FOLDER_WITH_STS --sizes 1000 10000 100000 --out sizes")
