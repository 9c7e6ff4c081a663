"""`paranmt analyse`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.evaluate import _show
from paranmt_hf.cli.parser import CommandParser
from paranmt_hf.cli.word_vectors import add_averages, averages_of

SUMMARY = "find out what encoders and word vectors do well, and why"
FREQUENCIES = (
    "how often words occur: rank ({order}, by Zipf's law), a list with a word and its count on each line, or what is "
    "counted: a text, a Parquet file, a release (both sides) (default: rank)"
)


def configure(parser: CommandParser) -> None:
    """Commands below `paranmt analyse`."""
    parser.show_example("paranmt analyse lengths embedded --vectors glove.txt --data FOLDER_WITH_STS")
    kinds = parser.kinds("WHAT")
    for name, summary, add in (
        ("lengths", "correlation with people by the length of sentences", _configure_lengths),
        ("neighbours", "nearest neighbours of words, several spaces side by side", _configure_neighbours),
        ("norms", "lengths of word vectors beside the frequency of words", _configure_norms),
        ("under-trained", "tokens of evaluation sets that training hardly saw", _configure_under_trained),
    ):
        add(kinds.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."))


def _configure_lengths(parser: CommandParser) -> None:
    """Options of `paranmt analyse lengths`."""
    from paranmt_hf.evaluation.analysis.lengths import TABLE_7_LENGTHS
    from paranmt_hf.evaluation.correlation import RESAMPLES

    _add_encoders(parser)
    parser.add_argument(
        "--up-to",
        nargs="+",
        type=int,
        default=list(TABLE_7_LENGTHS),
        help="most tokens of the longer side in each bin but the last (default: 4 5 6 7 8 9)",
    )
    parser.add_argument(
        "--bootstrap",
        type=int,
        default=RESAMPLES,
        help="resamples for intervals in --json and --picture; 0 for none (default: %(default)s)",
    )
    _add_output(parser)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.evaluation.analysis.lengths import analyse_lengths

        _show(
            arguments,
            lambda: analyse_lengths(
                arguments.models,
                data=arguments.data,
                vectors=arguments.vectors,
                averages=averages_of(arguments),
                up_to=arguments.up_to,
                bootstrap=arguments.bootstrap,
                picture=arguments.picture,
            ),
        )

    parser.finish(run, "paranmt analyse lengths embedded --vectors glove.txt --data FOLDER_WITH_STS")


def _configure_neighbours(parser: CommandParser) -> None:
    """Options of `paranmt analyse neighbours`."""
    _add_spaces(parser)
    parser.add_argument("--words", nargs="+", required=True, help="words whose neighbours are shown")
    _add_common(parser, "the order of the first of them", "neighbours are among so many of the most common words")
    parser.add_argument("--top", type=int, default=10, help="neighbours of each word (default: %(default)s)")
    _add_output(parser, picture=False)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.evaluation.analysis.words import analyse_neighbours

        _show(
            arguments,
            lambda: analyse_neighbours(
                arguments.spaces,
                words=arguments.words,
                frequencies=arguments.frequencies,
                common=arguments.common,
                top=arguments.top,
            ),
        )

    parser.finish(run, "paranmt analyse neighbours models/word glove.txt --words unlike contrary --top 5")


def _configure_norms(parser: CommandParser) -> None:
    """Options of `paranmt analyse norms`."""
    from paranmt_hf.evaluation.analysis.words import FIRST_WORDS

    _add_spaces(parser)
    _add_common(parser, "the order of each", "the lists are of so many of the most common words")
    parser.add_argument(
        "--top", type=int, default=10, help="words with the largest and smallest norms (default: %(default)s)"
    )
    parser.add_argument(
        "--first-words",
        type=int,
        default=FIRST_WORDS,
        help="so many words of a file are read, from its beginning (default: %(default)s)",
    )
    parser.add_argument(
        "--norm", choices=("l1", "l2"), default="l2", help="what --picture shows (default: %(default)s)"
    )
    parser.add_argument(
        "--sif-a", type=float, default=1e-3, help="the a of SIF's weights in --picture (default: %(default)s)"
    )
    _add_output(parser)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.evaluation.analysis.words import analyse_norms

        _show(
            arguments,
            lambda: analyse_norms(
                arguments.spaces,
                frequencies=arguments.frequencies,
                first_words=arguments.first_words,
                common=arguments.common,
                top=arguments.top,
                picture=arguments.picture,
                norm=arguments.norm,
                sif_a=arguments.sif_a,
            ),
        )

    parser.finish(run, "paranmt analyse norms models/word glove.txt --frequencies paranmt50m --picture norms.png")


def _configure_under_trained(parser: CommandParser) -> None:
    """Options of `paranmt analyse under-trained`."""
    from paranmt_hf.evaluation.analysis.under_trained import UNDER_TRAINED_BELOW

    _add_encoders(parser)
    parser.add_argument(
        "--training",
        required=True,
        help="what the encoders learned from: a release, a Parquet file, a text, or a list of words and counts",
    )
    parser.add_argument(
        "--at-least",
        type=int,
        default=UNDER_TRAINED_BELOW,
        help="words seen fewer times are under-trained (section 5.1) (default: %(default)s)",
    )
    parser.add_argument(
        "--references",
        type=Path,
        help="figures to compare with, such as the 75th percentile of a task's systems: set, tab, Pearson x 100",
    )
    _add_output(parser)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.evaluation.analysis.under_trained import analyse_under_trained

        _show(
            arguments,
            lambda: analyse_under_trained(
                arguments.models,
                data=arguments.data,
                training=arguments.training,
                vectors=arguments.vectors,
                averages=averages_of(arguments),
                at_least=arguments.at_least,
                references=arguments.references,
                picture=arguments.picture,
            ),
        )

    parser.finish(run, "paranmt analyse under-trained models/word --data FOLDER_WITH_STS --training paranmt50m")


def _add_encoders(parser: CommandParser) -> None:
    parser.add_argument("models", nargs="*", help="folders or Hub ids of encoders; `embedded` is the package's own")
    parser.add_argument("--data", nargs="+", required=True, help="folders with STS sets, TSV files, Hub ids")
    add_averages(parser)


def _add_spaces(parser: CommandParser) -> None:
    parser.add_argument(
        "spaces", nargs="+", help="encoders (folders, Hub ids, `embedded`) or files of word vectors, side by side"
    )


def _add_common(parser: CommandParser, order: str, what: str) -> None:
    from paranmt_hf.evaluation.analysis.words import COMMON_WORDS
    from paranmt_hf.evaluation.word_weights import RANK

    parser.add_argument("--frequencies", default=RANK, help=FREQUENCIES.format(order=order))
    parser.add_argument("--common", type=int, default=COMMON_WORDS, help=f"{what} (default: %(default)s)")


def _add_output(parser: CommandParser, *, picture: bool = True) -> None:
    parser.add_argument("--json", type=Path, help="write the figures into this file")
    if picture:
        parser.add_argument("--picture", type=Path, help="draw them into this PNG (extra `plots`)")
