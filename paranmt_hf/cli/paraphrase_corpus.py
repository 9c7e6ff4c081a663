"""`paranmt paraphrase-corpus`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.cli.added import add_column_options, authorship
from paranmt_hf.cli.built import print_built
from paranmt_hf.cli.columns import add_table_options, read_table
from paranmt_hf.cli.language_models import ESTIMATE_HELP, add_language_model_options, language_model_of
from paranmt_hf.cli.options import SCORER_OPTIONS, add_options, add_switch, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options
from paranmt_hf.errors import InputError

if TYPE_CHECKING:
    from paranmt_hf.corpus.bitext.readers import AlignedText

SUMMARY = "have a language model paraphrase text, score the pairs, release them"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt paraphrase-corpus`."""
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.corpus.release_run import ReleaseConfig
    from paranmt_hf.encoders.scorer import ScorerConfig

    text = parser.add_argument_group("text: one of --text, --tsv, --parquet and --dataset")
    text.add_argument("--text", type=Path, help="one sentence per line (plain, .gz, .xz, .zst)")
    add_table_options(text, "reference=text[,origin=domain]")
    parser.add_argument("--out", type=Path, required=True, help="folder of the release")
    model = parser.add_argument_group("language model")
    model.add_argument("--paraphraser", required=True, help="openai:MODEL, a language model behind a server")
    add_language_model_options(model)
    add_switch(parser, "--estimate", dest="estimate", help=ESTIMATE_HELP)
    add_options(parser.add_argument_group("scorer"), ScorerConfig, names=SCORER_OPTIONS)
    add_options(parser.add_argument_group("release"), ReleaseConfig, leave_out=["keep_source"])
    add_options(parser.add_argument_group("engine"), EngineConfig)
    add_column_options(parser)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.corpus.language_models.stage import describe_cost
        from paranmt_hf.corpus.paraphrase_corpus import paraphrase_corpus

        paraphraser, sentences = language_model_of(arguments, arguments.paraphraser), _text(arguments)
        if arguments.estimate:
            print(describe_cost(sentences, paraphraser, "paraphrase"))
            return
        built = paraphrase_corpus(
            sentences,
            arguments.out,
            paraphraser=paraphraser,
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
        "paranmt paraphrase-corpus --text sentences.txt --paraphraser openai:qwen3-8b "
        "--base-url http://localhost:8000/v1 --out corpus --license cc-by-4.0",
    )


def _text(arguments: argparse.Namespace) -> AlignedText:
    from paranmt_hf.corpus.bitext.readers import LineFiles

    given = (arguments.text, arguments.tsv, arguments.parquet, arguments.dataset)
    if sum(bool(one) for one in given) != 1:
        raise InputError("give the text once: --text, or --tsv, or --parquet, or --dataset")
    if arguments.text:
        if arguments.columns:
            raise InputError("--columns is for --tsv, --parquet and --dataset; --text has one sentence on a line")
        return LineFiles({"reference": arguments.text}, max_characters=arguments.max_characters)
    if arguments.tsv and not arguments.columns:
        raise InputError("--tsv needs --columns, which numbers them from 1, such as --columns reference=1")
    columns = arguments.columns or {"reference": "text"}
    if "reference" not in columns:
        raise InputError("--columns must name reference, the column of the sentences, such as reference=text")
    return read_table(arguments, columns, ["reference"])
