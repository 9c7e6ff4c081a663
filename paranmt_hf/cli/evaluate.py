"""`paranmt evaluate`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.cli.options import Run
from paranmt_hf.errors import InputError

if TYPE_CHECKING:
    from paranmt_hf.evaluation.results import StsResult


SUMMARY = "measure encoders on semantic textual similarity"


def configure(parser: argparse.ArgumentParser) -> Run:
    """Options of `paranmt evaluate`."""
    parser.add_argument("kind", choices=["sts"], help="sts: semantic textual similarity")
    parser.add_argument(
        "models", nargs="*", help="folders or Hub ids; `embedded` is the encoder that the package carries"
    )
    parser.add_argument("--data", required=True, help="folder with STS sets (SentEval's layout), a TSV file, a Hub id")
    parser.add_argument("--json", type=Path, help="write the results into this file")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    parser.add_argument("--baselines", nargs="+", choices=["bleu", "meteor"], default=[], help="beside the models")
    parser.add_argument("--bootstrap", type=int, default=1000, help="resamples for intervals; 0 for none (1000)")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.evaluation.baselines import baseline
        from paranmt_hf.evaluation.results import compare
        from paranmt_hf.evaluation.sts import evaluate_sts
        from paranmt_hf.evaluation.sts_data import read_sts

        if not arguments.models and not arguments.baselines:
            raise InputError("name a model to evaluate, or --baselines bleu meteor")
        if arguments.json and arguments.json.is_dir():
            raise InputError(f"--json {arguments.json} is a folder; name a file")
        if arguments.json and not arguments.json.resolve().parent.is_dir():
            raise InputError(f"--json {arguments.json}: there is no folder {arguments.json.parent}; make it first")
        sets = read_sts(arguments.data)
        settings = {"bootstrap": arguments.bootstrap}
        results: list[StsResult] = []
        beside: list[dict[str, Any]] = []
        if arguments.models:
            from paranmt_hf.encoders.loading import load
            from paranmt_hf.workflows.support.model_record import measured

            for name in arguments.models:
                encoder = load(name)
                results.append(evaluate_sts(encoder, sets, name=name, **settings))
                beside.append(measured(encoder, sets) if arguments.json else {})
        results += [evaluate_sts(baseline(name), sets, name=name, **settings) for name in arguments.baselines]
        for result in results:
            print(f"## {result.model}\n" if arguments.markdown else result.model)
            print(result.markdown() if arguments.markdown else result.text(), end="\n\n")
        if len(results) > 1:
            print(compare(results, style="markdown" if arguments.markdown else "text"))
        if arguments.json:
            beside += [{} for _ in arguments.baselines]
            entries = [{**result.to_json(), **more} for result, more in zip(results, beside, strict=True)]
            text = json.dumps(entries, indent=2)
            arguments.json.write_text(f"{text}\n", encoding="utf8")
            print(f"results: {arguments.json}")

    return run
