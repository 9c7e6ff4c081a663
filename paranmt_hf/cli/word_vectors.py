"""Options of averages of word vectors, the baselines of `paranmt evaluate` and `paranmt analyse`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.cli.options import add_options, from_options
from paranmt_hf.cli.parser import CommandParser

if TYPE_CHECKING:
    from paranmt_hf.evaluation.word_weights import WordWeighting


def add_averages(parser: CommandParser) -> None:
    """Add the options that name files of word vectors and say how they are averaged."""
    from paranmt_hf.evaluation.word_weights import WordWeighting

    group = parser.add_argument_group("averages of word vectors")
    group.add_argument(
        "--vectors",
        nargs="+",
        type=Path,
        default=[],
        help="files of word vectors, or encoders that have some; their averages are measured too",
    )
    add_options(group, WordWeighting)


def averages_of(arguments: argparse.Namespace) -> WordWeighting:
    """Make the settings of parsed options."""
    from paranmt_hf.evaluation.word_weights import WordWeighting

    config: WordWeighting = from_options(WordWeighting, arguments)
    return config
