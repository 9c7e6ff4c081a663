"""Options of the commands that add columns to pairs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from paranmt_hf.cli.options import add_options
from paranmt_hf.cli.parser import CommandParser
from paranmt_hf.errors import InputError

if TYPE_CHECKING:
    from paranmt_hf.corpus.authorship import AuthorshipConfig

# Other settings of a command have a seed too.
NAMES = {
    "folds": "classifier_folds",
    "learn_pairs": "classifier_pairs",
    "epochs": "classifier_epochs",
    "bits": "classifier_bits",
    "seed": "classifier_seed",
}


def add_column_options(parser: CommandParser, help: str = "more columns") -> None:
    """Add `--add`, and the settings of the classifier behind `human_score`."""
    from paranmt_hf.corpus.authorship import AuthorshipConfig
    from paranmt_hf.corpus.schema import ADDED

    parser.add_argument("--add", nargs="+", choices=ADDED, default=[], help=help)
    group = parser.add_argument_group("classifier of --add human_score")
    add_options(group, AuthorshipConfig, names=NAMES)
    # What was not given is not written beside results that have no such column.
    parser.set_defaults(**dict.fromkeys(NAMES.values()))


def authorship(arguments: argparse.Namespace) -> AuthorshipConfig:
    """Settings of the classifier."""
    from paranmt_hf.corpus.authorship import AuthorshipConfig

    given = {name: value for name, option in NAMES.items() if (value := getattr(arguments, option)) is not None}
    if given and "human_score" not in arguments.add:
        option = NAMES[next(iter(given))].replace("_", "-")
        raise InputError(f"--{option} does nothing without --add human_score; give that too, or leave it out")
    return AuthorshipConfig(**given)
