"""`paranmt doctor`: what is installed, what this machine has, and which defaults commands would use on it."""

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
    """What was found."""

    sections: dict[str, Lines] = field(default_factory=dict)  # Names and values under each heading
    problems: list[str] = field(default_factory=list)  # What is wrong, and what to do

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
    """Version of each package; those that only an extra needs may be missing."""
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
    """The packages that the installed metadata require, each with its extra; those without an extra first."""
    pairs: list[tuple[Requirement, str | None]] = []
    for text in requires(NAME) or []:
        requirement = Requirement(text)
        # The metadata name the extra in the marker: `ray>=2.60; extra == "ray"`.
        extra = re.search('extra == "([^"]+)"', str(requirement.marker or ""))
        if extra is None:
            pairs.append((requirement, None))
        # Those who change the code alone need the others.
        elif extra[1] not in ("test", "dev"):
            pairs.append((requirement, extra[1]))
    return sorted(pairs, key=lambda pair: pair[1] or "")


def package_state(requirement: Requirement, extra: str | None) -> tuple[str | None, State, str | None]:
    """Return the version of a required package, its state, and if it is not present what is wrong and what to do."""
    name = requirement.name
    needed = str(requirement.specifier)
    install = f"pip install '{NAME}[{extra}]'" if extra else f"pip install '{name}{needed}'"
    try:
        found = version(name)
        enough = requirement.specifier.contains(Version(found), prereleases=True)
    except PackageNotFoundError:
        return None, "missing", install
    # What a half-removed package or damaged metadata leaves.
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
    import torch

    from paranmt_hf.corpus.jobs.engine import count_gpus

    gpus = {}
    for number in range(count_gpus()):
        gpu = torch.cuda.get_device_properties(number)
        # From Ampere on (compute capability 8.0) GPUs compute in bf16.
        precision = "bf16" if gpu.major >= 8 else "no bf16"
        gpus[str(number)] = f"{gpu.name}, {_gigabytes(gpu.total_memory)}, {precision}"
    return gpus or {"none": "torch can use no GPU"}


def _defaults() -> Lines:
    """Defaults of `paranmt build` on this machine."""
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


def _folders() -> Lines:
    """Where caches are, and free space."""
    from huggingface_hub import constants

    folders = {
        "models and datasets of the Hub": Path(constants.HF_HUB_CACHE),
        "datasets in use": Path(os.environ.get("HF_DATASETS_CACHE", Path(constants.HF_HOME) / "datasets")),
        "current folder": Path.cwd(),
        "temporary files": Path(tempfile.gettempdir()),
    }
    lines = {}
    for name, folder in folders.items():
        # A cache need not exist yet.
        present = next(parent for parent in (folder, *folder.parents) if parent.exists())
        lines[name] = f"{folder}: {_gigabytes(shutil.disk_usage(present).free)} free"
    return lines


def _hub() -> Lines:
    from huggingface_hub import constants, get_token

    return {
        "endpoint": constants.ENDPOINT + (", HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else ""),
        "token": "none (hf auth login, or HF_TOKEN)" if get_token() is None else "found",
    }
