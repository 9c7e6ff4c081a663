"""`paranmt adversarial`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.options import SCORER_OPTIONS, add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "find paraphrases that change what a classifier says"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt adversarial`."""
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.encoders.scorer import ScorerConfig
    from paranmt_hf.paraphrase.adversarial import AdversarialConfig
    from paranmt_hf.paraphrase.config import ParaphraseConfig

    parser.add_argument("file", type=Path, help="labelled sentences: .tsv or .csv with a header, .jsonl or .parquet")
    parser.add_argument("--model", required=True, help="encoder-decoder: folder or Hub id")
    parser.add_argument(
        "--classifier",
        required=True,
        help="model of `paranmt supervise` or text classifier of transformers: folder or Hub id",
    )
    parser.add_argument("--out", type=Path, required=True, help="file of the examples: .tsv, .csv, .jsonl or .parquet")
    add_options(parser, AdversarialConfig)
    # The number of paraphrases and their score are settings of the command itself.
    add_options(parser.add_argument_group("search"), ParaphraseConfig, leave_out=("n", "min_score"))
    add_options(parser.add_argument_group("paraphrase score"), ScorerConfig, names=SCORER_OPTIONS)
    add_options(parser.add_argument_group("where it runs"), EngineConfig)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.paraphrase.adversarial import find_adversarial

        config = from_options(AdversarialConfig, arguments)
        done = find_adversarial(
            arguments.file,
            arguments.out,
            model=arguments.model,
            classifier=arguments.classifier,
            config=config,
            search=from_options(ParaphraseConfig, arguments),
            scorer=from_options(ScorerConfig, arguments, SCORER_OPTIONS),
            engine=from_options(EngineConfig, arguments),
        )
        keep_options(arguments, done.path, fresh=done.fresh)
        state = "" if done.fresh else " (was there already)"
        print(f"{done.path}: {done.broken:,} sentences are broken{state}")
        print(f"  {done.right:,} of {done.sentences:,} sentences are classified rightly")
        print(f"  {done.tried:,} of these have paraphrases with a score of at least {config.min_score:g}")
        print(f"  {done.changed:,} of {done.paraphrases:,} paraphrases get another label")
        for label, counts in done.labels.items():
            print(f"  {label}: {counts['broken']:,} broken of {counts['tried']:,} tried and {counts['right']:,} right")
        print(f"  accuracy {done.before:.1%} before, {done.after:.1%} after")
        for note, count in done.notes.items():
            print(f"  without  {count:>12,} {note}")

    parser.finish(
        run, "paranmt adversarial reviews.tsv --model models/paraphraser --classifier models/sst --out broken.tsv"
    )
