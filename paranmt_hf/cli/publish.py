"""`paranmt publish`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.cli.options import add_switch
from paranmt_hf.cli.parser import CommandParser
from paranmt_hf.errors import InputError

if TYPE_CHECKING:
    from paranmt_hf.apps.publish.publish import Plan, Where
    from paranmt_hf.hub.licenses import License

# What options may say of a model as well as the file of --about.
ABOUT = ("license", "license_name", "license_link", "datasets")

SUMMARY = "check a release, an encoder or a paraphraser, and put it on the Hub"


def configure(parser: CommandParser) -> None:
    """Commands below `paranmt publish`."""
    parser.show_example("paranmt publish dataset paranmt50m you/paranmt50m --dry-run")
    kinds = parser.kinds("KIND")
    for name, of, options in (
        ("dataset", "a release", _configure_dataset),
        ("model", "an encoder or a paraphraser", _configure_model),
    ):
        summary = f"check {of}, and put it on the Hub"
        options(kinds.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."))


def _configure_dataset(parser: CommandParser) -> None:
    """Options of `paranmt publish dataset`."""
    _add_common(parser, "what `paranmt build` or `paranmt import` wrote")
    _add_license(parser, "corrects the one that the release was built with")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.apps.publish.publish import plan_dataset

        options = {"license": _license(arguments), "notes": arguments.notes}
        _publish(arguments, plan_dataset(arguments.folder, arguments.name, **options, **_where(arguments)))

    parser.finish(run, "paranmt publish dataset paranmt50m you/paranmt50m --dry-run")


def _configure_model(parser: CommandParser) -> None:
    """Options of `paranmt publish model`."""
    _add_common(parser, "what `paranmt train`, `average`, `convert` or `paraphrase train` wrote")
    _add_license(parser, "required, here or in --about, unless `paranmt encoder convert` was told it")
    parser.add_argument("--results", type=Path, help="what `paranmt evaluate sts --json` wrote for these weights")
    parser.add_argument(
        "--about",
        type=Path,
        help="YAML file: license, license_name, license_link, license_text, summary, data, commands, datasets",
    )
    parser.add_argument("--datasets", nargs="+", default=[], help="data sets on the Hub that the model learned from")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.apps.publish.publish import plan_model
        from paranmt_hf.training.card import read_about
        from paranmt_hf.training.provenance import stated_license

        given = {name: getattr(arguments, name) for name in ABOUT}
        about = read_about(arguments.about, stated_license(arguments.folder), **given)
        options = {"results": arguments.results, "notes": arguments.notes}
        _publish(arguments, plan_model(arguments.folder, arguments.name, about=about, **options, **_where(arguments)))

    parser.finish(run, "paranmt publish model models/word you/paranmt-word --results results.json --license cc-by-4.0")


def _add_common(parser: CommandParser, made: str) -> None:
    parser.add_argument("folder", type=Path, help=made)
    parser.add_argument("name", help="where to: ORGANISATION/NAME or USER/NAME")
    add_switch(parser, "--private", dest="private", help="make a new repository private")
    parser.add_argument("--revision", default="main", help="the branch that gets the files (default: %(default)s)")
    parser.add_argument("--tag", help="name of this version (default: the next of v1, v2, ... on the main branch)")
    add_switch(parser, "--dry-run", dest="dry_run", help="check, print files, card and what is missing; touch nothing")
    parser.add_argument("--notes", type=Path, help="Markdown file with a section of your own for the card")


def _add_license(parser: CommandParser, use: str) -> None:
    parser.add_argument("--license", help=f"Hub licence id such as cc-by-4.0; {use}")
    parser.add_argument("--license-name", help="with --license other: its name, such as my-license-1.0")
    parser.add_argument("--license-link", help="with --license other: the address of its text")


def _where(arguments: argparse.Namespace) -> Where:
    return {"private": arguments.private, "revision": arguments.revision, "tag": arguments.tag}


def _publish(arguments: argparse.Namespace, plan: Plan) -> None:
    """Show a plan, and send it unless that is not wanted."""
    if arguments.dry_run:
        print(f"{plan.card}\n")
    _print_plan(plan)
    if arguments.dry_run:
        print("dry run: nothing was sent")
        return
    with _stopping_at_once():
        published = plan.send()
    version = f", version {published.tag}" if published.tag else ""
    changed = len(published.changed)
    state = f"{changed:,} files changed" if changed else "unchanged, all was there already"
    print(f"{plan.target.kind} {plan.target.name}: {state}{version}, commit {published.commit[:12]}")
    branch = None if plan.target.revision == "main" else plan.target.revision
    print(f"load it: {_usage(plan, published.tag or branch)}")


def _license(arguments: argparse.Namespace) -> License | None:
    """The licence that a release is published under, if that is said here."""
    from paranmt_hf.hub.licenses import License

    if arguments.license is None:
        if arguments.license_name or arguments.license_link:
            raise InputError("--license-name and --license-link go with --license other; add that")
        return None
    return License(arguments.license, arguments.license_name, arguments.license_link)


@contextmanager
def _stopping_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process: the client would first send the files that it has begun."""

    def stop(*_: object) -> None:
        print("interrupted; the same command sends what is missing", file=sys.stderr, flush=True)
        os._exit(130)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _print_plan(plan: Plan) -> None:
    sizes = plan.parcel.sizes
    visibility = ", private" if plan.target.private else ""
    print(f"{plan.target.kind} {plan.target.name}{visibility}: {len(sizes)} files, {sum(sizes.values()):,} bytes")
    for path, size in sorted(sizes.items()):
        print(f"  {size:>15,}  {path}")
    for path in plan.left_here:
        print(f"  {'not sent':>15}  {path}")
    for sentence in plan.missing:
        print(f"  missing: {sentence}")


def _usage(plan: Plan, revision: str | None) -> str:
    revision = f", revision={revision!r}" if revision else ""
    return f"{plan.loader}({plan.target.name!r}{revision})"
