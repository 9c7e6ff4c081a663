"""`paranmt doctor`."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from paranmt_hf.cli.parser import CommandParser

if TYPE_CHECKING:
    from paranmt_hf.apps.doctor import Diagnosis, Place

SUMMARY = "say what is installed, what this machine has, and what commands would choose on it"


def configure(parser: CommandParser) -> None:
    """Options of `paranmt doctor`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--quick", action="store_true", help="do not import torch: nothing of GPUs and of what would be chosen"
    )
    parser.add_argument(
        "--imports", action="store_true", help="import every package, each in a process of its own; takes a minute"
    )
    parser.add_argument("--online", action="store_true", help="ask the Hub whether it answers")

    def run(arguments: argparse.Namespace) -> None:
        from paranmt_hf.apps.doctor import diagnose

        found = diagnose(quick=arguments.quick, imports=arguments.imports, online=arguments.online)
        print(json.dumps(asdict(found), indent=2) if arguments.json else described(found))

    parser.finish(run, "paranmt doctor --online")


def described(found: Diagnosis) -> str:
    """Write a diagnosis for people."""
    parts = [
        f"paranmt-hf {found.version}, Python {found.python}\n{found.system}",
        _packages(found),
        _machine(found),
        "folders\n" + "\n".join(map(_place, found.places)),
        _hub(found),
        _choices(found),
        "\n".join(["problems", *(f"  {problem}" for problem in found.problems)]) if found.problems else "no problems",
    ]
    return "\n\n".join(part for part in parts if part)


def _packages(found: Diagnosis) -> str:
    lines = ["packages"]
    extra: str | None = None
    for package in found.packages:
        if package.extra != extra:
            extra = package.extra
            lines.append(f"extra {extra}")
        state = "" if package.state == "present" else f"  {package.state}: {package.problem}"
        lines.append(f"  {package.name:<28}{package.version or '-':<14}{package.needed:<12}{state}".rstrip())
    return "\n".join(lines)


def _machine(found: Diagnosis) -> str:
    machine = found.machine
    if machine is None:
        return ""
    limit = "" if machine.core_limit is None else f", time for {machine.core_limit:g} by the control group"
    memory = "unknown" if machine.memory is None else size(machine.memory)
    within = "" if machine.memory_limit is None else f", {size(machine.memory_limit)} by the control group"
    lines = ["machine", f"  cores   {machine.cores}{limit}", f"  memory  {memory}{within}"]
    if machine.gpus is None:
        lines.append("  GPUs    not looked for (torch was not imported)")
    elif not machine.gpus:
        lines.append("  GPUs    none that torch can use")
    for gpu in machine.gpus or []:
        lines.append(f"  GPU     {gpu.name}, {size(gpu.memory)}, {'bf16' if gpu.bf16 else 'no bf16'}")
    if found.torch_seconds is not None:
        lines.append(f"  torch was imported for this, which took {found.torch_seconds:.1f} s; --quick does without")
    return "\n".join(lines)


def _place(place: Place) -> str:
    said = []
    if place.bytes is not None:
        said.append(size(place.bytes) if place.whole else f"more than {size(place.bytes)}")
    if place.free is not None:
        said.append(f"{size(place.free)} free")
    return f"  {place.name}: {place.path}: {', '.join(said)}"


def _hub(found: Diagnosis) -> str:
    hub = found.hub
    if hub is None:
        return ""
    token = "a token is there" if hub.token else "no token (hf auth login, or HF_TOKEN)"
    offline = "; HF_HUB_OFFLINE keeps everything offline" if hub.offline else ""
    return f"Hub\n  {hub.endpoint}: {token}{offline}\n  {hub.answer or 'not asked whether it answers (--online)'}"


def _choices(found: Diagnosis) -> str:
    if found.choices is None:
        return ""
    build, train = found.choices.build, found.choices.train
    return "\n".join(
        [
            "what would be chosen, if options say nothing else",
            f"  build   {build['engine']}; workers: {build['workers']}, each with {build['threads']} of the cores and "
            f"{build['gpus']} of the GPUs",
            f"          translator: {build['translator']}; {build['device']}, {build['dtype']}, batches of "
            f"{build['batch_tokens']:,} tokens",
            f"  train   steps of averaging models: {train['steps']}; mining: {train['mining']}",
        ]
    )


def size(count: int) -> str:
    """Write a number of bytes as people do."""
    for unit, bytes_ in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= bytes_:
            return f"{count / bytes_:.1f} {unit}"
    return f"{count / 1e3:.1f} kB" if count else "empty"
