"""Options of the commands that add columns to pairs."""

from __future__ import annotations

from paranmt_hf.cli.options import add_options
from paranmt_hf.cli.parser import CommandParser


def add_column_options(parser: CommandParser, help: str = "more columns") -> None:
    """Add `--add`, and the settings of the classifier behind `human_score`."""
    from paranmt_hf.corpus.authorship import AuthorshipConfig
    from paranmt_hf.corpus.schema import ADDED

    parser.add_argument("--add", nargs="+", choices=ADDED, default=[], help=help)
    group = parser.add_argument_group("classifier of --add human_score")
    add_options(group, AuthorshipConfig, names=AUTHORSHIP_OPTIONS)


# Of the release too, there is a seed.
AUTHORSHIP_OPTIONS = {"seed": "classifier_seed", "folds": "classifier_folds", "epochs": "classifier_epochs"} | {
    "bits": "classifier_bits",
    "learn_pairs": "classifier_pairs",
}
