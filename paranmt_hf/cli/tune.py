"""`paranmt tune`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from paranmt_hf.cli.options import DATA_HELP, add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options
from paranmt_hf.errors import InputError

SUMMARY = "search for the settings of an encoder: train each on a sample, keep the best"
# What the search decides itself.
NOT_HERE = {"epochs", "patience", "evaluations", "report_to", "mine_over", "error_negatives"}


def configure(parser: CommandParser) -> None:
    """Options of `paranmt tune`."""
    from paranmt_hf.corpus.pairs import PairSelection
    from paranmt_hf.encoders.config import EncoderConfig
    from paranmt_hf.training.config import TrainConfig
    from paranmt_hf.training.tuning.grid import TuneConfig, preset_names, read_preset

    parser.add_argument("--data", nargs="+", required=True, help=DATA_HELP)
    parser.add_argument("--out", type=Path, required=True, help="folder for the outcome")
    parser.add_argument(
        "--development",
        required=True,
        help="scored pairs of phrases whose similarities decide: `sample`, a TSV or Parquet file with sentence1, "
        "sentence2 and score, or a folder with STSBenchmark (its STS 2017 pairs)",
    )
    parser.add_argument("--exclude", type=Path, help="folder with STS sets: leave out pairs with their sentences")
    parser.add_argument(
        "--final", type=Path, metavar="FOLDER", help="train the best settings on all pairs; folder of the encoder"
    )
    search = parser.add_argument_group("search")
    search.add_argument(
        "--grid", nargs="+", metavar="NAME=A,B", help="settings and their values: lambda-w=0,1e-5 batch-size=25,50"
    )
    search.add_argument("--grid-file", type=Path, help="the same in YAML: a setting and a list of values on each line")
    search.add_argument(
        "--preset",
        choices=preset_names(),
        help="the grid of arXiv:1511.08198 for a kind of encoder; --grid changes the values of single settings",
    )
    parser.expansions["preset"] = lambda name: read_preset(name).settings
    add_options(search, TuneConfig)
    parser.add_argument_group("training").add_argument(
        "--epochs", type=int, default=5, help="passes over the pairs of a trial (section 4.2) (default: %(default)s)"
    )
    kinds: dict[type, str] = {EncoderConfig: "encoder, where the grid says nothing", TrainConfig: "training, likewise"}
    for kind, title in {**kinds, PairSelection: "pairs"}.items():
        add_options(parser.add_argument_group(title), kind, leave_out=NOT_HERE)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.training.tuning.trials import OPTIONS, SHOWN, TABLE, table_of
        from paranmt_hf.training.tuning.tune import tune

        tuned = tune(
            arguments.data,
            arguments.out,
            _grid(arguments),
            development=arguments.development,
            encoder=from_options(EncoderConfig, arguments),
            config=from_options(TrainConfig, arguments),
            selection=from_options(PairSelection, arguments),
            tuning=from_options(TuneConfig, arguments),
            exclude=arguments.exclude,
            final=arguments.final,
        )
        keep_options(arguments, tuned.folder, fresh=tuned.fresh)
        record, best = tuned.record, tuned.record.best
        print(table_of(record))
        if len(record.trials) > SHOWN:
            print(f"... and {len(record.trials) - SHOWN} more in {arguments.out / TABLE}")
        print("Spearman x 100 on the development set; train, dev: mean of 2 cos(g1,g2) - cos(n1,g1) - cos(n2,g2)")
        seconds = sum(trial.seconds for trial in record.trials)
        print(
            f"{len(record.trials)} of {record.combinations:,} combinations, {record.pairs:,} pairs, {seconds:,.0f} s"
        )
        if record.refused:
            print(f"{record.refused} more do not fit together, such as: {record.refusal}")
        print(f"the best is trial {best.number}: paranmt train --config {arguments.out / OPTIONS} --out FOLDER")
        if tuned.final is not None:
            print(f"{tuned.final.folder}: trained with it on {tuned.final.record.history.pairs:,} pairs")

    parser.finish(
        run, "paranmt tune --data ppdb-2.0-xl-phrasal.gz --preset word --development phrases.tsv --out tuned"
    )


def _grid(arguments: argparse.Namespace) -> dict[str, Any]:
    """The grid of the options: that of a preset, changed by that of a file, changed by words."""
    from paranmt_hf.training.tuning.grid import parse_grid, read_grid, read_preset

    missing = [f"--{name}" for name in ("data", "out", "development") if not getattr(arguments, name)]
    if missing:
        raise InputError(f"preset {arguments.preset} needs {' and '.join(missing)}")
    parts = [
        read_preset(arguments.preset).grid if arguments.preset else {},
        read_grid(arguments.grid_file) if arguments.grid_file else {},
        parse_grid(arguments.grid or []),
    ]
    return {str(name).replace("_", "-"): values for part in parts for name, values in part.items()}
