"""`paranmt import`: makes a corpus from pairs that are translated already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.shards import Stage
from paranmt_hf.corpus.jobs.stages import ScoreStage, column_stages
from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.labels import LABEL, Wanted
from paranmt_hf.corpus.reading.pair_columns import WantedColumns, check_names, pair_columns
from paranmt_hf.corpus.reading.phrases import PhraseFiles, first_line, is_rule
from paranmt_hf.corpus.reading.plain_text import PlainText
from paranmt_hf.corpus.reading.preset_files import open_preset
from paranmt_hf.corpus.reading.presets import Preset, read_preset
from paranmt_hf.corpus.reading.readers import Reader, TableFiles, TextOptions
from paranmt_hf.corpus.release.release_run import Built, ReleaseConfig, make_release
from paranmt_hf.corpus.release.schema import SIDES, AddedColumn, MadeBy
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import listed
from paranmt_hf.util.markers import Advanced, Group
from paranmt_hf.util.run import result_folder


def import_pairs(
    data: Reader | str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    preset: str | None = None,
    label: Annotated[Wanted | None, Advanced] = None,
    format: Literal["pairs", "phrases"] = "pairs",
    ppdb_score: Annotated[str | None, Advanced] = None,
    made_by: MadeBy | None = None,
    scorer: str | Path | None = None,
    release: ReleaseConfig | None = None,
    add: Sequence[AddedColumn] = (),
    engine: Annotated[EngineConfig | None, Group()] = None,
) -> Built:
    """Score pairs that are translated already, and release them.

    Args:
        data: TSV, CSV, JSON lines, JSON or Parquet files (docs/formats.md), or files of PPDB.
        out: Folder of the corpus; its name becomes the name of the corpus.
        columns: Columns of the files by their names or numbers from 1, such as
            reference=sentence1,translation=sentence2,label=is_duplicate,para_score=4,origin=5. A para_score is kept
            unless a `scorer` is given; a column label is always read.
        preset: Name of a known dataset, whose columns, labels and licence are used: see docs/datasets.md.
        label: Which pairs are kept if the files have labels: paraphrases (1, the default), other pairs (0), or any.
        format: What the files hold: pairs, or phrases, which are files of PPDB and lists of words and paraphrases.
        ppdb_score: For files of PPDB: the feature that is kept as the column ppdb_score, such as PPDB2.0Score.
        made_by: Who wrote the second sentences: a machine that translated, or people (default: that of the preset,
            else unknown).
        scorer: Encoder of the paraphrase score: folder, Hub id (ID@REVISION for a revision), or file of word vectors;
            that of this package for the language if left out.
        release: Licence and form of the corpus.
        add: Columns that the corpus gets besides those that every corpus has.
        engine: Where scoring runs.
    """
    files = [] if isinstance(data, Reader) else [Path(name).expanduser() for name in listed(data)]
    sources = files if scorer is None else [*files, Path(scorer)]
    out, release = result_folder(out, sources=sources), release or ReleaseConfig()
    known = None if preset is None else read_preset(preset)
    if known is not None:
        release, made_by = with_terms(release, known), made_by or known.made_by
    if made_by not in (None, *get_args(MadeBy)):
        raise InputError(f"made_by must be one of {', '.join(get_args(MadeBy))}, was {made_by!r}", option="made_by")
    if not isinstance(data, Reader):
        if known is not None:
            if columns or format != "pairs":
                raise InputError("give either `preset`, which has columns and format, or `columns` and `format`")
            data = open_preset(known, files, label=label, score=ppdb_score, language=release.language)
        elif format == "phrases":
            if columns:
                raise InputError("`columns` is for files with columns, not for phrases", option="columns")
            data = PhraseFiles(files, score=ppdb_score, label=label)
        elif ppdb_score:
            raise InputError("`ppdb_score` is for files of PPDB; give `format` phrases", option="ppdb_score")
        else:
            data = _open_pairs(files, dict(columns or {}), label, scored=scorer is None)
    release.check_license()
    keep = "para_score" in data.columns and scorer is None
    encoder = None if keep else NamedEncoder.of(scorer, release.language)
    stages: list[Stage] = [
        ScoreStage(encoder, language=release.language),
        *column_stages(add, release.language, encoder),
    ]
    stated = {} if made_by in (None, "unknown") else {"made_by": made_by}
    identity: dict[str, Any] = {"pairs": {**data.identity, **stated}}
    return make_release(data.batches, out, identity, stages, release, engine, command="import")


def _open_pairs(files: Sequence[Path], columns: dict[str, str], label: Wanted | None, *, scored: bool) -> Reader:
    """Open files of pairs.

    Args:
        files: Files with columns, which must have the same columns at the same positions.
        columns: Name or number of the column of each side, of `label`, `para_score` and `origin`; empty to find them
            by their names.
        label: Which labelled pairs are kept; None for paraphrases, and for all pairs of files without labels.
        scored: Whether an imported paraphrase score is used; otherwise it is not read.
    """
    check_names(columns, [*SIDES, LABEL, "para_score", "origin"])
    tables = [open_table(file, columns.values() or SIDES) for file in files]
    for table in tables:
        if isinstance(table, PlainText):
            is_ppdb = is_rule(first_line(table.path))
            hint = "lines of PPDB and no tabs; give `format` phrases" if is_ppdb else "one text on each line"
            raise InputError(
                f"{table.path} has {hint}; expected pairs, such as TSV with a tab between the two",
                option="format" if is_ppdb else None,
                path=table.path,
            )
    wanted = WantedColumns(columns, [name for name in columns if name not in (*SIDES, LABEL)])
    found = pair_columns(tables[0], wanted)
    for table in tables[1:]:
        for name, theirs in pair_columns(table, wanted).items():
            if name not in found or table.position(found[name]) != table.position(theirs):
                raise InputError(
                    f"{table.path} has {name} in the column {theirs}, unlike {tables[0].path}; import them one by one",
                    option="columns",
                    path=table.path,
                )
    if not columns and not tables[0].names and tables[0].width >= 3:
        if "3" in tables[0].texts:
            raise InputError(
                f"{files[0]} has {tables[0].width} columns without names, and no score in the third; name those "
                "of the pairs, such as `columns` reference=1,translation=2, or by their names if line 1 has names",
                option="columns",
                path=files[0],
            )
        found["para_score"] = "3"
    if label is not None and LABEL not in found:
        raise InputError(
            f"{files[0]} has no labels; name their column, such as `columns` label=NAME, or leave `label` out",
            option="label",
            path=files[0],
        )
    if not scored:
        found.pop("para_score", None)
    options: TextOptions = {
        "numbers": {"para_score"} & found.keys(),
        "optional": found.keys() & {"origin"},
        "wanted": label or "1",
    }
    return TableFiles(tables, found, **options)


def with_terms(release: ReleaseConfig, preset: Preset) -> ReleaseConfig:
    """Return the settings of a corpus with description and licence filled in from the preset, unless they are given.

    Raises:
        InputError: If neither the settings nor the preset have a licence.
    """
    if release.license is None and preset.license is None:
        raise InputError(
            f"{preset.title} has no stated licence ({preset.license_stated}); check whether you may release the "
            "result, and name its `license`",
            option="license",
        )
    words = f"{preset.description} Its authors say of the licence: {preset.license_stated}."
    return replace(release, description=release.description or words, license=release.license or preset.license)
