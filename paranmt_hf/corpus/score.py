"""`paranmt score`: scores a corpus again with another scorer, or adds columns to it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.shards import Stage
from paranmt_hf.corpus.jobs.stages import PROBABILITY, ColumnStage, ScoreStage
from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.release.input_checks import check_stages
from paranmt_hf.corpus.release.record import RELEASE_RECORD, ReleaseRecord
from paranmt_hf.corpus.release.release import read_record, read_tables, release_files
from paranmt_hf.corpus.release.release_card import RELEASE_FILES
from paranmt_hf.corpus.release.release_run import (
    RESCORED,
    Built,
    ReleaseConfig,
    ReleaseRun,
    holds_shards,
)
from paranmt_hf.corpus.release.schema import ADDED, AddedColumn
from paranmt_hf.corpus.scoring.alignment import ALIGNMENT
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import ASSETS, LANGUAGES_OF
from paranmt_hf.util.files import resolved
from paranmt_hf.util.markers import Group, Share
from paranmt_hf.util.records import as_json, from_json
from paranmt_hf.util.run import finish_replacing, replace_result
from paranmt_hf.util.work import remove_leftover


def rescore(
    corpus: str | Path,
    *,
    add: Sequence[AddedColumn] = (),
    scorer: str | Path | None = None,
    prior: Share | None = None,
    engine: Annotated[EngineConfig | None, Group()] = None,
) -> Built:
    """Score a corpus again with another scorer, or give it more columns; other columns stay as they are.

    The old corpus stays in place until the new one is complete.

    Args:
        corpus: Folder of the corpus.
        add: Columns that the corpus gets, unless it has them.
        scorer: Encoder of the paraphrase score: folder, Hub id (ID@REVISION for a revision), or file of word vectors.
            If left out, para_score stays as it is if `add` or `prior` is given; otherwise the encoder of this package
            for the language of the corpus makes it.
        prior: Share of paraphrases among the pairs, for para_probability; if left out, that of the column if the
            corpus has it, else that of the scorer's calibration data.
        engine: Where scoring runs.
    """
    folder = resolved(corpus)
    finish_replacing(folder, "score")
    record, files = read_record(folder), release_files(folder)
    if ALIGNMENT in add and record.selection is not None and ALIGNMENT not in record.columns:
        raise InputError(
            f"{ALIGNMENT} compares neighbouring lines, and {folder} is a selection, which lacks some; add it to the "
            "whole corpus, and select again",
            option="add",
        )
    parts = {name: value for name, value in record.settings.items() if name != "release"}
    settings = from_json(ReleaseConfig, record.settings["release"], folder / RELEASE_RECORD)
    keeps_score = (add or prior is not None) and scorer is None
    encoder = None if keeps_score else NamedEncoder.of(scorer, settings.language)
    stages = _missing_stages(parts, encoder, ColumnStage(tuple(add), settings.language, prior=prior))
    check_stages(stages, settings.language)
    if not stages:
        remove_leftover(folder, "score")
        return Built(folder, record, fresh=False)
    for stage in stages:
        # Columns that were added before are kept.
        columns = {**parts.get("columns", {}), **stage.identity.get("columns", {})}
        parts = {**parts, **stage.identity}
        if columns:
            parts["columns"] = {name: columns[name] for name in ADDED if name in columns}
    identity = {**parts, RESCORED: record.configs["default"].files}

    def batches(report: Report) -> Iterator[pa.Table]:
        for table in read_tables(files):
            report.read += table.num_rows
            report.kept += table.num_rows
            yield table

    def make(work: Path, new: Path) -> ReleaseRecord:
        if ReleaseRecord.read(folder) != record:
            raise InputError(f"{folder} was scored by another process in the meantime; run the same command again")
        written = run.write(work, new)
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder)
            # Files that are no part of the corpus, such as notes, are kept.
            if not (path.is_dir() or RELEASE_FILES.fullmatch(name.as_posix()) or (new / name).exists()):
                (new / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, new / name, follow_symlinks=False)
        return written

    run = ReleaseRun(
        folder.name, batches, identity, stages, settings, (engine or EngineConfig()).resolved(), before=record
    )
    return replace_result(folder, identity, ReleaseRecord, make, result=Built, command="score", holds=holds_shards)


def _missing_stages(parts: dict[str, Any], scorer: NamedEncoder | None, columns: ColumnStage) -> list[Stage]:
    """Return the stages that must still run for a corpus to have the wanted scorer and columns.

    Args:
        parts: Settings by which the corpus was made, from its record.
        scorer: Encoder of the wanted `para_score`; None to keep the score.
        columns: The wanted optional columns. `para_probability` is made again too if the score or the prior changes.
    """
    stages: list[Stage] = []
    if scorer is not None:
        scoring = ScoreStage(scorer, language=columns.language)
        if parts["scorer"] != scoring.identity["scorer"]:
            stages.append(scoring)
    known = parts.get("columns", {})
    if columns.prior is not None and PROBABILITY not in {*columns.names, *known}:
        raise InputError(f"`prior` is for {PROBABILITY}; `add` it", option="prior")
    # A probability from the old score would not belong to the new one.
    if PROBABILITY in columns.names or (PROBABILITY in known and (stages or columns.prior is not None)):
        columns = replace(
            columns,
            names=(*columns.names, PROBABILITY),
            scorer=scorer or _carried(parts["scorer"], columns.language),
            prior=known.get(PROBABILITY, {}).get("prior") if columns.prior is None else columns.prior,
        )
    wanted = as_json(columns.identity)["columns"]
    if names := tuple(name for name in columns.names if known.get(name) != wanted[name]):
        stages.append(replace(columns, names=names))
    return stages


def _carried(identity: Mapping[str, Any], language: str) -> NamedEncoder | None:
    """Find the encoder of this package that gave a corpus its scores.

    Args:
        identity: Identity of the scorer in the record of the corpus.
        language: Language of the corpus (ISO 639-1).

    Returns:
        The encoder, or None if the scorer is not one that the package carries.
    """
    names = [name for name, languages in LANGUAGES_OF.items() if language in languages]
    stages = [ScoreStage(NamedEncoder(str(ASSETS / name)), language=language) for name in names]
    return next((stage.config for stage in stages if stage.identity["scorer"] == identity), None)
