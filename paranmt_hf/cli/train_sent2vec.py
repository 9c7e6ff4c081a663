"""`paranmt train-sent2vec`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.options import add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "train a sentence encoder on single sentences (Sent2Vec)"
# Options that most runs give; the others are listed below them.
USUAL = {"preset", "ngrams", "dimension", "min_count", "min_target_count", "epochs", "cut", "seed", "threads"}


def configure(parser: CommandParser) -> None:
    """Options of `paranmt train-sent2vec`."""
    from paranmt_hf.training.sent2vec.config import Sent2VecConfig

    parser.add_argument(
        "--data",
        nargs="+",
        required=True,
        help="text files with one sentence on a line (plain, .gz, .xz, .zst), Parquet files, release folders, or "
        "datasets on the Hub",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the encoder")
    parser.add_argument(
        "--columns",
        nargs="+",
        help="columns of Parquet, releases and datasets (default: both sides of pairs, else the one column of text)",
    )
    parser.decisive = {"threads"}
    add_options(parser.add_argument_group("training"), Sent2VecConfig, only=USUAL)
    add_options(parser.add_argument_group("advanced"), Sent2VecConfig, leave_out=USUAL)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.training.sent2vec.train_sent2vec import train_sent2vec

        config = from_options(Sent2VecConfig, arguments)
        trained = train_sent2vec(arguments.data, arguments.out, columns=arguments.columns, config=config)
        keep_options(arguments, trained.folder, fresh=trained.fresh)
        record, state = trained.record, "" if trained.fresh else " (was trained already)"
        course = record.course
        rows = f"{record.words:,} words" + (f" and {record.ngrams:,} buckets of n-grams" if record.ngrams else "")
        print(f"{arguments.out}: {record.dimension} dimensions, {rows}{state}")
        rate = course.words / max(course.seconds, 1e-9)
        print(
            f"  {course.words:,} words in {course.seconds:,.0f} s ({rate:,.0f} a second), mean loss {course.mean:.3f}"
        )
        print(f"load it: paranmt_hf.load({str(arguments.out)!r})")

    parser.finish(run, "paranmt train-sent2vec --data text.txt --preset wikipedia --ngrams 2 --out models/sent2vec")
