"""`paranmt evaluate`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from paranmt_hf.cli.options import DATA_HELP, add_options, add_switch, from_options
from paranmt_hf.cli.paraphrase_measures import configure_canonical, configure_paraphrases
from paranmt_hf.cli.parser import CommandParser, keep_options
from paranmt_hf.cli.word_vectors import add_averages, averages_of

if TYPE_CHECKING:
    from paranmt_hf.evaluation.results import Evaluation

SUMMARY = "measure encoders (similarity, transfer tasks, tasks of mteb, overfitting) and paraphrasers"


def configure(parser: CommandParser) -> None:
    """Commands below `paranmt evaluate`."""
    parser.show_example("paranmt evaluate sts embedded --data FOLDER_WITH_STS")
    kinds = parser.kinds("TASK")
    for name, summary, add in (
        ("sts", "semantic textual similarity", _configure_sts),
        ("transfer", "transfer tasks: classifiers trained on their vectors", _configure_transfer),
        ("overfitting", "how far pairs stand out from their negatives", _configure_overfitting),
        ("mteb", "tasks of the library mteb", _configure_mteb),
        ("contrast", "triples: is a paraphrase closer than a sentence of another meaning", _configure_contrast),
    ):
        add(kinds.add_parser(name, help=summary, description=f"Measure encoders on {summary}."))
    for name, summary, add in (
        ("paraphrases", "their paraphrases: references, copies, meaning, diversity", configure_paraphrases),
        ("canonical", "noisy sentences: how near the output is to the clean ones", configure_canonical),
    ):
        add(kinds.add_parser(name, help=f"paraphrasers: {summary}", description=f"Measure paraphrasers on {summary}."))


def _configure_sts(parser: CommandParser) -> None:
    """Options of `paranmt evaluate sts`."""
    from paranmt_hf.evaluation.baselines import BaselineName
    from paranmt_hf.evaluation.correlation import RESAMPLES

    _add_models(parser)
    parser.add_argument(
        "--data",
        nargs="+",
        required=True,
        help="folders with STS sets (SentEval's layout), with SICK or PIT 2015, TSV files, Hub ids",
    )
    _add_output(parser)
    add_switch(parser, "--speed", dest="speed", help="measure how fast encoders are, for cards")
    parser.add_argument(
        "--baselines",
        nargs="+",
        choices=get_args(BaselineName),
        default=[],
        help="measures of the papers, too",
    )
    add_averages(parser)
    parser.add_argument(
        "--tables",
        nargs="+",
        choices=("paragram", "sent2vec"),
        default=[],
        help="tables of the papers too: paragram (22 sets, arXiv:1511.08198), sent2vec (STS 2014 and SICK, "
        "arXiv:1703.02507)",
    )
    parser.add_argument(
        "--bootstrap",
        type=int,
        default=RESAMPLES,
        help="resamples for intervals; 0 for none (default: %(default)s)",
    )

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.evaluation.evaluate import evaluate

        _show(
            arguments,
            lambda: evaluate(
                arguments.models,
                data=arguments.data,
                baselines=arguments.baselines,
                vectors=arguments.vectors,
                averages=averages_of(arguments),
                tables=arguments.tables,
                bootstrap=arguments.bootstrap,
                speed=arguments.speed,
            ),
        )

    parser.finish(run, "paranmt evaluate sts models/word embedded --data FOLDER_WITH_STS --json results.json")


def _configure_transfer(parser: CommandParser) -> None:
    """Options of `paranmt evaluate transfer`."""
    from paranmt_hf.evaluation.transfer.data import TASKS
    from paranmt_hf.evaluation.transfer.heads import TransferConfig

    _add_models(parser)
    parser.add_argument("--data", required=True, help="folder with the tasks' files in SentEval's layout")
    parser.add_argument(
        "--tasks",
        nargs="+",
        choices=TASKS,
        metavar="TASK",
        help=f"some of {', '.join(TASKS)}; else all that are there",
    )
    add_options(parser, TransferConfig)
    add_averages(parser)
    _add_output(parser)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.evaluation.evaluate import transfer

        _show(
            arguments,
            lambda: transfer(
                arguments.models,
                data=arguments.data,
                vectors=arguments.vectors,
                averages=averages_of(arguments),
                tasks=arguments.tasks or (),
                config=from_options(TransferConfig, arguments),
            ),
        )

    parser.finish(run, "paranmt evaluate transfer models/word embedded --data FOLDER_OF_SENTEVAL --json transfer.json")


def _configure_overfitting(parser: CommandParser) -> None:
    """Options of `paranmt evaluate overfitting`."""
    from paranmt_hf.training.pair_margins import OverfittingConfig

    _add_models(parser)
    parser.add_argument("--data", nargs="+", required=True, help=f"what they were trained on: {DATA_HELP}")
    parser.add_argument(
        "--development",
        help="pairs that they were not trained on: `sample`, a TSV or Parquet file with sentence1, sentence2 and "
        "score, or a folder with STSBenchmark (its STS 2017 pairs)",
    )
    add_options(parser, OverfittingConfig)
    _add_output(parser)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.training.pair_margins import evaluate_overfitting

        config = from_options(OverfittingConfig, arguments)
        _show(
            arguments,
            lambda: evaluate_overfitting(
                arguments.models, data=arguments.data, development=arguments.development, config=config
            ),
        )

    parser.finish(run, "paranmt evaluate overfitting models/word --data ppdb-2.0-xl-phrasal.gz --development sample")


def _configure_mteb(parser: CommandParser) -> None:
    """Options of `paranmt evaluate mteb`."""
    _add_models(parser)
    parser.add_argument(
        "--tasks",
        nargs="+",
        required=True,
        metavar="TASK",
        help="names of tasks, such as STS12 SICK-R, or of benchmarks, such as 'MTEB(eng, v2)'",
    )
    parser.add_argument(
        "--data",
        type=Path,
        help="folder with the tasks' data, FOLDER/TASK laid out as the data set on the Hub; else they are fetched",
    )
    parser.add_argument(
        "--languages",
        nargs="+",
        default=["eng"],
        metavar="CODE",
        help="which parts of tasks in several languages (default: eng)",
    )
    parser.add_argument("--name", help="ORGANISATION/NAME under which the model is submitted")
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="folder for the results; tasks whose results are there are not run again",
    )

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.evaluation.mteb import evaluate_mteb

        made = evaluate_mteb(
            arguments.models,
            tasks=arguments.tasks,
            out=arguments.out,
            data=arguments.data,
            languages=arguments.languages,
            name=arguments.name,
        )
        keep_options(arguments, arguments.out)
        print(made.summary())

    parser.finish(
        run, "paranmt evaluate mteb models/word --tasks STS12 SICK-R --data FOLDER_OF_TASKS --out results/word"
    )


def _configure_contrast(parser: CommandParser) -> None:
    """Options of `paranmt evaluate contrast`."""
    _add_models(parser)
    parser.add_argument(
        "--data",
        type=Path,
        help="your own triples: a TSV file whose first line names the columns kind, sentence, paraphrase and other "
        "(default: 180 that the package carries)",
    )
    _add_output(parser)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.evaluation.contrast import evaluate_contrast

        _show(arguments, lambda: evaluate_contrast(arguments.models, data=arguments.data))

    parser.finish(run, "paranmt evaluate contrast models/word embedded --json contrast.json")


def _add_models(parser: CommandParser) -> None:
    parser.add_argument(
        "models", nargs="*", help="folders or Hub ids; `embedded` is the encoder that the package carries"
    )


def _add_output(parser: CommandParser) -> None:
    parser.add_argument("--json", type=Path, help="write the results into this file")


def _show(arguments: argparse.Namespace, evaluated: Callable[[], Evaluation]) -> None:
    """Evaluate, print the result, and write it with the options if asked to."""
    from paranmt_hf.evaluation.results import write_results
    from paranmt_hf.util.files import check_result_path

    if arguments.json:
        check_result_path(arguments.json, "--json")
    found = evaluated()
    print(found.summary())
    if arguments.json:
        write_results(arguments.json, found)
        keep_options(arguments, arguments.json)
        print(f"results: {arguments.json}")
