"""Encoders on tasks of the library `mteb`, with data of the Hub or of a folder, and results in mteb's own layout."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from safetensors import safe_open

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.mteb_tasks import (
    EXTRA,
    columns_of,
    every_task,
    find_tasks,
    fresh,
    hub_id,
    parts_of,
    quiet_mteb,
    revision_of_data,
    unreadable,
    with_local_data,
)
from paranmt_hf.evaluation.results import Evaluation, Results, Row
from paranmt_hf.hub.client import explain, is_id
from paranmt_hf.hub.repository import Model, locate
from paranmt_hf.util.files import replacing, writing
from paranmt_hf.util.optional import require, versions
from paranmt_hf.util.progress import duration
from paranmt_hf.util.run import result_folder
from paranmt_hf.util.yaml_files import card_header

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask
    from mteb.models import ModelMeta
    from mteb.results import TaskResult

    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

logger = logging.getLogger(__name__)
LIBRARIES = ("paranmt-hf", "mteb", "sentence-transformers", "torch", "numpy")
# Name of the folder with results, which mteb chooses.
RESULTS = "results"
# Sentences that the model is given at once; averaging encoders take their own number.
BATCH = 32


def evaluate_mteb(
    models: str | Path | Sequence[str | Path],
    *,
    tasks: str | Sequence[str],
    out: str | Path,
    data: Path | None = None,
    languages: Sequence[str] = ("eng",),
    name: str | None = None,
) -> Evaluation:
    """Evaluate models on tasks of the library mteb.

    A task whose result is in the folder is not run again. The results of a model are in a folder named after it and
    its revision, so results of other weights are never mixed with them.

    Args:
        models: Folders or Hub ids of encoders; `embedded` is the one that the package carries.
        tasks: Names of tasks, such as STS12 SICK-R, or of benchmarks, such as "MTEB(eng, v2)".
        out: Folder for the results, laid out as mteb's repository of results, to which it takes pull requests.
        data: Folder with the tasks' data, FOLDER/TASK laid out as the dataset on the Hub; else they are downloaded.
        languages: Parts of tasks in several languages, by codes of three letters.
        name: ORGANISATION/NAME under which the results are submitted; for one model alone.
    """
    names = [models] if isinstance(models, str | Path) else list(models)
    if not names:
        raise InputError("name a model to evaluate", option="models")
    if name is not None and (len(names) > 1 or not is_id(name)):
        raise InputError(f"name must be ORGANISATION/NAME and is for one model alone, was {name!r}", option="name")
    chosen = find_tasks([tasks] if isinstance(tasks, str) else list(tasks), languages)
    # Before the first evaluation, whose result would be lost: is everything there?
    located = [locate(each) for each in names]
    if data is not None and not data.expanduser().is_dir():
        raise InputError(f"{data}: there is no such folder; expected one with a folder for each task", option="data")
    place = None if data is None else data.expanduser()
    read = [(task, revision_of_data(task)) if place is None else with_local_data(task, place) for task in chosen]
    folder = result_folder(out)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / RESULTS).is_dir():
        raise InputError(f"{folder} exists and holds no results of mteb; choose another folder", option="out")
    results = [
        _evaluate(str(each), model, name, read, folder, place) for each, model in zip(names, located, strict=True)
    ]
    return Evaluation(results, folder=folder)


def _evaluate(
    given: str, model: Model, name: str | None, tasks: Sequence[tuple[AbsTask, str]], out: Path, data: Path | None
) -> Results:
    """Run the tasks that have no result yet."""
    from paranmt_hf.encoders.loading import load

    encoder = load(model)
    meta = model_meta(encoder, model, name)
    # mteb's own: results/MODEL/REVISION
    folder = out / RESULTS / meta.model_name_as_path() / str(meta.revision)
    rows: list[Row] = []
    for task, revision in tasks:
        found = _finished(folder, task, revision)
        if found is None:
            found = run_task(encoder, meta, task, data)
            _check_scores(found)
            # Of a task of several parts mteb names no revision.
            found = found.model_copy(update={"dataset_revision": revision})
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
            with replacing(folder / "model_meta.json") as aside:
                aside.write_text(json.dumps(meta.to_dict(), default=str, indent=4), encoding="utf8")
            with replacing(folder / f"{found.task_name}.json") as aside, quiet_mteb():
                found.to_disk(aside)
            # With the digits that mteb keeps.
            found = _finished(folder, task, revision) or found
            seconds = found.evaluation_time or 0
            logger.info(f"{given}: {found.task_name} {100 * found.get_score():.1f}, {duration(seconds)}")
        rows += _rows(task, found)
    return Results(
        kind="mteb",
        model=given,
        tables={"Task": rows, "Mean": _means([row for row in rows if row.group is None])},
        data={task.metadata.name: revision for task, revision in tasks},
        settings={"name": meta.name, "revision": meta.revision},
        weights=model.revision,
        versions=versions(LIBRARIES),
        notes=[f"mteb's own files: {folder}"],
    )


def _finished(folder: Path, task: AbsTask, revision: str) -> TaskResult | None:
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
    now = (revision, versions(["mteb"])["mteb"], wanted)
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


def model_meta(encoder: SentenceEncoder, model: Model, name: str | None) -> ModelMeta:
    """Describe an encoder for mteb, from its files and the header of its card; `name` is that of a submission."""
    require("mteb", EXTRA)
    from mteb.models import ModelMeta
    from mteb.types import Licenses

    header = card_header(model.folder / "README.md")
    header = header if isinstance(header, dict) else {}
    listed = header.get("datasets")
    ids = {str(each).partition("@")[0] for each in (listed if isinstance(listed, list) else [listed]) if each}
    title = name or (model.name if is_id(model.name) else f"ORGANISATION/{'-'.join(model.name.split()) or 'model'}")
    modules = json.loads((model.folder / "modules.json").read_text(encoding="utf8"))
    stock = all(entry["type"].startswith("sentence_transformers.") for entry in modules)
    with quiet_mteb():
        meta = ModelMeta.from_sentence_transformer_model(encoder, fill_missing=None)
    return meta.model_copy(
        update={
            "name": title,
            # The commit on the Hub, or as many digits of the checksum of a folder's files.
            "revision": model.revision.removeprefix("sha256:")[:40],
            "loader_kwargs": {} if stock else {"trust_remote_code": True},
            # mteb has codes of its own; only that of English is known here.
            "languages": ["eng-Latn"] if header.get("language") in ("en", ["en"]) else None,
            "license": header.get("license") if header.get("license") in get_args(Licenses) else None,
            "n_parameters": _parameters(model.folder),
            "memory_usage_mb": round(sum(path.stat().st_size for path in model.folder.rglob("*.safetensors")) / 2**20),
            "open_weights": True,
            "reference": f"https://huggingface.co/{title}",
            # Data sets count by the tasks that hold them; None means unknown.
            "training_datasets": ids | {task.name for task in every_task() if task.dataset.get("path") in ids} or None,
        }
    )


def _parameters(folder: Path) -> int:
    """Number of stored weights."""
    total = 0
    for path in folder.rglob("*.safetensors"):
        with safe_open(path, "np") as stored:
            total += sum(math.prod(stored.get_slice(name).get_shape()) for name in stored.keys())  # noqa: SIM118
    return total


def run_task(encoder: SentenceEncoder, meta: ModelMeta, task: AbsTask, data: Path | None = None) -> TaskResult:
    """Evaluate an encoder on a task.

    Returns:
        The result: `scores` by split, of which each has a `main_score` and a `hf_subset`.
    """
    mteb, task = require("mteb", EXTRA), fresh(task)
    with quiet_mteb():
        wrapper = mteb.SentenceTransformerEncoderWrapper(encoder)
        wrapper.mteb_model_meta = meta
        for part in parts_of(task):
            _load(part, data)
        try:
            result = mteb.evaluate(
                wrapper,
                task,
                cache=None,
                co2_tracker=False,
                show_progress_bar=False,
                encode_kwargs={"batch_size": BATCH, "show_progress_bar": False},
            )
        # What a task makes of data of another kind: text for a number, no label, one class alone.
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            reason = " ".join(str(error).split())[:300]
            columns = f" in the columns {', '.join(names)}" if (names := columns_of(task)) else ""
            raise InputError(
                f"the data of the task {task.metadata.name} in {_place(task, data)} do not fit it: {reason}; expected "
                f"what its data set on the Hub has{columns}"
            ) from error
        finally:
            for part in parts_of(task):
                part.unload_data()
    found: TaskResult = result.task_results[0]
    return found


def _load(task: AbsTask, data: Path | None) -> None:
    """Load the data of a task, and check their columns before encoding."""
    try:
        task.load_data()
    # Errors of several libraries; all mean that the data are not to be had.
    except Exception as error:
        if data is None:
            raise InputError(
                f"the task {task.metadata.name}: {explain(error, hub_id(task), 'dataset')}; or give a folder `data` "
                f"with these data in DATA/{task.metadata.name}"
            ) from error
        raise InputError(unreadable(task, _place(task, data), error)) from error
    wanted = columns_of(task)
    for split, there in _splits(task):
        if missing := [name for name in wanted if name not in there]:
            raise InputError(
                f"the data of the task {task.metadata.name} in {_place(task, data)} have no column "
                f"{' and '.join(map(repr, missing))} in the split {split!r}: expected {', '.join(wanted)}, found "
                f"{', '.join(there)}"
            )


def _splits(task: AbsTask) -> list[tuple[str, list[str]]]:
    """Evaluation splits of a task and their column names, for tasks that read one table."""
    loaded: Any = task.dataset
    # Of tasks in several languages there is a table for each of them.
    tables = [loaded] if any(split in loaded for split in task.eval_splits) else list(loaded.values())
    return [
        (split, list(table[split].column_names))
        for table in tables
        for split in task.eval_splits
        if split in table and hasattr(table[split], "column_names")
    ]


def _place(task: AbsTask, data: Path | None) -> str:
    inner = parts_of(task)
    if data is not None and len(inner) > 1:
        return str(data)
    return hub_id(inner[0]) if data is None else str(inner[0].metadata.dataset["path"])
