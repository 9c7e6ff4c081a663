"""`paranmt score`: score a release again with another scorer, or give it more columns."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from paranmt_hf.corpus.authorship import AuthorshipConfig
from paranmt_hf.corpus.bitext.readers import Report
from paranmt_hf.corpus.check_stages import check_stages
from paranmt_hf.corpus.jobs.added_columns import ColumnStage, added_columns
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.shards import Stage
from paranmt_hf.corpus.jobs.stages import ScoreStage
from paranmt_hf.corpus.record import RELEASE_RECORD
from paranmt_hf.corpus.release import read_record, read_tables, release_files
from paranmt_hf.corpus.release_card import RELEASE_FILES
from paranmt_hf.corpus.release_run import Built, ReleaseConfig, holds_shards, write_rows
from paranmt_hf.corpus.schema import ADDED
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.errors import InputError
from paranmt_hf.util.records import as_json, from_json
from paranmt_hf.util.run import put_in_place, work_folder
from paranmt_hf.util.work import clear, keep_identity, locked, remove

# In the work folder, the release as it was, while the new one gets its name.
OLD, NEW = "old", "new"


def rescore(
    folder: Path,
    *,
    scorer: ScorerConfig | None = None,
    add: Sequence[str] = (),
    authorship: AuthorshipConfig | None = None,
    engine: EngineConfig | None = None,
) -> Built:
    """Score a release again, or give it columns; of the columns that are there, only those asked for change.

    The old release stays in place until the new one is complete.

    Args:
        folder: The release.
        scorer: The encoder of the paraphrase score; None keeps the scores.
        add: Columns that the release is to have: names of `schema.ADDED`. Those that it has already, made alike, stay.
        authorship: How the classifier behind `human_score` learns.
        engine: Where the work is done.
    """
    if scorer is None and not add:
        raise InputError("nothing was asked for: give a scorer, or columns to add")
    columns = ColumnStage(added_columns(add), authorship or AuthorshipConfig())
    folder = Path(folder).resolve()
    work, engine = work_folder(folder), (engine or EngineConfig()).resolved()
    if not (work / OLD).exists():
        release_files(folder)
    with locked(work, "score", worth=_is_worth):
        _finish_swap(folder)
        record = read_record(folder)
        parts = {name: value for name, value in record.settings.items() if name != "release"}
        release = from_json(ReleaseConfig, record.settings["release"], folder / RELEASE_RECORD)
        stages = _stages(parts, scorer, columns, release.language)
        check_stages(stages, release.language)
        if not stages:
            remove(work)
            return Built(folder, record, fresh=False)
        for stage in stages:
            parts = _merged(parts, stage.identity)
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
            stages,
            release,
            engine,
            name=folder.name,
            recorded=parts,
            dropped=record.dropped,
            warned=record.warnings,
            held_out=record.held_out,
        )
        _keep_others(folder, work / NEW)
        folder.rename(work / OLD)
        _finish_swap(folder)
        remove(work)
    return Built(folder, made, fresh=True)


def _stages(parts: dict[str, Any], scorer: ScorerConfig | None, columns: ColumnStage, language: str) -> list[Stage]:
    """What is to be done to a release made with these settings; what it has already is left out."""
    stages: list[Stage] = []
    if scorer is not None and parts["scorer"] != (stage := ScoreStage(scorer, language=language)).identity["scorer"]:
        stages.append(stage)
    columns = replace(columns, language=language)
    known, wanted = parts.get("columns", {}), as_json(columns.identity)["columns"]
    if names := tuple(name for name in columns.names if known.get(name) != wanted[name]):
        stages.append(replace(columns, names=names))
    return stages


def _merged(parts: dict[str, Any], identity: dict[str, Any]) -> dict[str, Any]:
    """Settings in which one part is replaced; of the added columns those that are there stay."""
    merged = {**parts, **identity}
    if "columns" in merged:
        columns = {**parts.get("columns", {}), **merged["columns"]}
        merged["columns"] = {name: columns[name] for name in ADDED if name in columns}
    return merged


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
