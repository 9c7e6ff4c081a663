"""`paranmt score`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.cli.built import print_built
from paranmt_hf.cli.options import Run, add_options, from_options

if TYPE_CHECKING:
    pass


SUMMARY = "score a release again with another scorer"


def configure(parser: argparse.ArgumentParser) -> Run:
    """Options of `paranmt score`."""
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.encoders.scorer import ScorerConfig
    from paranmt_hf.workflows.build import rescore

    parser.add_argument("folder", type=Path, help="a release")
    for kind in (ScorerConfig, EngineConfig):
        add_options(parser, kind)

    def run(arguments: argparse.Namespace) -> None:
        scorer, engine = from_options(ScorerConfig, arguments), from_options(EngineConfig, arguments)
        print_built(rescore(arguments.folder, scorer=scorer, engine=engine))

    return run
