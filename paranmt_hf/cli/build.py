"""`paranmt build`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.cli.added import AUTHORSHIP_OPTIONS, add_column_options
from paranmt_hf.cli.built import print_built
from paranmt_hf.cli.columns import add_max_characters, check_names, columns, positions
from paranmt_hf.cli.options import SCORER_OPTIONS, add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options
from paranmt_hf.errors import InputError

if TYPE_CHECKING:
    from paranmt_hf.corpus.bitext.readers import AlignedText


SUMMARY = "translate a bitext, score the pairs, release them"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt build`."""
    from paranmt_hf.corpus.authorship import AuthorshipConfig
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.corpus.translation.translator import TranslatorConfig
    from paranmt_hf.encoders.scorer import ScorerConfig
    from paranmt_hf.workflows.build import build
    from paranmt_hf.workflows.support.release_run import ReleaseConfig

    text = parser.add_argument_group(
        "bitext: two aligned files, or one of --tsv, --parquet and --dataset with --columns"
    )
    text.add_argument("--source", type=Path, help="foreign side, one sentence per line (plain, .gz, .xz, .zst)")
    text.add_argument("--reference", type=Path, help="English side, aligned with it")
    text.add_argument("--tsv", type=Path, nargs="+", help="tab-separated files; columns are numbered from 1")
    text.add_argument("--parquet", type=Path, nargs="+", help="Parquet files")
    text.add_argument("--dataset", help="dataset on the Hub, or a folder, read as a stream")
    text.add_argument("--dataset-config", help="its config")
    text.add_argument("--dataset-split", default="train", help="its split (default: %(default)s)")
    text.add_argument("--dataset-revision", help="its revision")
    text.add_argument("--columns", type=columns, help="where each column is: source=2,reference=1[,origin=3]")
    add_max_characters(text)
    parser.add_argument("--out", type=Path, required=True, help="folder of the release")
    groups = {TranslatorConfig: "translator", ScorerConfig: "scorer", ReleaseConfig: "release", EngineConfig: "engine"}
    for kind, title in groups.items():
        group = parser.add_argument_group(title)
        if kind is TranslatorConfig:
            group.add_argument(
                "--translator",
                required=True,
                help="folder or Hub id of a translation model; `embedded` is the small Czech captions model",
            )
        add_options(
            group,
            kind,
            leave_out=["name"] if kind is TranslatorConfig else [],
            names=SCORER_OPTIONS if kind is ScorerConfig else None,
        )
    add_column_options(parser)

    def run(arguments: argparse.Namespace) -> None:
        built = build(
            _bitext(arguments),
            arguments.out,
            translator=from_options(TranslatorConfig, arguments, name=arguments.translator),
            scorer=from_options(ScorerConfig, arguments, SCORER_OPTIONS),
            release=from_options(ReleaseConfig, arguments),
            engine=from_options(EngineConfig, arguments),
            add=arguments.add,
            authorship=from_options(AuthorshipConfig, arguments, AUTHORSHIP_OPTIONS),
        )
        keep_options(arguments, built.folder, fresh=built.fresh)
        print_built(built)

    parser.finish(
        run,
        "paranmt build --source train.cs --reference train.en --translator embedded --out corpus --license mit",
    )


def _bitext(arguments: argparse.Namespace) -> AlignedText:
    from paranmt_hf.corpus.bitext.hub_dataset import HubDataset
    from paranmt_hf.corpus.bitext.readers import LineFiles, ParquetFiles, TabFile, TextOptions

    pair = arguments.source or arguments.reference
    if sum(bool(given) for given in (pair, arguments.tsv, arguments.parquet, arguments.dataset)) != 1:
        raise InputError("give the bitext once: --source and --reference, or --tsv, or --parquet, or --dataset")
    if pair:
        if not (arguments.source and arguments.reference):
            raise InputError("--source and --reference belong together: two files, aligned line by line")
        return LineFiles(
            {"source": arguments.source, "reference": arguments.reference}, max_characters=arguments.max_characters
        )
    if arguments.tsv and not arguments.columns:
        raise InputError("--tsv needs --columns, which numbers them from 1, such as --columns source=2,reference=1")
    columns = arguments.columns or {"source": "source", "reference": "reference"}
    if missing := {"source", "reference"} - columns.keys():
        raise InputError(f"--columns must name source and reference; {', '.join(sorted(missing))} is missing")
    check_names(columns, ["source", "reference", "origin"])
    options: TextOptions = {
        "max_characters": arguments.max_characters,
        "optional": columns.keys() & {"origin"},
    }
    if arguments.tsv:
        return TabFile(arguments.tsv, positions(columns), **options)
    if arguments.parquet:
        return ParquetFiles(arguments.parquet, columns, **options)
    return HubDataset(
        arguments.dataset,
        columns,
        config=arguments.dataset_config,
        split=arguments.dataset_split,
        revision=arguments.dataset_revision,
        **options,
    )
