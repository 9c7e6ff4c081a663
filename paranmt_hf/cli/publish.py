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

from paranmt_hf.cli.options import Run
from paranmt_hf.errors import InputError

if TYPE_CHECKING:
    from paranmt_hf.hub.licenses import License
    from paranmt_hf.workflows.publish import Plan

ONLY_MODELS = ("results", "about", "datasets")
# What options may say of a model as well as the file of --about.
ABOUT = ("license", "license_name", "license_link", "datasets")

SUMMARY = "check a release or an encoder, and put it on the Hub"


def configure(parser: argparse.ArgumentParser) -> Run:
    """Options of `paranmt publish`."""
    parser.add_argument("kind", choices=["dataset", "model"], help="dataset: a release; model: an encoder")
    parser.add_argument("folder", type=Path, help="what `paranmt build`, `import` or `train` wrote")
    parser.add_argument("name", help="where to: ORGANISATION/NAME or USER/NAME")
    parser.add_argument("--private", action="store_true", help="make a new repository private")
    parser.add_argument("--revision", default="main", help="the branch that gets the files (main)")
    parser.add_argument("--tag", help="name of this version (the next of v1, v2, ... on the main branch)")
    parser.add_argument(
        "--dry-run", action="store_true", help="check, print files, card and what is missing; touch nothing"
    )
    parser.add_argument("--notes", type=Path, help="Markdown file with a section of your own for the card")
    parser.add_argument(
        "--license",
        help="Hub licence id such as cc-by-4.0; models: required, here or in --about; datasets: corrects the one that "
        "the release was built with",
    )
    parser.add_argument("--license-name", help="with --license other: its name, such as my-license-1.0")
    parser.add_argument("--license-link", help="with --license other: the address of its text")
    models = parser.add_argument_group("models")
    models.add_argument("--results", type=Path, help="what `paranmt evaluate sts --json` wrote for these weights")
    models.add_argument(
        "--about",
        type=Path,
        help="YAML file: license, license_name, license_link, license_text, summary, data, commands, datasets",
    )
    models.add_argument("--datasets", nargs="+", default=[], help="data sets on the Hub that the model learned from")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.workflows.publish import Where, plan_dataset, plan_model
        from paranmt_hf.workflows.support.model_record import read_about

        where: Where = {"private": arguments.private, "revision": arguments.revision, "tag": arguments.tag}
        if arguments.kind == "dataset":
            if given := [f"--{name}" for name in ONLY_MODELS if getattr(arguments, name)]:
                raise InputError(f"{', '.join(given)} is for models; a release has its record with it")
            license = _license(arguments)
            plan = plan_dataset(arguments.folder, arguments.name, license=license, notes=arguments.notes, **where)
        else:
            said = {name: getattr(arguments, name) for name in ABOUT}
            about = read_about(arguments.about, **said)
            plan = plan_model(
                arguments.folder,
                arguments.name,
                about=about,
                results=arguments.results,
                notes=arguments.notes,
                **where,
            )
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

    return run


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
        print(f"  {'stays here':>15}  {path}")
    for sentence in plan.missing:
        print(f"  missing: {sentence}")


def _usage(plan: Plan, revision: str | None) -> str:
    revision = f", revision={revision!r}" if revision else ""
    function = "load_dataset" if plan.target.kind == "dataset" else "paranmt_hf.load"
    return f"{function}({plan.target.name!r}{revision})"
