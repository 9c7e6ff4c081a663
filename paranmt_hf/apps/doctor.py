"""`paranmt doctor`: what is installed, what this machine has, and what commands would choose on it.

What would be chosen is asked of the functions that choose. Nothing that is broken ends it: what cannot be found out is
said to be so.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from paranmt_hf.util.machine import core_limit, folder_size, free_space, memory_limit, visible_cores
from paranmt_hf.util.memory import total_memory
from paranmt_hf.version import __version__

Found = TypeVar("Found")
# Seconds for the size of one cache: a full one has millions of files.
SIZE_SECONDS = 0.4


@dataclass(frozen=True)
class PackageState:
    """A package: see `util.requirements.Package`."""

    name: str
    extra: str | None
    needed: str
    version: str | None
    state: str
    problem: str | None


@dataclass(frozen=True)
class Gpu:
    """A GPU that torch sees; memory in bytes."""

    name: str
    memory: int
    bf16: bool


@dataclass(frozen=True)
class Machine:
    """What the process may use.

    Attributes:
        cores: Cores that the scheduler gives it.
        core_limit: Cores' worth of time that its control group has; None without a limit.
        memory: Bytes of memory of the machine; None where it does not tell.
        memory_limit: Bytes that its control group may use; None without a limit.
        gpus: GPUs that torch sees; None where torch was not asked.
    """

    cores: int
    core_limit: float | None
    memory: int | None
    memory_limit: int | None
    gpus: list[Gpu] | None


@dataclass(frozen=True)
class Place:
    """A folder that fills up.

    Attributes:
        name: What is in it.
        path: Where it is.
        bytes: Its size, with `whole` false at least that; None where it was not looked at.
        whole: Whether all of its files were counted.
        free: Bytes that are free there; None where the system does not tell.
    """

    name: str
    path: str
    bytes: int | None
    whole: bool
    free: int | None


@dataclass(frozen=True)
class HubState:
    """The Hub: its address, whether a token is there (never which), and whether it answers; None if not asked."""

    endpoint: str
    token: bool
    offline: bool
    answer: str | None = None


@dataclass(frozen=True)
class Choices:
    """What commands would choose.

    Attributes:
        build: Engine of the shards, workers, cores and GPUs of each; engine, device, number format and batch of the
            translator.
        train: What averaging models are trained with.
    """

    build: dict[str, str | int]
    train: dict[str, str]


@dataclass
class Diagnosis:
    """What was found.

    Attributes:
        version: Of this package.
        python: Version and path of Python.
        system: Operating system and processor.
        packages: Packages that everything needs, and those of extras.
        machine: What the process may use; None if it could not be found out.
        places: Caches and other folders that fill up.
        hub: The Hub.
        choices: What commands would choose; None where torch was not asked.
        torch_seconds: What the import of torch took; None where it was not imported here.
        problems: What is wrong, with what to do.
    """

    version: str
    python: str
    system: str
    packages: list[PackageState] = field(default_factory=list)
    machine: Machine | None = None
    places: list[Place] = field(default_factory=list)
    hub: HubState | None = None
    choices: Choices | None = None
    torch_seconds: float | None = None
    problems: list[str] = field(default_factory=list)


def diagnose(*, quick: bool = False, imports: bool = False, online: bool = False) -> Diagnosis:
    """Look at the installation and the machine.

    Args:
        quick: Do not import torch, so that nothing is known of GPUs and of what would be chosen.
        imports: Import every package, each in a process of its own.
        online: Ask the Hub whether it answers.
    """
    found = Diagnosis(
        __version__, f"{platform.python_version()} ({sys.executable})", f"{platform.platform()}, {platform.machine()}"
    )

    def ask(what: str, question: Callable[[], Found]) -> Found | None:
        """Get an answer, or a problem in its place: whatever is broken must not end the diagnosis."""
        try:
            return question()
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            found.problems.append(f"{what} cannot be found out: {type(error).__name__}: {reason}")
            return None

    found.packages = ask("which packages are there", lambda: _packages(imports)) or []
    found.problems += [_described(package) for package in found.packages if _is_problem(package)]
    gpus: list[Gpu] | None = None
    if not quick:
        found.torch_seconds = ask("what torch sees (it cannot be imported)", _import_torch)
        if found.torch_seconds is not None:
            gpus = ask("which GPUs are there", _gpus)
            found.choices = ask("what commands would choose", _choices)
    found.machine = ask("what the machine has", lambda: _machine(gpus))
    found.places = ask("where caches are", _places) or []
    found.hub = ask("what is known of the Hub", lambda: _hub(online))
    found.problems += _advice(found)
    return found


def _packages(imports: bool) -> list[PackageState]:
    from paranmt_hf.util.requirements import look_at, read_requirements

    looked = [look_at(requirement, extra, importing=imports) for requirement, extra in read_requirements()]
    return [PackageState(p.name, p.extra, p.needed, p.version, p.state, p.problem) for p in looked]


def _is_problem(package: PackageState) -> bool:
    """A package of an extra may be missing."""
    return package.state != "present" and not (package.state == "missing" and package.extra)


def _described(package: PackageState) -> str:
    return f"{package.name} {package.version or ''}".strip() + f" is {package.state}: {package.problem}"


def _import_torch() -> float:
    started = time.perf_counter()
    import torch  # noqa: F401

    return time.perf_counter() - started


def _gpus() -> list[Gpu]:
    import torch

    from paranmt_hf.corpus.jobs.engine import count_gpus

    properties = [torch.cuda.get_device_properties(number) for number in range(count_gpus())]
    # From Ampere on (compute capability 8.0) GPUs compute in bf16.
    return [Gpu(found.name, found.total_memory, found.major >= 8) for found in properties]


def _machine(gpus: list[Gpu] | None) -> Machine:
    memory = total_memory()
    whole = int(memory) if memory != float("inf") else None
    return Machine(visible_cores(), core_limit(), whole, memory_limit(), gpus)


def _choices() -> Choices:
    from paranmt_hf.corpus.jobs.engine import EngineConfig
    from paranmt_hf.corpus.translation.device import (
        default_batch_tokens,
        preferred_engine,
        resolve_device,
        resolve_dtype,
    )
    from paranmt_hf.corpus.translation.translator import TranslatorConfig
    from paranmt_hf.training.arithmetic import choose
    from paranmt_hf.training.config import TrainConfig

    engine = EngineConfig().resolved()
    config = TranslatorConfig(name="any")
    translator, certain = preferred_engine(config)
    device = resolve_device(config.device)
    build: dict[str, str | int] = {
        "engine": engine.engine,
        "workers": engine.workers,
        "threads": engine.threads,
        "gpus": engine.gpus,
        "translator": translator if certain else f"{translator}, or transformers for models that it cannot take",
        "device": device,
        "dtype": resolve_dtype(config),
        "batch_tokens": config.batch_tokens or default_batch_tokens(device),
    }
    return Choices(build, choose(TrainConfig()).as_dict())


def _places() -> list[Place]:
    from huggingface_hub import constants

    home = Path(constants.HF_HOME)
    folders = {
        "models and data sets of the Hub": Path(constants.HF_HUB_CACHE),
        "data sets, as datasets keeps them": Path(os.environ.get("HF_DATASETS_CACHE", home / "datasets")),
        "compiled by torch": Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR", _torch_cache())),
        "compiled by numba": Path(os.environ["NUMBA_CACHE_DIR"]) if "NUMBA_CACHE_DIR" in os.environ else None,
    }
    places = [_place(name, folder) for name, folder in folders.items() if folder is not None]
    for name, folder in {"the folder you are in": Path.cwd(), "temporary files": Path(tempfile.gettempdir())}.items():
        places.append(Place(name, str(folder), None, True, free_space(folder)))
    return places


def _torch_cache() -> Path:
    return Path(tempfile.gettempdir()) / f"torchinductor_{os.environ.get('USER', 'root')}"


def _place(name: str, folder: Path) -> Place:
    size, whole = folder_size(folder, SIZE_SECONDS)
    return Place(name, str(folder), size, whole, free_space(folder))


def _hub(online: bool) -> HubState:
    from huggingface_hub import constants, get_token

    token = get_token() is not None
    return HubState(constants.ENDPOINT, token, bool(constants.HF_HUB_OFFLINE), _answer() if online else None)


def _answer() -> str:
    """Ask the Hub who is asking, or for a model if there is no token; the token itself is never shown."""
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
            who = "it answers"
        else:
            who = f"it answers and knows the token as {HfApi().whoami().get('name', 'nobody')!r}"
    except Exception as error:
        return explain(error, "the Hub", "model") if isinstance(error, HfHubHTTPError) else explain_silence(error)
    return f"{who}, after {time.perf_counter() - started:.1f} s"


def _advice(found: Diagnosis) -> list[str]:
    """Say where choices and machine do not go together."""
    advice = []
    machine, choices = found.machine, found.choices
    if machine is not None and machine.core_limit is not None and machine.core_limit < machine.cores:
        limit = max(1, int(machine.core_limit))
        advice.append(
            f"{machine.cores} cores are seen, but the control group has time for {machine.core_limit:g}; commands "
            f"count what they see: give --workers {limit} --threads 1, and set OMP_NUM_THREADS={limit}"
        )
    if choices is not None and choices.train["steps"] == "torch":
        advice.append("training computes with torch, which takes longer: pip install 'paranmt-hf[fast]'")
    return advice
