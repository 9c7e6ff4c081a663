"""`paranmt paraphrase`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.options import SCORER_OPTIONS, add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options
from paranmt_hf.errors import InputError

SUMMARY = "generate paraphrases of the sentences of a file"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt paraphrase`."""
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.encoders.scorer import ScorerConfig
    from paranmt_hf.paraphrase.config import ParaphraseConfig

    parser.add_argument(
        "file", type=Path, help="text file with one sentence on a line (plain, .gz, .xz, .zst), Parquet, or release"
    )
    parser.add_argument("--model", required=True, help="encoder-decoder: folder or Hub id")
    parser.add_argument("--out", type=Path, required=True, help="file of paraphrases: .parquet, .jsonl or .tsv")
    parser.add_argument("--column", help="column of a Parquet file, or side of a release (default: reference)")
    add_options(parser.add_argument_group("search"), ParaphraseConfig)
    syntax = parser.add_argument_group("syntax, for what `paranmt train-controlled` made")
    syntax.add_argument(
        "--template", action="append", help="what the top of each paraphrase's tree is to be, (S(NP)(VP)); repeatable"
    )
    syntax.add_argument("--templates", type=int, help="in place of these: so many of the most frequent templates")
    syntax.add_argument(
        "--parser",
        default="link-grammar",
        help="trees of the sentences: link-grammar, stanza, or a file of trees; that which the model was trained with "
        "(default: link-grammar)",
    )
    add_options(parser.add_argument_group("paraphrase score"), ScorerConfig, names=SCORER_OPTIONS)
    add_options(parser.add_argument_group("where it runs"), EngineConfig)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.paraphrase.paraphrase_file import paraphrase_file

        if arguments.template and arguments.templates is not None:
            raise InputError("give either --template, or --templates for the most frequent ones")
        done = paraphrase_file(
            arguments.file,
            arguments.out,
            model=arguments.model,
            config=from_options(ParaphraseConfig, arguments),
            column=arguments.column,
            scorer=from_options(ScorerConfig, arguments, SCORER_OPTIONS),
            engine=from_options(EngineConfig, arguments),
            templates=arguments.template or arguments.templates,
            parser=arguments.parser,
        )
        keep_options(arguments, done.path, fresh=done.fresh)
        state = "" if done.fresh else " (was there already)"
        print(f"{done.path}: {done.paraphrases:,} paraphrases of {done.paraphrased:,} of {done.lines:,} lines{state}")
        for note, count in done.notes.items():
            print(f"  without  {count:>12,} {note}")

    parser.finish(run, "paranmt paraphrase sentences.txt --model models/paraphraser --n 3 --out paraphrases.tsv")
