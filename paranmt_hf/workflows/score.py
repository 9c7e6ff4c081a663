"""`paranmt score`: score a release again with another scorer."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from paranmt_hf.corpus.bitext.readers import Report
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.stages import ScoreStage
from paranmt_hf.corpus.release import read_record, read_tables, release_files
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.util.work import as_json, clear, keep_identity, locked, put_in_place, remove, work_folder
from paranmt_hf.workflows.support.release_card import RELEASE_FILES
from paranmt_hf.workflows.support.release_run import Built, ReleaseConfig, holds_shards, write_rows

# In the work folder, the release as it was, while the new one gets its name.
OLD, NEW = "old", "new"


def rescore(folder: Path, *, scorer: ScorerConfig, engine: EngineConfig | None = None) -> Built:
    """Score a release again with another scorer; of the rows only the column `para_score` changes.

    The old release stays in place until the new one is complete.

    Raises:
        InputError: The folder is not a release.
    """
    folder = Path(folder).resolve()
    work, engine = work_folder(folder), (engine or EngineConfig()).resolved()
    if not (work / OLD).exists():
        release_files(folder)
    with locked(work, "score", worth=_is_worth):
        _finish_swap(folder)
        record = read_record(folder)
        parts = {name: value for name, value in record.settings.items() if name != "release"}
        if parts["scorer"] == scorer.identity:
            remove(work)
            return Built(folder, record, fresh=False)
        parts["scorer"] = scorer.identity
        identity = as_json({**parts, "rescored": record.configs["default"].files})
        keep_identity(work, identity, worth=_is_worth, doing="scoring")
        files = release_files(folder)

        def batches(report: Report) -> Iterator[pa.Table]:
            for table in read_tables(files):
                report.read += table.num_rows
                report.kept += table.num_rows
                yield table

        made = write_rows(
            batches,
            work,
            work / NEW,
            identity,
            [ScoreStage(scorer)],
            ReleaseConfig(**record.settings["release"]),
            engine,
            name=folder.name,
            recorded=parts,
            dropped=record.dropped,
            warned=record.warnings,
        )
        _keep_others(folder, work / NEW)
        folder.rename(work / OLD)
        _finish_swap(folder)
        remove(work)
    return Built(folder, made, fresh=True)


def _keep_others(folder: Path, new: Path) -> None:
    """Copy what is no part of the release, such as notes or the options that made it, into the new one."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_dir() or RELEASE_FILES.fullmatch(name.as_posix()) or (new / name).exists():
            continue
        (new / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, new / name, follow_symlinks=False)


def _is_worth(work: Path) -> bool:
    return holds_shards(work) or (work / OLD).exists()


def _finish_swap(folder: Path) -> None:
    """Give the release that was scored again its name; also after a kill in the middle of that."""
    work = work_folder(folder)
    if (work / OLD).exists():
        if not folder.exists():
            put_in_place(work / NEW, folder)
        # While the old release is there, a kill is known to have come after the swap.
        clear(work, last=OLD)
