"""`paranmt train-paraphraser`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.options import DATA_HELP, add_exclude, add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "train an encoder-decoder that paraphrases"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt train-paraphraser`."""
    from paranmt_hf.corpus.pairs import PairSelection
    from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining

    parser.add_argument("data", nargs="+", help=DATA_HELP)
    parser.add_argument("--out", type=Path, required=True, help="folder of the model")
    add_exclude(parser)
    kinds = {ParaphraserConfig: "model", ParaphraserTraining: "training", PairSelection: "pairs"}
    for kind, title in kinds.items():
        add_options(parser.add_argument_group(title), kind)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.paraphrase.train_paraphraser import train_paraphraser

        trained = train_paraphraser(
            arguments.data,
            arguments.out,
            config=from_options(ParaphraserConfig, arguments),
            training=from_options(ParaphraserTraining, arguments),
            selection=from_options(PairSelection, arguments),
            exclude=arguments.exclude,
        )
        keep_options(arguments, trained.folder, fresh=trained.fresh)
        record, state = trained.record, "" if trained.fresh else " (was trained already)"
        print(f"{arguments.out}: {record.parameters:,} parameters, {record.pieces:,} pieces{state}")
        print(f"  {record.pairs:,} pairs, {record.held_out:,} held out, {record.too_long:,} too long")
        for each in record.course.measured:
            bleu = "" if each.bleu is None else f", BLEU {each.bleu:.1f}"
            print(f"  step {each.step:>9,}: held-out perplexity {each.perplexity:.2f}{bleu}")
        if (best := record.course.best) is not None:
            print(f"  the weights are those of step {best.step:,}")
        print(f"use it: paranmt paraphrase FILE --model {arguments.out} --out FILE.tsv")

    parser.finish(run, "paranmt train-paraphraser paranmt50m --min-score 0.5 --out models/paraphraser")
