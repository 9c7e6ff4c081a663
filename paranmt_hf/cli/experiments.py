"""Options that the experiments `paranmt folds`, `paranmt sources` and `paranmt sizes` share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.cli.options import add_options, from_options
from paranmt_hf.cli.parser import CommandParser

if TYPE_CHECKING:
    from paranmt_hf.experiments.experiment import Trials

# What a trial decides itself, or what no small run needs.
NOT_HERE = {
    "model",
    "init_from",
    "patience",
    "evaluations",
    "report_to",
    "mine_over",
    "error_negatives",
    "checkpoint_seconds",
}


def add_trials(parser: CommandParser, *, epochs: int) -> None:
    """Add the options that say which models are trained, and how.

    Args:
        parser: Gets them.
        epochs: Default number of passes over a sample.
    """
    from paranmt_hf.encoders.config import EncoderConfig
    from paranmt_hf.training.config import TrainConfig

    parser.add_argument("--out", type=Path, required=True, help="folder for the outcome")
    parser.add_argument(
        "--development",
        required=True,
        help="scored pairs that the models are measured on: `sample`, a TSV or Parquet file, or a folder with "
        "STSBenchmark (its STS 2017 pairs, as in the paper)",
    )
    parser.add_argument(
        "--models",
        nargs="+",
        default=["word", "trigram", "lstm"],
        help="encoders that are trained on each sample (default: word trigram lstm)",
    )
    parser.add_argument("--epochs", type=int, default=epochs, help="passes over each sample (default: %(default)s)")
    add_options(parser.add_argument_group("encoders"), EncoderConfig, leave_out=NOT_HERE)
    add_options(parser.add_argument_group("training"), TrainConfig, leave_out={*NOT_HERE, "epochs"})


def trials_of(arguments: argparse.Namespace) -> Trials:
    """Make the trials of parsed options."""
    from paranmt_hf.encoders.config import EncoderConfig
    from paranmt_hf.experiments.experiment import Trials
    from paranmt_hf.training.config import TrainConfig

    return Trials(
        tuple(arguments.models),
        from_options(EncoderConfig, arguments),
        from_options(TrainConfig, arguments),
        arguments.development,
        tuple(getattr(arguments, "sts", ())),
    )
