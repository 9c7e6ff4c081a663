"""What the package needs, by its own metadata, and what of that is there."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from pathlib import Path
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

NAME = "paranmt-hf"
# What only those need who change the code.
DEVELOPMENT = ("test", "dev")
PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
State = Literal["present", "missing", "too old", "broken"]
# Seconds that one import may take; the largest packages need some on a slow disk.
LONGEST_IMPORT = 120


@dataclass(frozen=True)
class Package:
    """A package that ours needs.

    Attributes:
        name: Its name for pip.
        extra: The extra that needs it; None where everything does.
        needed: Which versions will do, such as `>=2.0`.
        version: The one that is there.
        state: Whether it will do.
        problem: What is wrong with it, and what to do; None where it will do.
    """

    name: str
    extra: str | None
    needed: str
    version: str | None
    state: State
    problem: str | None = None


def read_requirements(project: Path = PROJECT) -> list[tuple[Requirement, str | None]]:
    """Read what the package needs, and for which extra.

    Args:
        project: `pyproject.toml` beside the code; where it is not, the metadata that was installed counts.

    Returns:
        Requirements and the extra that each belongs to, those for everything first.
    """
    if project.is_file():
        table = tomllib.loads(project.read_text(encoding="utf8"))["project"]
        found: list[tuple[str, str | None]] = [(text, None) for text in table["dependencies"]]
        for extra, texts in table["optional-dependencies"].items():
            found += [(text, extra) for text in texts]
        pairs = [(Requirement(text), extra) for text, extra in found]
    else:
        try:
            pairs = [_with_extra(Requirement(text)) for text in requires(NAME) or []]
        except (PackageNotFoundError, InvalidRequirement):
            pairs = []
    return sorted((pair for pair in pairs if pair[1] not in DEVELOPMENT), key=lambda pair: pair[1] or "")


def _with_extra(requirement: Requirement) -> tuple[Requirement, str | None]:
    """The extra that a requirement of installed metadata names: `ray>=2.60; extra == "ray"`."""
    marker = str(requirement.marker or "")
    _, found, rest = marker.partition('extra == "')
    return requirement, rest.partition('"')[0] if found else None


def look_at(requirement: Requirement, extra: str | None, *, importing: bool = False) -> Package:
    """Find out whether a package will do.

    Args:
        requirement: The package and its versions.
        extra: The extra that needs it.
        importing: Import it too, in a process of its own, whatever becomes of that.
    """
    name, needed = requirement.name, str(requirement.specifier)
    install = f"pip install '{NAME}[{extra}]'" if extra else f"pip install '{name}{needed}'"
    try:
        there = version(name)
    except PackageNotFoundError:
        return Package(name, extra, needed, None, "missing", install)
    # What a half-removed package or damaged metadata leaves.
    except Exception as error:
        return Package(
            name, extra, needed, None, "broken", f"its metadata cannot be read ({_short(error)}): {install}"
        )
    try:
        enough = requirement.specifier.contains(Version(there), prereleases=True)
    except (InvalidVersion, TypeError):
        return Package(name, extra, needed, str(there), "broken", f"it has no version that can be read: {install}")
    if not enough:
        return Package(name, extra, needed, there, "too old", f"{needed} is needed: {install}")
    if importing and (problem := import_problem(name)):
        return Package(name, extra, needed, there, "broken", f"it cannot be imported ({problem})")
    return Package(name, extra, needed, there, "present")


def import_problem(name: str) -> str | None:
    """Import a package in a process of its own, and say what went wrong if anything did."""
    modules = [
        module
        for module, names in packages_distributions().items()
        if not module.startswith("_")
        and name.replace("-", "_").lower() in {n.replace("-", "_").lower() for n in names}
    ]
    # One package may bring several modules, tests among them; the one of its name, else the shortest, is it.
    plain = name.replace("-", "_").lower()
    module = min(modules or [plain], key=lambda other: (other.lower() != plain, len(other)))
    try:
        done = subprocess.run(
            [sys.executable, "-c", f"import {module}"], capture_output=True, text=True, timeout=LONGEST_IMPORT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return _short(error)
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    return lines[-1][:200] if lines else f"the process ended with {done.returncode}"


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
