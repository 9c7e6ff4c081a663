"""Evaluate encoders on tasks of the library `mteb`, with data from the Hub or a folder, and results in its layout."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
RESULTS = "results"  # Name of the folder with results, which mteb chooses


def evaluate_mteb(
    models: str | Path | Sequence[str | Path],
    *,
    tasks: str | Sequence[str],
    out: str | Path,
    data: Path | None = None,
    languages: Sequence[str] = ("eng",),
) -> Evaluation:
    """Evaluate models on tasks of the library mteb.

    A task whose result is already in the folder is not run again. Results are kept in a folder for each model and
    revision, so that results of different weights are never mixed.

    Args:
        models: Folders or Hub ids of encoders; `small`, `base`, `de`, ... are those of the package.
        tasks: Names of tasks, such as STS12 SICK-R, or of benchmarks, such as "MTEB(eng, v2)".
        out: Folder for the results, in mteb's own layout.
        data: Folder with the data of each task in FOLDER/TASK, laid out as the dataset on the Hub; data are downloaded
            if left out.
        languages: Languages, by codes of three letters, of the parts of multilingual tasks that are run.
    """
    require("mteb", "mteb")
    names = listed(models)
    if not names or not tasks:
        option = "tasks" if names else "models"
        raise InputError("name a model to evaluate, and a task of mteb such as STS12", option=option)
    # Everything is found before the first task runs, so that a wrong name costs no finished result.
    chosen = find_tasks([tasks] if isinstance(tasks, str) else tasks, languages)
    located = [locate(name) for name in names]
    if data is not None:
        if not data.expanduser().is_dir():
            raise InputError(f"there is no folder {data}; expected one with the tasks' data", option="data", path=data)
        chosen = [with_local_data(task, data.expanduser()) for task in chosen]
    folder = result_folder(out, sources=[model.folder for model in located])
    if folder.is_dir() and any(folder.iterdir()) and not (folder / RESULTS).is_dir():
        raise InputError(f"{folder} exists and holds no results of mteb; choose another folder", option="out")
    results = [_evaluate(str(name), model, chosen, folder) for name, model in zip(names, located, strict=True)]
    return Evaluation(results, folder=folder)


@contextmanager
def quiet_mteb() -> Iterator[None]:
    """Silence the log, warnings and progress bars of mteb and its libraries in a `with` block."""
    import datasets

    log = logging.getLogger("mteb")
    level = log.level
    bars = datasets.utils.logging.is_progress_bar_enabled()
    log.setLevel(logging.ERROR)
    datasets.disable_progress_bars()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
        if bars:
            datasets.enable_progress_bars()


def find_tasks(names: Sequence[str], languages: Sequence[str]) -> list[AbsTask]:
    """Find the tasks of mteb with some names, each once.

    Args:
        names: Names of tasks or of benchmarks.
        languages: Languages to which tasks that are named are restricted; tasks of benchmarks stay as they are.

    Raises:
        InputError: There is no such task or benchmark, or a task is not about text.
    """
    found: dict[str, AbsTask] = {}
    with quiet_mteb():
        for given in names:
            for task in _named(given, languages):
                name = task.metadata.name
                if others := set(task.metadata.modalities) - {"text"}:
                    raise InputError(
                        f"the task {name} is about {', '.join(sorted(others))}, and encoders read text", option="tasks"
                    )
                found.setdefault(name, task)
    return list(found.values())


def _named(name: str, languages: Sequence[str]) -> list[AbsTask]:
    """Return the task with a name, restricted to languages, or the tasks of the benchmark with this name."""
    import mteb

    try:
        every = mteb.get_task(name)
    except KeyError as error:
        try:
            return list(mteb.get_benchmark(name).tasks)
        except KeyError:
            # The error of the task is shown, because it names similar tasks.
            reason = str(error.args[0]).removeprefix("KeyError: ")
            raise InputError(f"mteb has no such task or benchmark: {reason}", option="tasks") from None
    with suppress(ValueError):
        task = mteb.get_task(name, languages=list(languages), exclusive_language_filter=True)
        if task.hf_subsets:
            return [task]
    there = sorted({code.split("-")[0] for code in every.languages})
    raise InputError(
        f"the task {name} has no part in {' or '.join(languages)} alone; it has {', '.join(there)}: name one in "
        "`languages`",
        option="languages",
    )


def parts_of(task: AbsTask) -> list[AbsTask]:
    """Return the tasks over which an aggregate such as `STSBenchmark.v2` is a mean; else the task itself."""
    inner = getattr(task.metadata, "tasks", None)
    if inner is None:
        return [task]
    parts = []
    for each in inner:
        parts += parts_of(each)
    return parts


def fresh(task: AbsTask) -> AbsTask:
    """Copy a task, so that loading or moving the data of the copy does not change the original."""
    task = copy.copy(task)
    inner = getattr(task.metadata, "tasks", None)
    if inner is not None:
        task.metadata = task.metadata.model_copy(update={"tasks": [fresh(part) for part in inner]})
    return task


def with_local_data(task: AbsTask, data: Path) -> AbsTask:
    """Return a copy of a task that reads its data from a local folder.

    The data are in `DATA/TASK`, or in `DATA/ORGANISATION/NAME` with the id that the dataset has on the Hub. Raises
    `InputError` if neither folder exists.
    """
    task = fresh(task)
    for part in parts_of(task):
        dataset = part.metadata.dataset
        places = [data / part.metadata.name, data / dataset["path"]]
        folders = [place.resolve() for place in places if place.is_dir()]
        if not folders:
            raise InputError(
                f"there are no data of the task {part.metadata.name} in {data}: expected the folder {places[0]} or "
                f"{places[1]} with the files of the data set {dataset['path']} of the Hub",
                option="data",
            )
        local = {**dataset, "path": str(folders[0])}
        part.metadata = part.metadata.model_copy(update={"dataset": local})
        with _explained(part):
            local["revision"] = f"sha256:{_checksum(folders[0])}"
    return task


def _checksum(folder: Path) -> str:
    """Return the SHA-256 of the files of a dataset in a folder, its card included, in hexadecimal."""
    import datasets

    files = {folder / "README.md"} if (folder / "README.md").is_file() else set()
    for config in datasets.get_dataset_config_names(str(folder)):
        builder = datasets.load_dataset_builder(str(folder), config)
        for paths in own_files(folder, lambda: builder).values():  # noqa: B023 - called at once
            files.update(paths)
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.relative_to(folder).as_posix()} {checksum(path)}\n".encode())
    return digest.hexdigest()


def _revision(task: AbsTask) -> str:
    """Return the revisions of the datasets that a task reads, joined by `+`: commits on the Hub or local checksums."""
    return "+".join(str(part.metadata.dataset["revision"]) for part in parts_of(task))


def _evaluate(given: str, model: Model, tasks: Sequence[AbsTask], out: Path) -> Results:
    """Run those tasks of a model that have no result yet, and return the results of all tasks.

    Args:
        given: Name of the model, as the user gave it.
        model: Files of the model.
        tasks: Tasks of mteb.
        out: Folder of the results of all models.
    """
    from paranmt_hf.encoders.loading import load

    encoder = load(model)
    meta = model_meta(encoder)
    # The path of mteb's own cache of results.
    folder = out / RESULTS / meta.model_name_as_path() / str(meta.revision)
    rows: list[Row] = []
    for task in tasks:
        found = _finished(folder, task)
        if found is None:
            made = run_task(encoder, meta, task)
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
            with replacing(folder / "model_meta.json") as aside:
                aside.write_text(json.dumps(meta.to_dict(), default=str, indent=4), encoding="utf8", newline="\n")
            with replacing(folder / f"{made.task_name}.json") as aside, quiet_mteb():
                made.to_disk(aside)
            # The result is read again, because mteb rounds scores when it writes them.
            found = _finished(folder, task)
            assert found is not None
            seconds = duration(found.evaluation_time or 0)
            logger.info(f"{given}: {found.task_name} {100 * found.get_score():.1f}, {seconds}")
        rows += _rows(task, found)
    whole = [row for row in rows if row.group is None]
    means = [Row(name="Mean", values=_mean(whole), items=len(whole))] if len(whole) > 1 else []
    return Results(
        kind="mteb",
        model=given,
        tables={"Task": rows, "Mean": means},
        data={task.metadata.name: _revision(task) for task in tasks},
        settings={"name": meta.name, "revision": meta.revision},
        weights=model.revision,
        versions=versions(("paranmt-hf", "mteb", "sentence-transformers", "torch", "numpy")),
        notes=[f"mteb's own files: {folder}"],
    )


def _finished(folder: Path, task: AbsTask) -> TaskResult | None:
    """Read the result of a task in a folder; None if there is none.

    Raises `InputError` if the file is damaged, or holds a result on other data or languages, or of another version of
    mteb.
    """
    from mteb import TaskResult

    path = folder / f"{task.metadata.name}.json"
    if not path.exists():
        return None
    try:
        found = TaskResult.from_disk(path)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({' '.join(str(error).split())[:200]}); delete it", path=path) from None
    subsets = {str(entry["hf_subset"]) for _, entry in _entries(found)}
    # A task without subsets of its own may have any.
    wanted = {str(subset) for subset in task.hf_subsets} or subsets
    now = (_revision(task), versions(["mteb"])["mteb"], wanted)
    if (found.dataset_revision, found.mteb_version, subsets) != now:
        raise InputError(
            f"{path} is the result on other data or languages, or of another version of mteb; choose another "
            "folder or delete that file",
            option="out",
            path=path,
        )
    return found


def _entries(result: TaskResult) -> Iterator[tuple[str, Any]]:
    """Yield the name of each split of a result, once with the scores of each of its parts, such as languages."""
    for split, entries in result.scores.items():
        for entry in entries:
            yield split, entry


def _rows(task: AbsTask, result: TaskResult) -> list[Row]:
    """Return a row of scores for the task, and a row for each of its parts if there are several."""
    name = task.metadata.name
    parts = []
    for split, entry in _entries(result):
        values = {"score": float(entry["main_score"])}
        parts.append(Row(name=f"{name} {entry['hf_subset']} {split}", values=values, group=name))
    details = {
        "type": str(task.metadata.type),
        "measure": str(task.metadata.main_score),
        "seconds": result.evaluation_time,
    }
    whole = Row(name=name, values=_mean(parts), details=details)
    return [whole, *parts] if len(parts) > 1 else [whole]


def _mean(rows: Sequence[Row]) -> dict[str, float]:
    """Return the mean of the main scores of rows, as the values of a row."""
    return {"score": sum(row.main for row in rows) / len(rows)}


def model_meta(encoder: SentenceEncoder) -> ModelMeta:
    """Return mteb's description of an encoder.

    Its name is the id of the encoder on the Hub. An encoder in a folder gets a name that begins with `ORGANISATION`.
    """
    from mteb.models import ModelMeta

    with quiet_mteb():
        return ModelMeta.from_sentence_transformer_model(encoder, fill_missing=None)


def run_task(encoder: SentenceEncoder, meta: ModelMeta, task: AbsTask) -> TaskResult:
    """Evaluate an encoder on a task of mteb.

    Returns:
        mteb's result, whose `scores` has a list of entries for each split, each with a finite `main_score` and the
        name of a part, `hf_subset`.

    Raises:
        InputError: The data cannot be loaded or do not fit the task, or a score is not finite.
    """
    import mteb

    # When the data of a task are unloaded, mteb gives it back the revision of the data on the Hub, so the task is
    # copied and its revision is noted first.
    task, revision = fresh(task), _revision(task)
    wrapper = mteb.SentenceTransformerEncoderWrapper(encoder)
    wrapper.mteb_model_meta = meta
    for part in parts_of(task):
        with _explained(part):
            part.load_data()
    with _explained(task):
        made = mteb.evaluate(wrapper, task, cache=None, co2_tracker=False, show_progress_bar=False)
    for part in parts_of(task):
        part.unload_data()
    # In the result of a task with several parts, mteb leaves the revision out.
    result: TaskResult = made.task_results[0].model_copy(update={"dataset_revision": revision})
    for split, entry in _entries(result):
        if entry["main_score"] is None or not math.isfinite(entry["main_score"]):
            raise InputError(
                f"the task {result.task_name} gives no score in the split {split!r} ({entry['hf_subset']}), as if all "
                "similarities or all scores are the same, or a score is not a number; look at the data, and whether "
                "the model knows their words"
            )
    return result


@contextmanager
def _explained(task: AbsTask) -> Iterator[None]:
    """Run mteb quietly in a `with` block, and turn errors of a task's data into `InputError`.

    The errors say that data cannot be loaded, or that they do not fit the task.
    """
    from datasets.exceptions import DatasetsError

    try:
        with quiet_mteb():
            yield
    except InputError:
        raise
    # These are the errors of tasks whose data lack a column or labels, have text for a number or a single class, and
    # of the readers of files.
    except (DatasetsError, OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        name = task.metadata.name
        places = [str(part.metadata.dataset["path"]) for part in parts_of(task)]
        if isinstance(error, OSError) and not Path(places[0]).is_absolute():
            raise InputError(
                f"the task {name}: {explain(error, places[0], 'dataset')}; or give a folder `data` with these data in "
                f"DATA/{name}"
            ) from error
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise InputError(
            f"the data of the task {name} in {', '.join(places)} do not fit it ({reason}); expected the files of its "
            f"data set on the Hub (Parquet, JSON lines), with the splits {', '.join(task.eval_splits)}"
        ) from error
