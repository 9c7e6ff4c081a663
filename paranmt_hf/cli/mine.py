"""`paranmt mine`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from paranmt_hf.cli.built import print_built
from paranmt_hf.cli.options import add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options
from paranmt_hf.cli.search import CORPUS_HELP, ENCODER_OPTIONS, add_encoder

SUMMARY = "find pairs of sentences that mean the same, in a file or between two"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt mine`."""
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.corpus.release_run import ReleaseConfig
    from paranmt_hf.corpus.schema import MadeBy
    from paranmt_hf.search.mine import MineConfig

    parser.add_argument("file", type=Path, help=CORPUS_HELP)
    parser.add_argument("file2", type=Path, nargs="?", help="another one, for pairs between the two")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of the release; or NAME.parquet, a file of pairs alone"
    )
    parser.add_argument("--column", help="column of a Parquet file, or side of a release (default: reference)")
    parser.add_argument("--second-column", help="the same of the second file (default: reference)")
    parser.add_argument(
        "--made-by",
        choices=get_args(MadeBy),
        default="unknown",
        help="who wrote the sentences (default: unknown)",
    )
    add_encoder(parser)
    add_options(parser, MineConfig)
    for kind in (ReleaseConfig, EngineConfig):
        add_options(parser, kind, leave_out=["keep_source", "seed"])

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.encoders.scorer import ScorerConfig
        from paranmt_hf.search.mine import MinedPairs, mine

        made = mine(
            arguments.file,
            arguments.out,
            second=arguments.file2,
            encoder=from_options(ScorerConfig, arguments, ENCODER_OPTIONS),
            config=from_options(MineConfig, arguments),
            column=arguments.column,
            second_column=arguments.second_column,
            release=None if arguments.out.suffix == ".parquet" else from_options(ReleaseConfig, arguments),
            engine=from_options(EngineConfig, arguments),
            made_by=arguments.made_by,
        )
        keep_options(arguments, made.folder, fresh=made.fresh)
        if isinstance(made, MinedPairs):
            print(made.summary())
        else:
            print_built(made)

    parser.finish(run, "paranmt mine sentences.txt --out mined --license cc-by-4.0 --made-by people")
