"""`paranmt doctor`: what is installed, what this machine has, and what commands would choose on it."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from paranmt_hf.util.machine import core_limit, folder_size, free_space, memory_limit, total_memory, visible_cores
from paranmt_hf.version import __version__

# A full cache has millions of files, so its size is added up for a limited time.
CACHE_SECONDS = 0.4
Lines = dict[str, str]


@dataclass
class Diagnosis:
    """What was found.

    Attributes:
        sections: Names and values under each heading.
        problems: What is wrong, and what to do.
    """

    sections: dict[str, Lines] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Give the diagnosis as JSON values."""
        return asdict(self)

    def summary(self) -> str:
        """Describe the diagnosis for a terminal."""
        parts = []
        for title, values in self.sections.items():
            width = max(map(len, values), default=0)
            parts.append("\n".join([title, *(f"  {name:{width}}  {value}" for name, value in values.items())]))
        problems = "\n".join(["problems", *(f"  {problem}" for problem in self.problems)])
        return "\n\n".join([*parts, problems if self.problems else "no problems"])


def diagnose(*, imports: bool = False, online: bool = False) -> Diagnosis:
    """Look at the installation and the machine; nothing that is broken ends it.

    Args:
        imports: Import every package, each in a process of its own; takes a minute.
        online: Ask the Hub whether it answers.
    """
    found = Diagnosis()

    def ask(title: str, question: Callable[[list[str]], Lines]) -> None:
        """Get a section, or a problem in its place."""
        try:
            found.sections[title] = question(found.problems)
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            found.problems.append(f"{title} cannot be found out: {type(error).__name__}: {reason}")

    ask("installation", lambda problems: _installation())
    ask("packages", lambda problems: _packages(problems, imports))
    ask("machine", _machine)
    ask("GPUs", lambda problems: _gpus())
    ask("defaults", lambda problems: _defaults())
    ask("folders", lambda problems: _folders())
    ask("Hub", lambda problems: _hub(online))
    return found


def _installation() -> Lines:
    return {
        "paranmt-hf": __version__,
        "Python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.platform()}, {platform.machine()}",
    }


def _packages(problems: list[str], imports: bool) -> Lines:
    """The version of each package; one that only an extra needs may be missing."""
    from paranmt_hf.util.requirements import look_at, read_requirements

    lines = {}
    for requirement, extra in read_requirements():
        package = look_at(requirement, extra, importing=imports)
        name = f"{package.name} ({extra})" if extra else package.name
        lines[name] = package.version or "-"
        if package.state != "present":
            lines[name] += f"  {package.state}: {package.problem}"
            if not (package.state == "missing" and extra):
                problems.append(f"{package.name} {package.version or ''} is {package.state}: {package.problem}")
    return lines


def _machine(problems: list[str]) -> Lines:
    cores, limit, memory, most = visible_cores(), core_limit(), total_memory(), memory_limit()
    if limit is not None and limit < cores:
        usable = max(1, int(limit))
        problems.append(
            f"{cores} cores are visible, but the control group allows the time of {limit:g}; commands count visible "
            f"cores: give --workers {usable} --threads 1, and set OMP_NUM_THREADS={usable}"
        )
    return {
        "cores": str(cores) + ("" if limit is None else f", limited to the time of {limit:g} by the control group"),
        "memory": ("unknown" if memory == float("inf") else size(int(memory)))
        + ("" if most is None else f", limited to {size(most)} by the control group"),
    }


def _gpus() -> Lines:
    import torch

    from paranmt_hf.corpus.jobs.engine import count_gpus

    found = [torch.cuda.get_device_properties(number) for number in range(count_gpus())]
    # From Ampere on (compute capability 8.0) GPUs compute in bf16.
    gpus = {
        str(number): f"{gpu.name}, {size(gpu.total_memory)}, {'bf16' if gpu.major >= 8 else 'no bf16'}"
        for number, gpu in enumerate(found)
    }
    return gpus or {"none": "torch can use no GPU"}


def _defaults() -> Lines:
    """What `paranmt build` chooses without options, from the functions that choose."""
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.corpus.translation.device import (
        default_batch_tokens,
        preferred_engine,
        resolve_device,
        resolve_dtype,
    )
    from paranmt_hf.corpus.translation.translator import TranslatorConfig

    engine, config = EngineConfig().resolved(), TranslatorConfig(name="any")
    translator, certain = preferred_engine(config)
    device = resolve_device(config.device)
    return {
        "workers": f"{engine.workers} ({engine.engine}), each with {engine.threads} cores and {engine.gpus} GPUs",
        "translator": translator if certain else f"{translator}, or transformers for models that it does not support",
        "translation": f"{device}, {resolve_dtype(config)}, batches of {default_batch_tokens(device):,} tokens",
    }


def _folders() -> Lines:
    """Sizes of caches, and free space."""
    from huggingface_hub import constants

    temporary = Path(tempfile.gettempdir())
    compiled = temporary / f"torchinductor_{os.environ.get('USER', 'root')}"
    caches = {
        "models and datasets of the Hub": Path(constants.HF_HUB_CACHE),
        "datasets in use": Path(os.environ.get("HF_DATASETS_CACHE", Path(constants.HF_HOME) / "datasets")),
        "compiled by torch": Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR", compiled)),
    }
    lines = {}
    for name, folder in caches.items():
        total, whole = folder_size(folder, CACHE_SECONDS)
        lines[name] = f"{folder}: {'' if whole else 'more than '}{size(total)}, {_free(folder)}"
    for name, folder in {"current folder": Path.cwd(), "temporary files": temporary}.items():
        lines[name] = f"{folder}: {_free(folder)}"
    return lines


def _free(folder: Path) -> str:
    free = free_space(folder)
    return "free space unknown" if free is None else f"{size(free)} free"


def _hub(online: bool) -> Lines:
    from huggingface_hub import constants, get_token

    return {
        "endpoint": constants.ENDPOINT + (", HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else ""),
        "token": "none (hf auth login, or HF_TOKEN)" if get_token() is None else "found",
        "answer": _answer() if online else "not asked (--online)",
    }


def _answer() -> str:
    """Ask the Hub whose the token is, or for a model if there is no token; the token itself is never shown."""
    from huggingface_hub import HfApi, constants, get_session, get_token
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils import hf_raise_for_status

    from paranmt_hf.hub.client import explain, explain_silence

    started = time.perf_counter()
    try:
        if get_token() is None:
            # `list_models` would try for half a minute, and log each try.
            address = f"{constants.ENDPOINT}/api/models"
            hf_raise_for_status(get_session().get(address, params={"limit": 1}, timeout=10))
            said = "it answers"
        else:
            said = f"it answers and knows the token as {HfApi().whoami().get('name', 'nobody')!r}"
    except Exception as error:
        return explain(error, "the Hub", "model") if isinstance(error, HfHubHTTPError) else explain_silence(error)
    return f"{said}, after {time.perf_counter() - started:.1f} s"


def size(count: int) -> str:
    """Write a number of bytes with its unit."""
    for unit, number in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= number:
            return f"{count / number:.1f} {unit}"
    return f"{count / 1e3:.1f} kB" if count else "empty"
