"""`paranmt search`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from paranmt_hf.cli.options import add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "index a corpus, and find its sentences nearest to queries"
# Options of an encoder by their fields.
ENCODER_OPTIONS = {"name": "encoder", "revision": "encoder_revision", "device": "encoder_device"}
CORPUS_HELP = "text file with one sentence on a line (plain, .gz, .xz, .zst), Parquet file, or folder of a release"


def add_encoder(parser: CommandParser) -> None:
    """Add the options that name an encoder."""
    from paranmt_hf.encoders.scorer import ScorerConfig

    add_options(parser, ScorerConfig, names=ENCODER_OPTIONS)


def configure(parser: CommandParser) -> None:
    """Commands below `paranmt search`."""
    parser.show_example("paranmt search index sentences.txt --out index")
    kinds = parser.kinds("WHAT")
    for name, options, summary in (
        ("index", _configure_index, "make an index of the distinct sentences of a corpus"),
        ("query", _configure_query, "find the sentences of an index nearest to queries"),
    ):
        options(kinds.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."))


def _configure_index(parser: CommandParser) -> None:
    """Options of `paranmt search index`."""
    from paranmt_hf.search.indexed_vectors import IndexConfig

    parser.add_argument("corpus", type=Path, help=CORPUS_HELP)
    parser.add_argument("--out", type=Path, required=True, help="folder of the index")
    parser.add_argument("--column", help="column of a Parquet file, or side of a release (default: reference)")
    add_encoder(parser)
    add_options(parser, IndexConfig)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.encoders.scorer import ScorerConfig
        from paranmt_hf.search.index import build_index

        indexed = build_index(
            arguments.corpus,
            arguments.out,
            encoder=from_options(ScorerConfig, arguments, ENCODER_OPTIONS),
            column=arguments.column,
            config=from_options(IndexConfig, arguments),
        )
        keep_options(arguments, indexed.folder, fresh=indexed.fresh)
        print(indexed.summary())

    parser.finish(run, "paranmt search index sentences.txt --out index")


def _configure_query(parser: CommandParser) -> None:
    """Options of `paranmt search query`."""
    from paranmt_hf.search.index import PROBES

    parser.add_argument("index", type=Path, help="what `paranmt search index` wrote")
    parser.add_argument("queries", nargs="*", help="sentences; - reads them from standard input, one on a line")
    parser.add_argument("--file", type=Path, help="file of queries, one on a line")
    parser.add_argument("--top", type=int, default=10, help="hits for each query (default: %(default)s)")
    parser.add_argument(
        "--probes",
        type=int,
        default=PROBES,
        help="lists that are looked into, where the index has lists: more find more (default: %(default)s)",
    )
    parser.add_argument("--json", type=Path, help="write queries and hits into this file")
    add_encoder(parser)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.encoders.scorer import ScorerConfig
        from paranmt_hf.search.index import search
        from paranmt_hf.util.files import check_result_path, write_result

        if arguments.json:
            check_result_path(arguments.json, "--json")
        encoder = from_options(ScorerConfig, arguments, ENCODER_OPTIONS)
        found = search(
            arguments.index,
            arguments.queries,
            file=arguments.file,
            top=arguments.top,
            probes=arguments.probes,
            encoder=encoder,
        )
        print(found.summary())
        if arguments.json:
            write_result(arguments.json, f"{json.dumps(found.to_json(), indent=1, ensure_ascii=False)}\n")

    parser.finish(run, 'paranmt search query index "a man is playing a guitar ." --top 5')
