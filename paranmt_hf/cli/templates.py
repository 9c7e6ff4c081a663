"""`paranmt templates`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from paranmt_hf.cli.parser import CommandParser

SUMMARY = "show the most frequent templates of parsed pairs"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt templates`."""
    parser.add_argument("parsed", type=Path, help="folder that `paranmt parse` made")
    parser.add_argument("--top", type=int, default=20, help="so many templates (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write them into this file")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.corpus.parsing.template_counts import frequent_templates
        from paranmt_hf.util.files import check_result_path, write_result

        if arguments.json is not None:
            check_result_path(arguments.json, "--json")
        found = frequent_templates(arguments.parsed, top=arguments.top)
        print(found.summary())
        if arguments.json is not None:
            write_result(arguments.json, f"{json.dumps(found.to_json(), indent=2, ensure_ascii=False)}\n")
            print(f"written to {arguments.json}")

    parser.finish(run, "paranmt templates parsed --top 20 --json templates.json")
