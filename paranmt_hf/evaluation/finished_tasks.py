"""Results of finished transfer tasks in a folder, so that an interrupted evaluation continues with the next task."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import Row
from paranmt_hf.util.files import replacing
from paranmt_hf.util.records import as_bytes, as_json, from_json, read_json
from paranmt_hf.util.run import result_folder


@dataclass(frozen=True)
class FinishedTask:
    """The result of a model on a task.

    Attributes:
        identity: What determines it: model, task, settings, versions.
        row: The scores.
        dimension: Dimension of the vectors.
    """

    identity: dict[str, Any]
    row: Row
    dimension: int


@dataclass(frozen=True)
class FinishedTasks:
    """The results of one model, one file for each task; nothing is kept without a folder or for an unknown model.

    Attributes:
        folder: The folder; None to keep nothing.
        identity: What determines all results of the model; None if that is not known.
    """

    folder: Path | None = None
    identity: Mapping[str, Any] | None = None

    def read(self, task: str, checksum: str) -> FinishedTask | None:
        """Find the result of a task, whose items have this checksum."""
        path = self._path(task, checksum)
        if path is None or not path.is_file():
            return None
        return from_json(FinishedTask, read_json(path, "the result of a transfer task"), path)

    def write(self, task: str, checksum: str, row: Row, dimension: int) -> FinishedTask:
        """Keep the result of a task; returns it."""
        path = self._path(task, checksum)
        found = FinishedTask(self._identity_of(task, checksum), row, dimension)
        if path is not None:
            with replacing(path) as aside:
                aside.write_bytes(as_bytes(as_json(found)))
        return found

    def _identity_of(self, task: str, checksum: str) -> dict[str, Any]:
        return {**(self.identity or {}), "task": task, "items": checksum}

    def _path(self, task: str, checksum: str) -> Path | None:
        if self.folder is None or self.identity is None:
            return None
        identity = json.dumps(as_json(self._identity_of(task, checksum)), sort_keys=True)
        return self.folder / f"{task}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"


def folder_of_tasks(out: str | Path, sources: Iterable[str | Path]) -> Path:
    """Resolve and make the folder of finished tasks; one with anything else, or inside a source, is rejected."""
    folder = result_folder(out, sources=sources)
    if folder.exists() and not all(_is_ours(path) for path in folder.iterdir()):
        raise InputError(
            f"{folder} exists and holds other files than results of tasks; choose another folder",
            option="out",
            path=folder,
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _is_ours(path: Path) -> bool:
    """Whether a file may be the result of a task, or what a kill left of one."""
    left = path.name.startswith(".") and path.name.endswith(".tmp") and ".json." in path.name
    return not path.is_dir() and (path.suffix == ".json" or left)
