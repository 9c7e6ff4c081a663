"""`paranmt stats`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from paranmt_hf.cli.columns import columns
from paranmt_hf.cli.options import add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "measure how varied the sentences of corpora are, side by side"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt stats`."""
    from paranmt_hf.corpus.stats import StatsConfig

    parser.add_argument(
        "data",
        nargs="+",
        help="releases, folders of their configs, Parquet files, or text files with a sentence on each line (.gz too)",
    )
    add_options(parser, StatsConfig)
    parser.add_argument(
        "--columns", type=columns, help="columns of Parquet files, such as reference=english,para_score=score"
    )
    parser.add_argument(
        "--idf-text",
        help="a text or corpus whose sentences give the document frequencies (the paper: Wikipedia); else those of "
        "each sample itself",
    )
    parser.add_argument(
        "--parser",
        nargs="+",
        default=[],
        help="what gives trees: link-grammar, stanza, or files of trees, one for each corpus; without it there is no "
        "parse entropy",
    )
    parser.add_argument("--keep-trees", type=Path, help="keep trees in this file, and parse nothing that is in it")
    parser.add_argument("--write-samples", type=Path, help="write the sentences of each sample into this folder")
    parser.add_argument("--json", type=Path, help="write the figures into this file")
    parser.add_argument("--picture", type=Path, help="draw them into this PNG (extra `plots`)")
    parser.add_argument("--markdown", type=Path, help="write the table into this file")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.corpus.stats import describe_corpora
        from paranmt_hf.util.files import check_result_path, write_result

        if arguments.json is not None:
            check_result_path(arguments.json, "--json")
        record = describe_corpora(
            arguments.data,
            config=from_options(StatsConfig, arguments),
            columns=arguments.columns,
            idf_text=arguments.idf_text,
            parser=arguments.parser,
            keep_trees=arguments.keep_trees,
            write_samples=arguments.write_samples,
            picture=arguments.picture,
            markdown=arguments.markdown,
        )
        print(record.summary())
        if arguments.json:
            write_result(arguments.json, f"{json.dumps(record.to_json(), indent=2)}\n")
            keep_options(arguments, arguments.json)
            print(f"figures: {arguments.json}")

    parser.finish(
        run, "paranmt stats paranmt50m news.en --idf-text wiki.txt.gz --parser link-grammar --json stats.json"
    )
