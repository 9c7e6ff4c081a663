"""Keep the results of finished transfer tasks in a folder, so that an interrupted evaluation goes on with the next."""

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
class FinishedTasks:
    """The results of one model on finished transfer tasks, in a folder with one file for each task.

    Attributes:
        folder: The folder; None to keep nothing.
        identity: Everything that the results of the model depend on, such as its weights and settings, as JSON values;
            None if that is not known, so that nothing is kept.
    """

    folder: Path | None = None
    identity: Mapping[str, Any] | None = None

    def read(self, task: str, checksum: str) -> Row | None:
        """Return the scores of a task, whose items have this checksum; None if they are not kept."""
        path = self._path(task, checksum)
        if path is None or not path.is_file():
            return None
        return from_json(Row, read_json(path, "the result of a transfer task"), path)

    def write(self, row: Row, checksum: str) -> None:
        """Write the scores of a task, whose items have this checksum, if results are kept."""
        path = self._path(row.name, checksum)
        if path is not None:
            with replacing(path) as aside:
                aside.write_bytes(as_bytes(as_json(row)))

    def _path(self, task: str, checksum: str) -> Path | None:
        """Return the file of a task, named by a checksum of all that its scores depend on; None if none is kept."""
        if self.folder is None or self.identity is None:
            return None
        identity = as_json({**self.identity, "format": 2, "task": task, "items": checksum})
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        return self.folder / f"{task}-{digest[:16]}.json"


def folder_of_tasks(out: str | Path, sources: Iterable[str | Path]) -> Path:
    """Make the folder of finished tasks, and return its resolved path.

    Raises `InputError` if it holds other files than results of tasks, or lies inside one of the sources.
    """
    folder = result_folder(out, sources=sources)
    for path in folder.iterdir() if folder.exists() else ():
        # A run that was killed while it wrote a result may leave a hidden file with `.json` inside its name, which
        # is allowed.
        if path.is_dir() or ".json" not in path.suffixes:
            raise InputError(
                f"{folder} exists and holds other files than results of tasks; choose another folder",
                option="out",
                path=folder,
            )
    folder.mkdir(parents=True, exist_ok=True)
    return folder
