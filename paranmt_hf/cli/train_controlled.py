"""`paranmt train-controlled`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.options import add_exclude, add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "train a network that paraphrases after templates of syntax"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt train-controlled`."""
    from paranmt_hf.corpus.pairs import PairSelection
    from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
    from paranmt_hf.paraphrase.syntax.config import SyntaxConfig

    parser.add_argument("data", nargs="+", help="parsed pairs: folders that `paranmt parse` made, or Parquet files")
    parser.add_argument("--out", type=Path, required=True, help="folder of the network")
    add_exclude(parser)
    add_options(parser.add_argument_group("model"), ParaphraserConfig, leave_out=("model", "base"))
    kinds = {
        SyntaxConfig: "trees",
        ParaphraserTraining: "training of each model",
        PairSelection: "pairs",
    }
    for kind, title in kinds.items():
        add_options(
            parser.add_argument_group(title), kind, leave_out=("noise",) if kind is ParaphraserTraining else ()
        )

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.paraphrase.train_controlled import train_controlled

        trained = train_controlled(
            arguments.data,
            arguments.out,
            config=from_options(ParaphraserConfig, arguments),
            syntax=from_options(SyntaxConfig, arguments),
            training=from_options(ParaphraserTraining, arguments),
            selection=from_options(PairSelection, arguments),
            exclude=arguments.exclude,
        )
        keep_options(arguments, trained.folder, fresh=trained.fresh)
        record, state = trained.record, "" if trained.fresh else " (was trained already)"
        print(f"{arguments.out}: {record.parameters:,} parameters, {record.pieces:,} pieces{state}")
        print(f"  {record.pairs:,} pairs, {record.held_out:,} held out, {record.templates:,} templates")
        print(
            f"  left out: {record.without_tree:,} without a tree on a side, {record.long_trees:,} with a long tree, "
            f"{record.too_long:,} with a long sentence"
        )
        for what, course in (("trees", record.parse_course), ("paraphrases", record.course)):
            for each in course.measured:
                shown = "" if each.bleu is None else f", BLEU {each.bleu:.1f}"
                shown += "" if each.template_match is None else f", template as asked {each.template_match:.1%}"
                print(f"  {what}, step {each.step:>9,}: held-out perplexity {each.perplexity:.2f}{shown}")
        print(f"use it: paranmt paraphrase FILE --model {arguments.out} --templates 5 --out FILE.tsv")

    parser.finish(run, "paranmt train-controlled parsed --min-score 0.5 --out models/controlled")
