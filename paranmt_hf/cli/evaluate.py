"""`paranmt evaluate`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Literal

from paranmt_hf.cli.options import add_switch
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "measure encoders on semantic textual similarity"


def configure(parser: CommandParser) -> None:
    """Commands below `paranmt evaluate`."""
    parser.show_example("paranmt evaluate sts embedded --data FOLDER_WITH_STS")
    summary = "semantic textual similarity"
    _configure_sts(parser.kinds("TASK").add_parser("sts", help=summary, description=f"Measure encoders on {summary}."))


def _configure_sts(parser: CommandParser) -> None:
    """Options of `paranmt evaluate sts`."""
    from paranmt_hf.evaluation.baselines import BASELINES
    from paranmt_hf.evaluation.correlation import RESAMPLES

    parser.add_argument(
        "models", nargs="*", help="folders or Hub ids; `embedded` is the encoder that the package carries"
    )
    parser.add_argument("--data", required=True, help="folder with STS sets (SentEval's layout), a TSV file, a Hub id")
    parser.add_argument("--json", type=Path, help="write the results into this file")
    add_switch(parser, "--markdown", dest="markdown", help="print Markdown tables")
    parser.add_argument(
        "--baselines", nargs="+", choices=BASELINES, default=[], help="measures of the papers, beside the models"
    )
    parser.add_argument(
        "--bootstrap",
        type=int,
        default=RESAMPLES,
        help="resamples for intervals; 0 for none (default: %(default)s)",
    )

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.evaluation.results import compare, differences
        from paranmt_hf.workflows.evaluate import check_results_path, evaluate, write_results

        if arguments.json:
            check_results_path(arguments.json)
        evaluations = evaluate(
            arguments.models,
            arguments.data,
            baselines=arguments.baselines,
            bootstrap=arguments.bootstrap,
            measure=arguments.json is not None,
        )
        for evaluation in evaluations:
            result = evaluation.result
            print(f"## {result.model}\n" if arguments.markdown else result.model)
            print(result.markdown() if arguments.markdown else result.text(), end="\n\n")
        if len(evaluations) > 1:
            style: Literal["markdown", "text"] = "markdown" if arguments.markdown else "text"
            results = [evaluation.result for evaluation in evaluations]
            print(compare(results, style=style))
            if results[0].years:
                print(f"\n{differences(results, style=style)}")
        if arguments.json:
            write_results(arguments.json, [evaluation.record for evaluation in evaluations])
            keep_options(arguments, arguments.json)
            print(f"results: {arguments.json}")

    parser.finish(run, "paranmt evaluate sts models/word embedded --data FOLDER_WITH_STS --json results.json")
