"""Tasks of `mteb` by name, and the location of their data: the Hub, or a folder with the same layout."""

from __future__ import annotations

import copy
import difflib
import hashlib
import importlib
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import own_files
from paranmt_hf.util.files import checksum as checksum_of
from paranmt_hf.util.optional import require

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask

EXTRA = "mteb"
# Names that are suggested for an unknown one, and their least similarity.
SUGGESTIONS, SIMILAR = 3, 0.5


@contextmanager
def quiet_mteb() -> Iterator[None]:
    """Silence mteb and its libraries in a `with` block; problems are raised as errors."""
    log = logging.getLogger("mteb")
    before = log.level
    log.setLevel(logging.ERROR)
    import datasets

    bars = datasets.utils.logging.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)
        if bars:
            datasets.enable_progress_bars()


def find_tasks(names: Sequence[str], languages: Sequence[str] = ("eng",)) -> list[AbsTask]:
    """Find tasks by names of tasks or benchmarks; multilingual ones are restricted to `languages`."""
    mteb = require("mteb", EXTRA)
    if not names:
        raise InputError("name a task of mteb, such as STS12", option="tasks")
    found: dict[str, AbsTask] = {}
    with quiet_mteb():
        for name in names:
            for task in _named(mteb, name, languages):
                if others := [kind for kind in task.metadata.modalities if kind != "text"]:
                    raise InputError(
                        f"the task {task.metadata.name} is about {', '.join(others)}, and encoders read text"
                    )
                found.setdefault(task.metadata.name, task)
    return list(found.values())


def _named(mteb: Any, name: str, languages: Sequence[str]) -> list[AbsTask]:  # noqa: ANN401
    """The task of a name, or the tasks of a benchmark."""
    try:
        task = mteb.get_task(name, languages=list(languages), exclusive_language_filter=True)
    except KeyError:
        try:
            return list(mteb.get_benchmark(name).tasks)
        except KeyError:
            raise InputError(_unknown(mteb, name)) from None
    except ValueError:
        there = sorted({code.split("-")[0] for code in mteb.get_task(name).languages})
        raise InputError(
            f"the task {name} has no part in {' or '.join(languages)} alone; it has {', '.join(there)}: name one in "
            "`languages`"
        ) from None
    if not task.hf_subsets:
        raise InputError(f"the task {name} has no part in {' or '.join(languages)} alone; name others in `languages`")
    return [task]


def _unknown(mteb: Any, name: str) -> str:  # noqa: ANN401
    """Describe an unknown name, with similar ones."""
    known = [task.name for task in every_task()]
    known += [benchmark.name for benchmark in mteb.get_benchmarks()]
    by_folded = {other.casefold(): other for other in known}
    close = difflib.get_close_matches(name.casefold(), by_folded, SUGGESTIONS, SIMILAR)
    advice = (
        f"did you mean {' or '.join(by_folded[other] for other in close)}?"
        if close
        else "`mteb available-tasks` lists them"
    )
    return f"mteb {mteb.__version__} has no task or benchmark {name!r}; {advice}"


def every_task() -> list[Any]:
    """Return the metadata of all tasks of mteb, with `name` and `dataset`."""
    require("mteb", EXTRA)
    # mteb.get_tasks, which makes a task of each, takes seconds; the module of that name has what they are made of.
    return [task.metadata for task in importlib.import_module("mteb.get_tasks").TASK_LIST]


def parts_of(task: AbsTask) -> list[AbsTask]:
    """Return the subtasks of a task, or the task itself."""
    inner = getattr(task.metadata, "tasks", None)
    return [task] if inner is None else [part for each in inner for part in parts_of(each)]


def hub_id(task: AbsTask) -> str:
    """Id of the dataset of a task on the Hub."""
    return str(task.metadata.dataset["path"])


def data_folder(task: AbsTask, data: Path) -> Path:
    """Find the folder of a task's data: `DATA/TASK`, or `DATA/ORGANISATION/NAME` as on the Hub."""
    places = [data / task.metadata.name, data / hub_id(task)]
    for place in places:
        if place.is_dir():
            return place
    raise InputError(
        f"there are no data of the task {task.metadata.name} in {data}: expected the folder {places[0]} or "
        f"{places[1]} with the files of the data set {hub_id(task)} of the Hub"
    )


def with_local_data(task: AbsTask, data: Path) -> tuple[AbsTask, str]:
    """Make a copy of a task read its data from its folder in `data`; returns the copy and the checksum of the data."""
    task, digest = fresh(task), hashlib.sha256()
    for part in parts_of(task):
        folder = data_folder(part, data).resolve()
        checksum = f"sha256:{_checksum(folder, part)}"
        digest.update(f"{part.metadata.name} {checksum}\n".encode())
        dataset = {**part.metadata.dataset, "path": str(folder), "revision": checksum}
        part.metadata = part.metadata.model_copy(update={"dataset": dataset})
    return task, f"sha256:{digest.hexdigest()}"


def fresh(task: AbsTask) -> AbsTask:
    """Copy a task, so that unloading its data does not affect other tasks that share their location."""
    task = copy.copy(task)
    if (inner := getattr(task.metadata, "tasks", None)) is not None:
        task.metadata = task.metadata.model_copy(update={"tasks": [fresh(part) for part in inner]})
    return task


def revision_of_data(task: AbsTask) -> str:
    """Commits of the datasets that a task reads from the Hub."""
    return "+".join(str(part.metadata.dataset["revision"]) for part in parts_of(task))


def _checksum(folder: Path, task: AbsTask) -> str:
    """SHA-256 over the files of a dataset in a folder, including its card."""
    import datasets

    files = {path for path in [folder / "README.md"] if path.is_file()}
    try:
        with quiet_mteb():
            for config in datasets.get_dataset_config_names(str(folder)):
                builder = datasets.load_dataset_builder(str(folder), config)
                for paths in own_files(folder, lambda: builder).values():  # noqa: B023 - called at once
                    files.update(paths)
    except InputError:
        raise
    # The library raises errors of many classes for a folder that it cannot make sense of.
    except Exception as error:
        raise InputError(unreadable(task, folder, error)) from error
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.relative_to(folder).as_posix()} {checksum_of(path)}\n".encode())
    return digest.hexdigest()


def unreadable(task: AbsTask, place: Path | str, error: BaseException) -> str:
    """Describe that the data of a task differ from what it expects."""
    reason = " ".join(str(error).strip().split("\n")[0].split()) or type(error).__name__
    if isinstance(error, KeyError):
        reason = f"there is no {reason}"
    return (
        f"the data of the task {task.metadata.name} in {place} cannot be read: {reason[:300]}; expected the files of "
        "a data set of the Hub (Parquet, JSON lines) with the splits "
        f"{', '.join(task.eval_splits)}"
    )


def columns_of(task: AbsTask) -> list[str]:
    """Names of the columns that a task reads, if it declares them; none for those that read several tables."""
    names: list[str] = []
    for attribute in (
        "column_names",
        "input_column_name",
        "input1_column_name",
        "input2_column_name",
        "label_column_name",
    ):
        value = getattr(task, attribute, ())
        names += [value] if isinstance(value, str) else [each for each in value if isinstance(each, str)]
    if hasattr(task, "column_names"):
        names.append("score")
    return list(dict.fromkeys(names))
