"""`paranmt augment`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.options import SCORER_OPTIONS, add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "add paraphrases to labelled sentences"
# Of each sentence.
SEARCH_OPTIONS = {"n": "per_sentence"}


def configure(parser: CommandParser) -> None:
    """Options of `paranmt augment`."""
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.encoders.scorer import ScorerConfig
    from paranmt_hf.paraphrase.augment import AugmentConfig
    from paranmt_hf.paraphrase.config import ParaphraseConfig

    parser.add_argument("file", type=Path, help="labelled sentences: .tsv or .csv with a header, .jsonl or .parquet")
    parser.add_argument("--model", required=True, help="encoder-decoder: folder or Hub id")
    parser.add_argument("--out", type=Path, required=True, help="the new file: .tsv, .csv, .jsonl or .parquet")
    add_options(parser, AugmentConfig)
    add_options(parser.add_argument_group("search"), ParaphraseConfig, names=SEARCH_OPTIONS)
    add_options(parser.add_argument_group("paraphrase score"), ScorerConfig, names=SCORER_OPTIONS)
    add_options(parser.add_argument_group("where it runs"), EngineConfig)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.paraphrase.augment import augment

        done = augment(
            arguments.file,
            arguments.out,
            model=arguments.model,
            config=from_options(AugmentConfig, arguments),
            search=from_options(ParaphraseConfig, arguments, SEARCH_OPTIONS),
            scorer=from_options(ScorerConfig, arguments, SCORER_OPTIONS),
            engine=from_options(EngineConfig, arguments),
        )
        keep_options(arguments, done.path, fresh=done.fresh)
        totals = [sum(counts[name] for counts in done.labels.values()) for name in ("originals", "paraphrases")]
        state = "" if done.fresh else " (was there already)"
        print(f"{done.path}: {totals[0]:,} sentences and {totals[1]:,} paraphrases{state}")
        for label, counts in done.labels.items():
            short = f", {counts['short']:,} short: raise --per-sentence and --beams" if counts["short"] else ""
            print(f"  {counts['originals']:>10,} + {counts['paraphrases']:>10,}  {label}{short}")
        for note, count in {**done.notes, "paraphrases that are in the file already": done.left_out}.items():
            if count:
                print(f"  without  {count:>12,} {note}")

    parser.finish(run, "paranmt augment reviews.tsv --model models/paraphraser --per-sentence 3 --out more.tsv")
