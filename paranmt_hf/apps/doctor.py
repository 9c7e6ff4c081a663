"""`paranmt doctor`: shows what is installed, what this machine has, and which defaults commands would use on it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Literal

from packaging.requirements import Requirement
from packaging.version import Version

from paranmt_hf.util.machine import total_memory, visible_cores
from paranmt_hf.util.wording import counted
from paranmt_hf.version import __version__

NAME = "paranmt-hf"
Lines = dict[str, str]
State = Literal["present", "missing", "too old", "broken"]


@dataclass
class Diagnosis:
    """The report of `paranmt doctor` about an installation and its machine."""

    sections: dict[str, Lines] = field(default_factory=dict)  # Names and values to show under each heading
    problems: list[str] = field(default_factory=list)  # Sentences about what is wrong and what to do

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def summary(self) -> str:
        parts = []
        for title, values in self.sections.items():
            width = max(map(len, values), default=0)
            lines = [f"  {name:{width}}  {value}" for name, value in values.items()]
            parts.append("\n".join([title, *lines]))
        if not self.problems:
            return "\n\n".join([*parts, "no problems"])
        return "\n\n".join([*parts, "\n".join(["problems", *(f"  {problem}" for problem in self.problems)])])


def diagnose() -> Diagnosis:
    """Examine the installation and the machine; anything broken becomes a problem in the report."""
    found = Diagnosis()
    sections: dict[str, Callable[[], Lines]] = {
        "installation": lambda: {
            "paranmt-hf": __version__,
            "Python": f"{platform.python_version()} ({sys.executable})",
            "system": f"{platform.platform()}, {platform.machine()}",
        },
        "packages": lambda: _packages(found.problems),
        "machine": lambda: {"cores": str(visible_cores()), "memory": _gigabytes(total_memory())},
        "GPUs": _gpus,
        "defaults": _defaults,
        "carried encoders": _carried,
        "folders": _folders,
        "Hub": _hub,
    }
    for title, lines_of in sections.items():
        try:
            found.sections[title] = lines_of()
        except Exception as error:
            found.problems.append(f"{title} cannot be found out: {_short(error)}")
    return found


def _packages(problems: list[str]) -> Lines:
    """Return the version of each required package, and add what is wrong to `problems`.

    A missing package is a problem only if no extra is needed for it.
    """
    lines = {}
    for requirement, extra in read_requirements():
        name = f"{requirement.name} ({extra})" if extra else requirement.name
        found, state, problem = package_state(requirement, extra)
        lines[name] = found or "-"
        if state != "present":
            lines[name] += f"  {state}: {problem}"
            if not (state == "missing" and extra):
                problems.append(f"{requirement.name} {found or ''} is {state}: {problem}")
    return lines


def read_requirements() -> list[tuple[Requirement, str | None]]:
    """Return the packages that the metadata of this package require, each with the extra that it belongs to.

    Packages without an extra (None) come first; those for development are left out.
    """
    pairs: list[tuple[Requirement, str | None]] = []
    for text in requires(NAME) or []:
        requirement = Requirement(text)
        # The metadata name the extra in the marker: `ray>=2.60; extra == "ray"`.
        extra = re.search('extra == "([^"]+)"', str(requirement.marker or ""))
        if extra is None:
            pairs.append((requirement, None))
        # The extras `test` and `dev` are needed only for changing the code.
        elif extra[1] not in ("test", "dev"):
            pairs.append((requirement, extra[1]))
    return sorted(pairs, key=lambda pair: pair[1] or "")


def package_state(requirement: Requirement, extra: str | None) -> tuple[str | None, State, str | None]:
    """Examine a required package.

    Args:
        requirement: The package, and the versions that are needed.
        extra: Extra that the package belongs to; None for a package that is always needed.

    Returns:
        The installed version, None if unknown; the state; and what is wrong and how to install the package, None if it
        is present.
    """
    name = requirement.name
    needed = str(requirement.specifier)
    install = f"pip install '{NAME}[{extra}]'" if extra else f"pip install '{name}{needed}'"
    try:
        found = version(name)
        enough = requirement.specifier.contains(Version(found), prereleases=True)
    except PackageNotFoundError:
        return None, "missing", install
    # Half-removed packages and damaged metadata raise errors of many classes.
    except Exception as error:
        return None, "broken", f"its version cannot be read ({_short(error)}): {install}"
    if not enough:
        return found, "too old", f"{needed} is needed: {install}"
    return found, "present", None


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _gpus() -> Lines:
    """Describe each GPU that torch can use, by its number."""
    import torch

    from paranmt_hf.corpus.jobs.engine import count_gpus

    gpus = {}
    for number in range(count_gpus()):
        gpu = torch.cuda.get_device_properties(number)
        # GPUs compute in bf16 from the generation Ampere on, whose compute capability is 8.0.
        precision = "bf16" if gpu.major >= 8 else "no bf16"
        gpus[str(number)] = f"{gpu.name}, {_gigabytes(gpu.total_memory)}, {precision}"
    return gpus or {"none": "torch can use no GPU"}


def _defaults() -> Lines:
    """Describe the defaults of `paranmt build` on this machine."""
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.corpus.translation.translator import TranslatorConfig, default_batch_tokens, resolve_device

    engine, config = EngineConfig().resolved(), TranslatorConfig(name="any")
    translator, certain = config.preferred_engine()
    device = resolve_device(config.device)
    return {
        "workers": f"{engine.workers} ({engine.kind}), each with {counted(engine.threads, 'core')} and "
        f"{counted(engine.gpus, 'GPU')}",
        "translator": translator if certain else f"{translator}, or transformers for models that it does not support",
        "translation": f"{device}, {config.resolved_dtype}, batches of {default_batch_tokens(device):,} tokens",
    }


def _carried() -> Lines:
    """Describe each encoder of this package: its languages, licence and size."""
    from paranmt_hf.hub.repository import ASSETS, LANGUAGES_OF

    lines = {}
    for name, languages in LANGUAGES_OF.items():
        size = sum(path.stat().st_size for path in (ASSETS / name).glob("*"))
        lines[name] = f"{', '.join(languages)}, MIT, {size / 1e6:.1f} MB" if size else "left out of this installation"
    return lines


def _folders() -> Lines:
    """Return the paths of caches and other folders, each with the free space there."""
    from huggingface_hub import constants

    folders = {
        "models and datasets of the Hub": Path(constants.HF_HUB_CACHE),
        "datasets in use": Path(os.environ.get("HF_DATASETS_CACHE", Path(constants.HF_HOME) / "datasets")),
        "current folder": Path.cwd(),
        "temporary files": Path(tempfile.gettempdir()),
    }
    lines = {}
    for name, folder in folders.items():
        # A cache may not exist yet, so the space is that of its nearest existing parent.
        present = next(parent for parent in (folder, *folder.parents) if parent.exists())
        lines[name] = f"{folder}: {_gigabytes(shutil.disk_usage(present).free)} free"
    return lines


def _hub() -> Lines:
    """Return the address of the Hub, and whether there is a token."""
    from huggingface_hub import constants, get_token

    return {
        "endpoint": constants.ENDPOINT + (", HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else ""),
        "token": "none (hf auth login, or HF_TOKEN)" if get_token() is None else "found",
    }
