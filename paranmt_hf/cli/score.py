"""`paranmt score`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.added import add_column_options, authorship
from paranmt_hf.cli.built import print_built
from paranmt_hf.cli.options import SCORER_OPTIONS, add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "score a release again with another scorer, or give it more columns"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt score`."""
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.corpus.score import rescore
    from paranmt_hf.encoders.scorer import ScorerConfig

    parser.add_argument("folder", type=Path, help="a release")
    add_column_options(
        parser, "columns that the release gets; para_score stays as it is unless --scorer or --vectors is given"
    )
    add_options(parser, ScorerConfig, names=SCORER_OPTIONS)
    add_options(parser, EngineConfig)

    def run(arguments: argparse.Namespace) -> None:
        scorer = from_options(ScorerConfig, arguments, SCORER_OPTIONS)
        built = rescore(
            arguments.folder,
            # Without any option, the scores of the package's own encoder are asked for.
            scorer=scorer if arguments.scorer or arguments.vectors or not arguments.add else None,
            add=arguments.add,
            authorship=authorship(arguments),
            engine=from_options(EngineConfig, arguments),
        )
        keep_options(arguments, built.folder, name="paranmt-score.yaml", fresh=built.fresh)
        print_built(built)

    parser.finish(run, "paranmt score paranmt50m --scorer sentence-transformers/all-MiniLM-L6-v2")
