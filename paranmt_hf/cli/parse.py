"""`paranmt parse`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.options import DATA_HELP, add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "give pairs the constituency trees of both sentences, and count their templates"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt parse`."""
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.corpus.pairs import PairSelection

    parser.add_argument("data", nargs="+", help=DATA_HELP)
    parser.add_argument(
        "--parser",
        required=True,
        help="what gives trees: link-grammar, stanza, or a file with lines SENTENCE<tab>TREE",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the parsed pairs")
    kinds = {PairSelection: "pairs", EngineConfig: "where it runs"}
    for kind, title in kinds.items():
        add_options(parser.add_argument_group(title), kind)
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample of --max-pairs (default: 1)")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.corpus.parsing.parse import parse_pairs

        parsed = parse_pairs(
            arguments.data,
            arguments.out,
            parser=arguments.parser,
            selection=from_options(PairSelection, arguments),
            seed=arguments.seed,
            engine=from_options(EngineConfig, arguments),
        )
        keep_options(arguments, parsed.folder, fresh=parsed.fresh)
        print(parsed.summary())

    parser.finish(run, "paranmt parse paranmt50m --parser link-grammar --min-score 0.5 --max-length 15 --out parsed")
