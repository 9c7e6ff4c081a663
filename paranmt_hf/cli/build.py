"""`paranmt build`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.cli.added import add_column_options, authorship
from paranmt_hf.cli.built import print_built
from paranmt_hf.cli.columns import add_table_options, read_table
from paranmt_hf.cli.language_models import ESTIMATE_HELP, add_language_model_options, translator_of
from paranmt_hf.cli.options import SCORER_OPTIONS, add_options, add_switch, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options
from paranmt_hf.errors import InputError

if TYPE_CHECKING:
    from paranmt_hf.corpus.bitext.readers import AlignedText


SUMMARY = "translate a bitext, score the pairs, release them"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt build`."""
    from paranmt_hf.corpus.build import build, pivot_of
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.corpus.language_models.config import LanguageModelConfig
    from paranmt_hf.corpus.language_models.stage import describe_cost
    from paranmt_hf.corpus.release_run import ReleaseConfig
    from paranmt_hf.corpus.translation.translator import TranslatorConfig
    from paranmt_hf.encoders.scorer import ScorerConfig

    text = parser.add_argument_group(
        "bitext: two aligned files, or one of --tsv, --parquet and --dataset with --columns; or --text with --pivot"
    )
    text.add_argument("--source", type=Path, help="foreign side, one sentence per line (plain, .gz, .xz, .zst)")
    text.add_argument("--reference", type=Path, help="the other side, aligned with it: English, or --language")
    text.add_argument("--text", type=Path, help="with --pivot: text without a bitext, one sentence per line")
    add_table_options(text, "source=2,reference=1[,origin=3]")
    parser.add_argument("--out", type=Path, required=True, help="folder of the release")
    groups = {TranslatorConfig: "translator", ScorerConfig: "scorer", ReleaseConfig: "release", EngineConfig: "engine"}
    for kind, title in groups.items():
        group = parser.add_argument_group(title)
        if kind is TranslatorConfig:
            group.add_argument(
                "--translator",
                help="folder or Hub id of a translation model; `embedded` is the small Czech captions model; "
                "openai:MODEL is a language model behind a server",
            )
            group.add_argument(
                "--pivot",
                nargs=2,
                metavar=("THERE", "BACK"),
                help="in place of --translator: two models, into another language and back",
            )
        add_options(
            group,
            kind,
            leave_out=["name"] if kind is TranslatorConfig else [],
            names=SCORER_OPTIONS if kind is ScorerConfig else None,
        )
    add_language_model_options(
        parser.add_argument_group("language model, with --translator openai:MODEL"),
        leave_out=["source_language", "target_language"],
    )
    add_switch(parser, "--estimate", dest="estimate", help=ESTIMATE_HELP)
    add_column_options(parser)

    def run(arguments: argparse.Namespace) -> None:
        if (arguments.text is None) != (arguments.pivot is None):
            raise InputError("--text and --pivot belong together: text without a bitext, and the two models for it")
        if (arguments.translator is None) == (arguments.pivot is None):
            raise InputError("give --translator, a model, or --pivot, two models for text without a bitext")
        translator = translator_of(arguments, arguments.translator or arguments.pivot[1])
        pivot = pivot_of(arguments.pivot[0], translator) if arguments.pivot else None
        bitext = _bitext(arguments)
        if arguments.estimate and isinstance(translator, LanguageModelConfig):
            print(describe_cost(bitext, translator, "translate"))
            return
        built = build(
            bitext,
            arguments.out,
            translator=translator,
            pivot=pivot,
            scorer=from_options(ScorerConfig, arguments, SCORER_OPTIONS),
            release=from_options(ReleaseConfig, arguments),
            engine=from_options(EngineConfig, arguments),
            add=arguments.add,
            authorship=authorship(arguments),
        )
        keep_options(arguments, built.folder, fresh=built.fresh)
        print_built(built)

    parser.finish(
        run,
        "paranmt build --source train.cs --reference train.en --translator embedded --out corpus --license mit",
    )


def _bitext(arguments: argparse.Namespace) -> AlignedText:
    from paranmt_hf.corpus.bitext.readers import LineFiles

    pair = arguments.source or arguments.reference
    if sum(bool(given) for given in (pair, arguments.text, arguments.tsv, arguments.parquet, arguments.dataset)) != 1:
        raise InputError("give the bitext once: --source and --reference, or --tsv, or --parquet, or --dataset")
    if arguments.text:
        if arguments.columns:
            raise InputError("--columns is for --tsv, --parquet and --dataset; --text has one sentence on a line")
        return LineFiles({"reference": arguments.text}, max_characters=arguments.max_characters)
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
    return read_table(arguments, columns, ["source", "reference"])
