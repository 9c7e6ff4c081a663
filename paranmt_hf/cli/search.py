"""`paranmt search`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from paranmt_hf.cli.options import add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options
from paranmt_hf.errors import InputError

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
    from paranmt_hf.search.index import SpaceConfig

    parser.add_argument("corpus", type=Path, help=CORPUS_HELP)
    parser.add_argument("--out", type=Path, required=True, help="folder of the index")
    parser.add_argument("--column", help="column of a Parquet file, or side of a release (default: reference)")
    add_encoder(parser)
    add_options(parser, SpaceConfig)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.encoders.scorer import ScorerConfig
        from paranmt_hf.search.index import build_index

        indexed = build_index(
            arguments.corpus,
            arguments.out,
            encoder=from_options(ScorerConfig, arguments, ENCODER_OPTIONS),
            column=arguments.column,
            config=from_options(SpaceConfig, arguments),
        )
        keep_options(arguments, indexed.folder, fresh=indexed.fresh)
        record = indexed.record
        print(
            f"{indexed.folder}: {record.sentences:,} distinct sentences of {record.lines:,}"
            + ("" if indexed.fresh else " (was indexed already)")
        )
        for reason, count in record.dropped.items():
            print(f"  dropped  {count:>12,} {reason}")

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
        from paranmt_hf.search.index import SentenceIndex
        from paranmt_hf.util.files import check_result_path, write_result

        if arguments.json:
            check_result_path(arguments.json, "--json")
        queries = _queries(arguments)
        encoder = from_options(ScorerConfig, arguments, ENCODER_OPTIONS)
        index = SentenceIndex(arguments.index, encoder=encoder if encoder.name or encoder.vectors else None)
        found = index.search(queries, top=arguments.top, probes=arguments.probes)
        for query, hits in zip(queries, found, strict=True):
            print(query)
            for hit in hits:
                print(f"  {hit.cosine:6.3f}  {hit.line:>10,}  {hit.sentence}")
        if arguments.json:
            rows = [
                {"query": query, "hits": [asdict(hit) for hit in hits]}
                for query, hits in zip(queries, found, strict=True)
            ]
            write_result(arguments.json, f"{json.dumps(rows, indent=1, ensure_ascii=False)}\n")

    parser.finish(run, 'paranmt search query index "a man is playing a guitar ." --top 5')


def _queries(arguments: argparse.Namespace) -> list[str]:
    """Collect queries from the command line, standard input and a file."""
    from paranmt_hf.search.index import read_queries

    queries = []
    try:
        for word in arguments.queries:
            lines = sys.stdin.read().split("\n") if word == "-" else [word]
            queries += [line.strip() for line in lines if line.strip()]
        # What is no UTF-8 on a command line comes as halves of surrogate pairs.
        "".join(queries).encode()
    except UnicodeError:
        raise InputError("a query is not UTF-8; give text in UTF-8") from None
    if arguments.file:
        queries += read_queries(arguments.file)
    if not queries:
        raise InputError("there is no query: give sentences, - for standard input, or --file")
    return queries
