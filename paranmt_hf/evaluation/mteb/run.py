"""Encoders on tasks of `mteb`: each result is kept when it is there, and a finished task is not run again."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from paranmt_hf.encoders.contents import model_settings
from paranmt_hf.encoders.damage import refuse_not_finite
from paranmt_hf.encoders.loading import load
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.mteb.meta import (
    learned_from,
    left_open,
    meta_code,
    model_meta,
    revision_of,
    submission_name,
)
from paranmt_hf.evaluation.mteb.record import MtebRecord, MtebTask, read_task
from paranmt_hf.evaluation.mteb.running import run_task
from paranmt_hf.evaluation.mteb.tasks import find_tasks, quiet, revision_of_data, with_local_data
from paranmt_hf.hub.repository import Model, locate, weights_checksum
from paranmt_hf.util.files import replacing, write_bytes, writing
from paranmt_hf.util.optional import versions
from paranmt_hf.util.progress import duration
from paranmt_hf.util.records import describe_differences, read_json
from paranmt_hf.util.run import result_folder

if TYPE_CHECKING:
    from mteb.abstasks import AbsTask
    from mteb.models import ModelMeta

logger = logging.getLogger(__name__)
# In the result: what each task gave and what determined it; the same as mteb lays it out; the lock.
TASKS, SUBMISSION, LOCK = "tasks", "results", ".lock"
LIBRARIES = ("paranmt-hf", "mteb", "sentence-transformers", "torch", "numpy")


@dataclass(frozen=True)
class MtebEvaluation:
    """The evaluation of a model by mteb.

    Attributes:
        record: Its figures.
        meta: Python that makes its `ModelMeta`, for a pull request.
        open: Names of what a person has to fill in there.
        notes: Sentences on what it was trained on.
    """

    record: MtebRecord
    meta: str
    open: list[str]
    notes: list[str]


def run_mteb(
    names: Sequence[str | Path],
    tasks: Sequence[str],
    out: Path,
    *,
    data: str | Path | None,
    languages: Sequence[str],
    name: str | None,
) -> list[MtebEvaluation]:
    """Evaluate models on tasks of mteb; arguments, result and errors as of `evaluate_mteb`."""
    if not names:
        raise InputError("name a model to evaluate")
    if name is not None and len(names) > 1:
        raise InputError(f"--name is the name of one model, and {len(names)} were given")
    chosen = find_tasks(tasks, languages)
    # Before the first evaluation: is everything there?
    located = [locate(each) for each in names]
    for model in located:
        # Else a task would blame its data.
        refuse_not_finite(model.folder)
    titles = [submission_name(model, name) for model in located]
    if twice := next((title for title in titles if titles.count(title) > 1), None):
        raise InputError(
            f"two models would have the name {twice}; evaluate them into two folders, each with its --name"
        )
    place = Path(data).expanduser() if data is not None else None
    if place is not None and not place.is_dir():
        raise InputError(f"--data {data}: there is no such folder; expected one that holds a folder for each task")
    read = [(task, revision_of_data(task)) if place is None else with_local_data(task, place) for task in chosen]
    folder = result_folder(out)
    with _held(folder):
        return [
            _Model(str(each), model, title, folder).evaluate(read, place)
            for each, model, title in zip(names, located, titles, strict=True)
        ]


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold the folder of results for one command; if nothing came into it, it is gone afterwards."""
    there = [path.name for path in folder.iterdir()] if folder.is_dir() else [""] if folder.exists() else []
    if there not in ([], [LOCK]) and TASKS not in there:
        raise InputError(f"{folder} exists and holds no results of mteb; choose another --out")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / LOCK, blocking=False):
            # Half files that a kill left; nobody else writes here meanwhile.
            for path in folder.rglob(".*.tmp"):
                path.unlink()
            try:
                yield
            finally:
                with suppress(OSError):
                    (folder / LOCK).unlink()
                    # Only where nothing is in it.
                    folder.rmdir()
    except Timeout:
        raise InputError(f"another command is writing {folder}; wait for it, or stop it first") from None


