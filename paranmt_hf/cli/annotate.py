"""`paranmt annotate`."""

from __future__ import annotations

import argparse
from pathlib import Path

from paranmt_hf.cli.options import add_options, add_switch, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options

SUMMARY = "let people rate a sample of a corpus"
FOLDER_HELP = "folder of a sample, from `paranmt annotate sample`"


def configure(parser: CommandParser) -> None:
    """Commands below `paranmt annotate`."""
    parser.show_example("paranmt annotate sample paranmt50m --out judged && paranmt annotate serve judged")
    kinds = parser.kinds("STEP")
    steps = {
        "sample": ("draw pairs from ranges of the paraphrase score", _configure_sample),
        "serve": ("show the page on which people rate, on this computer only", _configure_serve),
        "table": ("count the labels per range, and measure how far people agree", _configure_table),
        "export": ("write the answers as CSV", _configure_export),
        "import": ("add answers from CSV, such as those from another computer", _configure_import),
    }
    for name, (summary, configure_step) in steps.items():
        configure_step(kinds.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."))


def _configure_sample(parser: CommandParser) -> None:
    from paranmt_hf.apps.annotate.sample import AnnotationConfig

    parser.add_argument("release", help="a release: its folder, or its id on the Hub")
    parser.add_argument("--out", type=Path, required=True, help="folder of the sample, and of the answers to it")
    add_options(parser, AnnotationConfig)

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.apps.annotate.annotate import sample_for_annotation

        config = from_options(AnnotationConfig, arguments)
        drawn = sample_for_annotation(arguments.release, arguments.out, config)
        keep_options(arguments, drawn.folder, fresh=drawn.fresh)
        sample = drawn.sample
        print(f"{arguments.out}: {len(sample.items)} pairs" + ("" if drawn.fresh else " (was drawn already)"))
        for index, part in enumerate(sample.ranges):
            count = sum(item.range == index for item in sample.items)
            fewer = "" if count == config.per_range else f", which are all: fewer than {config.per_range}"
            print(f"  {part.label:<20} {count:>6} of {part.pairs:>13,}{fewer}")
        if sample.outside or sample.unscored:
            print(f"  not sampled: {sample.outside:,} pairs outside all ranges, {sample.unscored:,} without a score")
        print(f"rate them: paranmt annotate serve {arguments.out}")

    parser.finish(run, "paranmt annotate sample paranmt50m --out judged --per-range 20")


def _configure_serve(parser: CommandParser) -> None:
    parser.add_argument("folder", type=Path, help=FOLDER_HELP)
    parser.add_argument(
        "--annotator", nargs="+", default=[], help="who may rate; if left out, names are chosen on the page"
    )
    parser.add_argument("--port", type=int, help="port on this computer (default: any that is free)")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.apps.annotate.annotate import serve_annotation

        def announce(address: str, annotator: str | None) -> None:
            print(f"{annotator}: {address}" if annotator else f"open {address}", flush=True)

        print("answers are stored at once; Ctrl-C ends the page, and the same command goes on where you stopped")
        progress = serve_annotation(
            arguments.folder, annotators=arguments.annotator, port=arguments.port or 0, announce=announce
        )
        for name, found in progress.items():
            print(f"{name}: {found.rated} of {found.pairs} rated, {found.skipped} skipped")
        print(f"the table: paranmt annotate table {arguments.folder}")

    parser.finish(run, "paranmt annotate serve judged --annotator Ada Grace")


def _configure_table(parser: CommandParser) -> None:
    parser.add_argument("folder", type=Path, help=FOLDER_HELP)
    parser.add_argument("--json", type=Path, help="write everything into this file")
    parser.add_argument("--picture", type=Path, help="draw the labels per range into this .png, .svg or .pdf")
    add_switch(parser, "--markdown", dest="markdown", help="print Markdown tables")
    add_switch(parser, "--percent", dest="percent", help="print shares of the labels, not counts")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.apps.annotate.annotate import check_picture, draw_table, summarise_annotation, write_table

        if arguments.picture:
            check_picture(arguments.picture)
        table = summarise_annotation(arguments.folder)
        print((table.markdown if arguments.markdown else table.text)(percent=arguments.percent), end="")
        if arguments.json:
            write_table(table, arguments.json)
            print(f"figures: {arguments.json}")
        if arguments.picture:
            draw_table(table, arguments.picture)
            print(f"picture: {arguments.picture}")

    parser.finish(run, "paranmt annotate table judged --json table.json --picture table.png")


def _configure_export(parser: CommandParser) -> None:
    parser.add_argument("folder", type=Path, help=FOLDER_HELP)
    parser.add_argument("--out", type=Path, required=True, help="the CSV file")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.apps.annotate.annotate import export_annotation

        count = export_annotation(arguments.folder, arguments.out)
        print(f"{arguments.out}: {count:,} answers")

    parser.finish(run, "paranmt annotate export judged --out answers.csv")


def _configure_import(parser: CommandParser) -> None:
    parser.add_argument("folder", type=Path, help=FOLDER_HELP)
    parser.add_argument("file", type=Path, help="CSV, as `paranmt annotate export` writes it")
    add_switch(parser, "--replace", dest="replace", help="take answers of the file where there are others already")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.apps.annotate.annotate import import_annotation

        found = import_annotation(arguments.folder, arguments.file, replace=arguments.replace)
        print(f"{arguments.folder}: {found.added} added, {found.replaced} replaced, {found.unchanged} were there")

    parser.finish(run, "paranmt annotate import judged answers.csv")
