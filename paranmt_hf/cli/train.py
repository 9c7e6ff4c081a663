"""`paranmt train`."""

from __future__ import annotations

import argparse
import typing
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.cli.options import DATA_HELP, Run, add_options, from_options

if TYPE_CHECKING:
    pass


SUMMARY = "train a sentence encoder on paraphrase pairs"


def configure(parser: argparse.ArgumentParser) -> Run:
    """Options of `paranmt train`."""
    from paranmt_hf.corpus.pairs import SelectionConfig
    from paranmt_hf.encoders.config import EncoderConfig
    from paranmt_hf.training.config import TrainConfig

    parser.add_argument("--data", nargs="+", required=True, help=DATA_HELP)
    parser.add_argument("--out", type=Path, required=True, help="folder of the encoder")
    parser.add_argument(
        "--development",
        type=Path,
        help="folder with STSBenchmark: keep the weights that are best on its STS 2017 pairs",
    )
    parser.add_argument("--exclude", type=Path, help="folder with STS sets: leave out pairs with their sentences")
    parser.add_argument("--teacher-cache", type=Path, help="folder that keeps the teacher's vectors for other runs")
    for kind, title in {EncoderConfig: "encoder", TrainConfig: "training", SelectionConfig: "pairs"}.items():
        add_options(typing.cast(argparse.ArgumentParser, parser.add_argument_group(title)), kind)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.workflows.train import train

        trained = train(
            arguments.data,
            arguments.out,
            encoder=from_options(EncoderConfig, arguments),
            config=from_options(TrainConfig, arguments),
            selection=from_options(SelectionConfig, arguments),
            development=arguments.development,
            exclude=arguments.exclude,
            teacher_cache=arguments.teacher_cache,
        )
        record, state = trained.record, "" if trained.fresh else " (was trained already)"
        print(f"{arguments.out}: {record.dimension} dimensions, {record.parameters:,} parameters{state}")
        history = record.history
        print(f"  {history.pairs:,} pairs in {history.seconds:,.0f} s, last loss {history.losses[-1][1]:.3f}")
        if record.development is not None:
            print(f"  Pearson {100 * record.development:.1f} on STS 2017 track 5, the development set")
        print(f"load it: paranmt_hf.load({str(arguments.out)!r})")

    return run
