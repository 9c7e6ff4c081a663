"""`paranmt select`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.cli.options import add_options, from_options
from paranmt_hf.cli.parser import CommandParser, keep_options
from paranmt_hf.errors import InputError

if TYPE_CHECKING:
    from paranmt_hf.corpus.selection.select import Selected

SUMMARY = "select rows of a release by score, length, chance and more"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt select`."""
    from paranmt_hf.corpus.selection.release_filter import ReleaseFilter

    parser.add_argument("release", help="a release: its folder, or its id on the Hub")
    parser.add_argument("--out", required=True, help="folder of the new release")
    bounds = "a column of numbers and its %s value, several at will: --%s number_mismatch=0 para_score=0.5"
    parser.add_argument("--min", nargs="+", action=_Gather, metavar="COLUMN=VALUE", help=bounds % ("smallest", "min"))
    parser.add_argument("--max", nargs="+", action=_Gather, metavar="COLUMN=VALUE", help=bounds % ("largest", "max"))
    add_options(parser, ReleaseFilter, leave_out=["ranges"])
    parser.add_argument(
        "--keep-dropped",
        type=Path,
        metavar="FILE.parquet",
        help="write what is dropped into this file: id, sentences, reason, and the number that decided",
    )
    parser.add_argument("--json", type=Path, help="write counts and recipe into this file")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.corpus.selection.select import select, write_counts
        from paranmt_hf.util.files import check_result_path

        if arguments.json:
            check_result_path(arguments.json, "--json")
        ranges = _ranges(arguments.min or (), arguments.max or ())
        selected = select(
            arguments.release,
            arguments.out,
            from_options(ReleaseFilter, arguments, ranges=ranges),
            keep_dropped=arguments.keep_dropped,
        )
        keep_options(arguments, selected.folder, fresh=selected.fresh)
        _print(selected)
        if arguments.keep_dropped:
            print(f"dropped rows: {arguments.keep_dropped}")
        if arguments.json:
            write_counts(arguments.json, selected)
            print(f"counts: {arguments.json}")

    parser.finish(run, "paranmt select paranmt50m --tenths 9-10 --max-length 30 --sample 5000000 --out paranmt5m")


class _Gather(argparse.Action):
    """Adds what an option is given to what it was given before, but not to its default, which `--config` may set."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,  # noqa: ANN401 - argparse's
        option: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, [*(() if before is self.default else before), *values])


def _ranges(least: Sequence[str], most: Sequence[str]) -> dict[str, tuple[float | None, float | None]]:
    """Read `COLUMN=VALUE` of both options."""
    found: dict[str, list[float | None]] = {}
    for end, words in enumerate((least, most)):
        for word in words:
            column, _, text = word.partition("=")
            try:
                value = float(text if column.strip() else "")
            except ValueError:
                option = ("--min", "--max")[end]
                raise InputError(f"{option} takes COLUMN=VALUE such as para_score=0.5, not {word!r}") from None
            found.setdefault(column.strip(), [None, None])[end] = value
    return {column: (low, high) for column, (low, high) in found.items()}


def _print(selected: Selected) -> None:
    """Print what each filter dropped and what is left."""
    print(f"{selected.folder}: {selected.rows:,} pairs" + ("" if selected.fresh else " (was selected already)"))
    left = selected.selection.rows
    print(f"  {'dropped':>12} {'left':>12}\n  {'':>12} {left:>12,}")
    for one in selected.selection.filters:
        left -= one.dropped
        print(f"  {one.dropped:>12,} {left:>12,}  {one.reason}")
    for name, config in selected.record.configs.items():
        print(f"  {name:<9}{config.rows:>12,} pairs {config.file_bytes:>15,} bytes")
    print(f"load it: load_dataset({selected.folder.name!r}) in {selected.folder.parent}")
