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
    from paranmt_hf.corpus.parsing.parse import ParseConfig

    parser.add_argument("data", nargs="+", help=DATA_HELP)
    parser.add_argument(
        "--parser",
        required=True,
        help="what gives trees: link-grammar, stanza, or a file with lines SENTENCE<tab>TREE",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the parsed pairs")
    kinds = {ParseConfig: "parsing", PairSelection: "pairs", EngineConfig: "where it runs"}
    for kind, title in kinds.items():
        add_options(parser.add_argument_group(title), kind)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.corpus.parsing.parse import parse_pairs

        parsed = parse_pairs(
            arguments.data,
            arguments.out,
            parser=arguments.parser,
            config=from_options(ParseConfig, arguments),
            selection=from_options(PairSelection, arguments),
            engine=from_options(EngineConfig, arguments),
        )
        keep_options(arguments, parsed.folder, fresh=parsed.fresh)
        record, state = parsed.record, "" if parsed.fresh else " (were parsed already)"
        print(f"{arguments.out}: {record.rows:,} pairs, parsed by {record.inputs['parser']}{state}")
        for side, count in record.trees.items():
            print(f"  with a tree {count:>12,} {100 * count / record.rows:5.1f} % {side}")
        for reason, count in record.left_out.items():
            print(f"  left out    {count:>12,} {reason}")
        if parsed.sentences:
            rate = parsed.sentences / max(parsed.seconds, 1e-9)
            print(f"  {parsed.sentences:,} distinct sentences in {parsed.seconds:,.0f} s, {rate:,.0f} a second")
        print(f"  {record.templates:,} templates; see the most frequent: paranmt templates {arguments.out}")

    parser.finish(run, "paranmt parse paranmt50m --parser link-grammar --min-score 0.5 --max-length 15 --out parsed")
