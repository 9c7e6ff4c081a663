"""Encoders on tasks of the library `mteb`, with data of the Hub or of a folder, and results in mteb's own layout."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import Evaluation, Results, Row
from paranmt_hf.hub.client import explain
from paranmt_hf.hub.repository import Model, locate, own_files
from paranmt_hf.util.files import checksum, listed, replacing, writing
from paranmt_hf.util.optional import require, versions
from paranmt_hf.util.progress import duration
from paranmt_hf.util.run import result_folder

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask
    from mteb.models import ModelMeta
    from mteb.results import TaskResult

    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

logger = logging.getLogger(__name__)
LIBRARIES = ("paranmt-hf", "mteb", "sentence-transformers", "torch", "numpy")
RESULTS = "results"  # Name of the folder with results, which mteb chooses
# Sentences that the model is given at once; averaging encoders take their own number.
BATCH = 32


def evaluate_mteb(
    models: str | Path | Sequence[str | Path],
    *,
    tasks: str | Sequence[str],
    out: str | Path,
    data: Path | None = None,
    languages: Sequence[str] = ("eng",),
) -> Evaluation:
    """Evaluate models on tasks of the library mteb.

    A task whose result is in the folder is not run again. The results of a model are in a folder named after it and
    its revision, so results of other weights are never mixed with them.

    Args:
        models: Folders or Hub ids of encoders; `small` and `base` are those of the package.
        tasks: Names of tasks, such as STS12 SICK-R, or of benchmarks, such as "MTEB(eng, v2)".
        out: Folder for the results, laid out as mteb's own.
        data: Folder with the tasks' data, FOLDER/TASK laid out as the dataset on the Hub; else they are downloaded.
        languages: Parts of tasks in several languages, by codes of three letters.
    """
    require("mteb", "mteb")
    names = listed(models)
    if not names:
        raise InputError("name a model to evaluate", option="models")
    chosen = find_tasks([tasks] if isinstance(tasks, str) else list(tasks), languages)
    # Before the first evaluation, whose result would be lost: is everything there?
    located = [locate(each) for each in names]
    if data is not None and not data.expanduser().is_dir():
        raise InputError(f"{data}: there is no such folder; expected one with a folder for each task", option="data")
    read = [with_local_data(task, data.expanduser()) if data is not None else task for task in chosen]
    folder = result_folder(out, sources=[model.folder for model in located])
    if folder.is_dir() and any(folder.iterdir()) and not (folder / RESULTS).is_dir():
        raise InputError(f"{folder} exists and holds no results of mteb; choose another folder", option="out")
    results = [_evaluate(str(each), model, read, folder) for each, model in zip(names, located, strict=True)]
    return Evaluation(results, folder=folder)


@contextmanager
def quiet_mteb() -> Iterator[None]:
    """Silence mteb and its libraries in a `with` block; problems are raised as errors."""
    import datasets

    log, bars = logging.getLogger("mteb"), datasets.utils.logging.is_progress_bar_enabled()
    before = log.level
    log.setLevel(logging.ERROR)
    datasets.disable_progress_bars()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)
        if bars:
            datasets.enable_progress_bars()


def find_tasks(names: Sequence[str], languages: Sequence[str]) -> list[AbsTask]:
    """Find tasks by names of tasks or benchmarks; multilingual ones are restricted to `languages`."""
    if not names:
        raise InputError("name a task of mteb, such as STS12", option="tasks")
    found: dict[str, AbsTask] = {}
    with quiet_mteb():
        for task in (task for name in names for task in _named(name, languages)):
            if others := [kind for kind in task.metadata.modalities if kind != "text"]:
                raise InputError(f"the task {task.metadata.name} is about {', '.join(others)}, and encoders read text")
            found.setdefault(task.metadata.name, task)
    return list(found.values())


def _named(name: str, languages: Sequence[str]) -> list[AbsTask]:
    """The task of a name, or the tasks of a benchmark."""
    import mteb

    try:
        task = mteb.get_task(name, languages=list(languages), exclusive_language_filter=True)
    except KeyError as error:
        try:
            return list(mteb.get_benchmark(name).tasks)
        except KeyError:
            # It names similar tasks.
            raise InputError(
                f"mteb has no such task or benchmark: {str(error.args[0]).removeprefix('KeyError: ')}", option="tasks"
            ) from None
    except ValueError:
        task = None
    if task is None or not task.hf_subsets:
        there = sorted({code.split("-")[0] for code in mteb.get_task(name).languages})
        raise InputError(
            f"the task {name} has no part in {' or '.join(languages)} alone; it has {', '.join(there)}: name one in "
            "`languages`"
        )
    return [task]


def parts_of(task: AbsTask) -> list[AbsTask]:
    """Return the subtasks of a task, or the task itself."""
    inner = getattr(task.metadata, "tasks", None)
    return [task] if inner is None else [part for each in inner for part in parts_of(each)]


def fresh(task: AbsTask) -> AbsTask:
    """Copy a task, so that unloading its data does not affect other tasks that share their location."""
    task = copy.copy(task)
    if (inner := getattr(task.metadata, "tasks", None)) is not None:
        task.metadata = task.metadata.model_copy(update={"tasks": [fresh(part) for part in inner]})
    return task


def with_local_data(task: AbsTask, data: Path) -> AbsTask:
    """Make a copy of a task read its data from `DATA/TASK`, or `DATA/ORGANISATION/NAME` as on the Hub."""
    task = fresh(task)
    for part in parts_of(task):
        dataset = part.metadata.dataset
        places = [data / part.metadata.name, data / dataset["path"]]
        folder = next((place.resolve() for place in places if place.is_dir()), None)
        if folder is None:
            raise InputError(
                f"there are no data of the task {part.metadata.name} in {data}: expected the folder {places[0]} or "
                f"{places[1]} with the files of the data set {dataset['path']} of the Hub"
            )
        found = {**dataset, "path": str(folder)}
        part.metadata = part.metadata.model_copy(update={"dataset": found})
        try:
            found["revision"] = f"sha256:{_checksum(folder)}"
        except InputError:
            raise
        # The library raises errors of many classes for a folder that it cannot make sense of.
        except Exception as error:
            raise _unfit(part, error) from error
    return task


def _checksum(folder: Path) -> str:
    """SHA-256 over the files of a dataset in a folder, including its card."""
    import datasets

    files = {path for path in [folder / "README.md"] if path.is_file()}
    with quiet_mteb():
        for config in datasets.get_dataset_config_names(str(folder)):
            builder = datasets.load_dataset_builder(str(folder), config)
            for paths in own_files(folder, lambda: builder).values():  # noqa: B023 - called at once
                files.update(paths)
    lines = (f"{path.relative_to(folder).as_posix()} {checksum(path)}\n" for path in sorted(files))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _revision(task: AbsTask) -> str:
    """Commits of the datasets that a task reads, or the checksums of local ones."""
    return "+".join(str(part.metadata.dataset["revision"]) for part in parts_of(task))


def _evaluate(given: str, model: Model, tasks: Sequence[AbsTask], out: Path) -> Results:
    """Run the tasks that have no result yet."""
    from paranmt_hf.encoders.loading import load

    encoder = load(model)
    meta = model_meta(encoder)
    # mteb's own: results/MODEL/REVISION
    folder = out / RESULTS / meta.model_name_as_path() / str(meta.revision)
    rows: list[Row] = []
    for task in tasks:
        found = _finished(folder, task)
        if found is None:
            found = run_task(encoder, meta, task)
            _check_scores(found)
            # Of a task of several parts mteb names no revision.
            found = found.model_copy(update={"dataset_revision": _revision(task)})
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
            with replacing(folder / "model_meta.json") as aside:
                aside.write_text(json.dumps(meta.to_dict(), default=str, indent=4), encoding="utf8", newline="\n")
            with replacing(folder / f"{found.task_name}.json") as aside, quiet_mteb():
                found.to_disk(aside)
            # With the digits that mteb keeps.
            found = _finished(folder, task) or found
            seconds = found.evaluation_time or 0
            logger.info(f"{given}: {found.task_name} {100 * found.get_score():.1f}, {duration(seconds)}")
        rows += _rows(task, found)
    return Results(
        kind="mteb",
        model=given,
        tables={"Task": rows, "Mean": _means([row for row in rows if row.group is None])},
        data={task.metadata.name: _revision(task) for task in tasks},
        settings={"name": meta.name, "revision": meta.revision},
        weights=model.revision,
        versions=versions(LIBRARIES),
        notes=[*_versions_of(tasks), f"mteb's own files: {folder}"],
    )


def _versions_of(tasks: Sequence[AbsTask]) -> list[str]:
    """Say which tasks mteb has a later version of, such as STSBenchmark (1,379 pairs) and STSBenchmark.v2 (1,362)."""
    later = {task.metadata.name: getattr(task, "superseded_by", None) for task in tasks}
    return [
        f"{name} is the version of the task that mteb has replaced by {new}; figures of the two are not comparable."
        for name, new in later.items()
        if new
    ]


def _finished(folder: Path, task: AbsTask) -> TaskResult | None:
    """Read the result of a finished task; reject one on other data or of another version of mteb."""
    from mteb import TaskResult

    path = folder / f"{task.metadata.name}.json"
    if not path.exists():
        return None
    try:
        found = TaskResult.from_disk(path)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({' '.join(str(error).split())[:200]}); delete it", path=path) from None
    subsets = {str(entry["hf_subset"]) for entries in found.scores.values() for entry in entries}
    wanted = {str(subset) for subset in task.hf_subsets or subsets}
    now = (_revision(task), versions(["mteb"])["mteb"], wanted)
    if (found.dataset_revision, found.mteb_version, subsets) != now:
        raise InputError(
            f"{path} is the result on other data or languages, or of another version of mteb; choose another "
            "folder or delete that file",
            option="out",
            path=path,
        )
    return found


def _check_scores(result: TaskResult) -> None:
    """Reject a score that is not finite, such as a correlation with constant values."""
    for split, entries in result.scores.items():
        for entry in entries:
            if entry["main_score"] is None or not math.isfinite(entry["main_score"]):
                raise InputError(
                    f"the task {result.task_name} gives no score in the split {split!r} ({entry['hf_subset']}), as if "
                    "all similarities or all scores are the same, or a score is not a number; look at the data, and "
                    "whether the model knows their words"
                )


def _rows(task: AbsTask, result: TaskResult) -> list[Row]:
    """A row for the task, and for each of its parts if there are several."""
    name, measure = task.metadata.name, str(task.metadata.main_score)
    parts = [
        Row(name=f"{name} {entry['hf_subset']} {split}", values={"score": float(entry["main_score"])}, group=name)
        for split, entries in result.scores.items()
        for entry in entries
    ]
    score = sum(part.main for part in parts) / len(parts)
    details = {"type": str(task.metadata.type), "measure": measure, "seconds": result.evaluation_time}
    whole = Row(name=name, values={"score": score}, details=details)
    return [whole, *(parts if len(parts) > 1 else [])]


def _means(rows: Sequence[Row]) -> list[Row]:
    """The mean of each type of task, if there are several, and of all tasks."""
    kinds = list(dict.fromkeys(row.details["type"] for row in rows))
    scores = {kind: [row.main for row in rows if row.details["type"] == kind] for kind in kinds}
    chosen = {f"Mean of {kind}": own for kind, own in scores.items() if len(kinds) > 1}
    if len(rows) > 1:
        chosen["Mean"] = [row.main for row in rows]
    return [Row(name=name, values={"score": sum(own) / len(own)}, items=len(own)) for name, own in chosen.items()]


def model_meta(encoder: SentenceEncoder) -> ModelMeta:
    """Describe an encoder for mteb, under its id on the Hub; a folder gets one that begins with `ORGANISATION`."""
    from mteb.models import ModelMeta

    with quiet_mteb():
        return ModelMeta.from_sentence_transformer_model(encoder, fill_missing=None)


def run_task(encoder: SentenceEncoder, meta: ModelMeta, task: AbsTask) -> TaskResult:
    """Evaluate an encoder on a task; each of the `scores` by split has a `main_score` and a `hf_subset`."""
    import mteb

    task = fresh(task)
    with quiet_mteb():
        wrapper = mteb.SentenceTransformerEncoderWrapper(encoder)
        wrapper.mteb_model_meta = meta
        _load(task)
        try:
            result = mteb.evaluate(
                wrapper,
                task,
                cache=None,
                co2_tracker=False,
                show_progress_bar=False,
                encode_kwargs={"batch_size": BATCH, "show_progress_bar": False},
            )
        # What a task makes of data of another kind: no such column, text for a number, no label, one class alone.
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise _unfit(task, error) from error
        finally:
            for part in parts_of(task):
                part.unload_data()
    found: TaskResult = result.task_results[0]
    return found


def _load(task: AbsTask) -> None:
    """Load the data of a task."""
    for part in parts_of(task):
        try:
            part.load_data()
        # Errors of several libraries; all mean that the data are not to be had.
        except Exception as error:
            place = str(part.metadata.dataset["path"])
            if Path(place).is_absolute():
                raise _unfit(part, error) from error
            raise InputError(
                f"the task {part.metadata.name}: {explain(error, place, 'dataset')}; or give a folder `data` with "
                f"these data in DATA/{part.metadata.name}"
            ) from error


def _unfit(task: AbsTask, error: Exception) -> InputError:
    """Say that the data of a task differ from what it expects."""
    reason = " ".join(str(error).split())[:300] or type(error).__name__
    missing = "there is no " if isinstance(error, KeyError) else ""
    places = ", ".join(str(part.metadata.dataset["path"]) for part in parts_of(task))
    return InputError(
        f"the data of the task {task.metadata.name} in {places} do not fit it: {missing}{reason}; expected the files "
        f"of its data set on the Hub (Parquet, JSON lines), with the splits {', '.join(task.eval_splits)}"
    )
