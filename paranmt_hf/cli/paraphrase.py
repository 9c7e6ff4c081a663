"""`paranmt paraphrase`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.options import SCORER_OPTIONS, add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

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
    add_options(parser.add_argument_group("paraphrase score"), ScorerConfig, names=SCORER_OPTIONS)
    add_options(parser.add_argument_group("where it runs"), EngineConfig)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.workflows.paraphrase import paraphrase_file

        done = paraphrase_file(
            arguments.file,
            arguments.out,
            model=arguments.model,
            config=from_options(ParaphraseConfig, arguments),
            column=arguments.column,
            scorer=from_options(ScorerConfig, arguments, SCORER_OPTIONS),
            engine=from_options(EngineConfig, arguments),
        )
        keep_options(arguments, done.path, fresh=done.fresh)
        state = "" if done.fresh else " (was there already)"
        print(f"{done.path}: {done.paraphrases:,} paraphrases of {done.paraphrased:,} of {done.lines:,} lines{state}")
        for note, count in done.notes.items():
            print(f"  without  {count:>12,} {note}")

    parser.finish(run, "paranmt paraphrase sentences.txt --model models/paraphraser --n 3 --out paraphrases.tsv")
