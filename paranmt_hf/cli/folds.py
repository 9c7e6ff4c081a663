"""`paranmt folds`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.experiments import add_trials, trials_of
from paranmt_hf.cli.options import add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "find out which tenth of a corpus, by which score, makes the best encoders"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt folds`."""
    from paranmt_hf.evaluation.data_configs import FoldsConfig

    parser.add_argument("folder", type=Path, help="a release")
    add_options(parser, FoldsConfig)
    add_trials(parser, epochs=1)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.experiments.folds import TABLE, compare_folds, table_of

        outcome, fresh = compare_folds(
            arguments.folder, arguments.out, trials_of(arguments), from_options(FoldsConfig, arguments)
        )
        keep_options(arguments, arguments.out, fresh=fresh)
        print(table_of(outcome))
        print(f"Pearson x 100, mean of the models; each of them: {arguments.out / TABLE}")

    parser.finish(run, "paranmt folds paranmt50m --development FOLDER_WITH_STS --sample 100000 --out folds")
