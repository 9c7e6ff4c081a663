"""`paranmt supervise`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.options import add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "train an encoder for similarity, entailment or sentiment"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt supervise`."""
    from paranmt_hf.encoders.config import EncoderConfig
    from paranmt_hf.training.supervised.config import SuperviseConfig

    parser.add_argument("--data", required=True, help="folder with the task's files in SentEval's layout (SICK, SST)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the model: encoder and head")
    add_options(parser, SuperviseConfig)
    add_options(parser.add_argument_group("encoder"), EncoderConfig)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.training.supervised.supervise import supervise

        done = supervise(
            arguments.data,
            arguments.out,
            config=from_options(SuperviseConfig, arguments),
            encoder=from_options(EncoderConfig, arguments),
        )
        keep_options(arguments, done.folder, fresh=done.fresh)
        record, state = done.record, "" if done.fresh else " (was trained already)"
        settings = record.settings.training
        print(f"{arguments.out}: {settings.task}, {settings.way}, {record.parameters:,} parameters{state}")
        print(f"  the weights are those of epoch {record.best_epoch} of {len(record.epochs)}")
        print(f"  {record.unknown:.1%} of the words or trigrams of the training items are unknown to the encoder")
        print(record.text())
        print(f"load it: paranmt_hf.load_supervised({str(arguments.out)!r})")

    parser.finish(run, "paranmt supervise --data senteval --task SICK-R --init-from models/word --out models/sick")