class _Model:
    """A model under evaluation."""

    def __init__(self, given: str, model: Model, title: str, out: Path) -> None:
        """Take a model as it was given, where it is, and the name under which it is submitted."""
        self._given, self._model, self._title, self._out = given, model, title, out
        self._tasks = out / TASKS / title.replace("/", "__")
        self._weights = weights_checksum(model.folder)
        # Prompts and the like, which are no weights and change the vectors as well.
        self._identity = {"weights": self._weights, "settings": model_settings(model.folder, model.name)}

    def evaluate(self, tasks: Sequence[tuple[AbsTask, str]], data: Path | None) -> MtebEvaluation:
        """Run the tasks that have no result yet."""
        self._all()
        libraries = versions(LIBRARIES)
        learned = learned_from(self._model.folder)
        encoder = load(self._model)
        meta = model_meta(encoder, self._model, self._title, learned)
        results = []
        for task, digest in tasks:
            identity = {
                **self._identity,
                "data": digest,
                "subsets": [str(subset) for subset in task.hf_subsets or []],
                "mteb": libraries["mteb"],
            }
            result = self._finished(task, identity)
            if result is None:
                kind, measure = str(task.metadata.type), str(task.metadata.main_score)
                given = run_task(encoder, meta, task, data)
                result = read_task(kind, measure, given, identity)
                with writing(self._tasks):
                    self._tasks.mkdir(parents=True, exist_ok=True)
                write_bytes(self._path(result.name), json.dumps(result.to_json(), indent=1).encode())
                logger.info(f"{self._given}: {result.name} {100 * result.score:.1f}, {duration(result.seconds)}")
            self._submit(meta, result)
            results.append(result)
        record = MtebRecord(self._given, self._title, self._weights, results, libraries)
        whole = replace(record, tasks=self._all())
        write_bytes(self._beside("json"), f"{json.dumps(whole.to_json(), indent=2)}\n".encode())
        code = meta_code(meta, learned)
        write_bytes(self._beside("py"), code.encode())
        return MtebEvaluation(record, code, left_open(meta), learned.notes)

    def _beside(self, ending: str) -> Path:
        return self._out / f"{self._tasks.name}.{ending}"

    def _all(self) -> list[MtebTask]:
        """Read all results of the model, of earlier commands too, by name; refuse those of another one."""
        found = [self._read(path) for path in sorted(self._tasks.glob("*.json"))]
        for key, own in self._identity.items():
            if others := [task.name for task in found if task.identity.get(key) != own]:
                raise InputError(
                    f"{self._tasks} holds results of other {key} ({', '.join(others)}); choose another --out or "
                    "--name, or delete them"
                )
        return found

    def _read(self, path: Path) -> MtebTask:
        return MtebTask.from_json(read_json(path, "the result of a task; delete it to run that again"), path)

    def _path(self, task: str) -> Path:
        return self._tasks / f"{task}.json"

    def _finished(self, task: AbsTask, identity: dict[str, Any]) -> MtebTask | None:
        """Read the result of a task that was run already."""
        path = self._path(task.metadata.name)
        if not path.exists():
            return None
        found = self._read(path)
        if differences := describe_differences(found.identity, identity):
            raise InputError(
                f"{path} is the result of another evaluation: {differences}; choose another --out or delete that file"
            )
        return found

    def _submit(self, meta: ModelMeta, result: MtebTask) -> None:
        """Lay a result out as mteb's repository of results has it."""
        from mteb import TaskResult

        folder = self._out / SUBMISSION / meta.model_name_as_path() / revision_of(self._model)
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / f"{result.name}.json") as aside, quiet():
            TaskResult.from_dict(result.result).to_disk(aside)
        write_bytes(folder / "model_meta.json", json.dumps(meta.to_dict(), default=str, indent=4).encode())
