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
class FinishedTasks:
    """The results of one model, one file for each task; nothing is kept without a folder or for an unknown model.

    Attributes:
        folder: The folder; None to keep nothing.
        identity: What determines all results of the model, such as its weights and settings; None if that is not
            known.
    """

    folder: Path | None = None
    identity: Mapping[str, Any] | None = None

    def read(self, task: str, checksum: str) -> Row | None:
        """Find the scores of a task, whose items have this checksum."""
        path = self._path(task, checksum)
        if path is None or not path.is_file():
            return None
        return from_json(Row, read_json(path, "the result of a transfer task"), path)

    def write(self, row: Row, checksum: str) -> None:
        """Keep the scores of a task, whose items have this checksum."""
        path = self._path(row.name, checksum)
        if path is not None:
            with replacing(path) as aside:
                aside.write_bytes(as_bytes(as_json(row)))

    def _path(self, task: str, checksum: str) -> Path | None:
        """The file of a task, whose name says what determines its scores."""
        if self.folder is None or self.identity is None:
            return None
        identity = as_json({**self.identity, "format": 2, "task": task, "items": checksum})
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        return self.folder / f"{task}-{digest[:16]}.json"


def folder_of_tasks(out: str | Path, sources: Iterable[str | Path]) -> Path:
    """Resolve and make the folder of finished tasks; one with anything else, or inside a source, is rejected."""
    folder = result_folder(out, sources=sources)
    for path in folder.iterdir() if folder.exists() else ():
        # A kill may leave a hidden file of a result that was being written.
        if path.is_dir() or ".json" not in path.suffixes:
            raise InputError(
                f"{folder} exists and holds other files than results of tasks; choose another folder",
                option="out",
                path=folder,
            )
    folder.mkdir(parents=True, exist_ok=True)
    return folder
