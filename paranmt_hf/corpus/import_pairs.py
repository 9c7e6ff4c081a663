"""`paranmt import`: a release from pairs that are translated already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.shards import Stage
from paranmt_hf.corpus.jobs.stages import ScoreStage, column_stages
from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.inputs import check_names
from paranmt_hf.corpus.reading.phrases import PhraseFiles, Wanted, first_line, is_rule
from paranmt_hf.corpus.reading.plain_text import PlainText
from paranmt_hf.corpus.reading.preset_files import open_preset
from paranmt_hf.corpus.reading.presets import Preset, read_preset
from paranmt_hf.corpus.reading.readers import Reader, TableFiles, TextOptions
from paranmt_hf.corpus.reading.tables import Table
from paranmt_hf.corpus.release_run import Built, ReleaseConfig, make_release
from paranmt_hf.corpus.schema import SIDES, AddedColumn, MadeBy
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.util.run import result_folder
from paranmt_hf.util.settings import Advanced, Group


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
        out: Folder of the release; its name is the name of the corpus.
        columns: Columns of the files by their names or numbers from 1, such as
            reference=sentence1,translation=sentence2,para_score=4,origin=5. A para_score is kept unless a `scorer` is
            given.
        preset: Known dataset, which has columns, labels and licence: see docs/datasets.md.
        label: With a preset that has labels: keep paraphrases (1, the default), other pairs (0), or any.
        format: Format of the files: pairs, or phrases, which are files of PPDB and lists of words and paraphrases.
        ppdb_score: Files of PPDB: feature that is kept as the column ppdb_score, such as PPDB2.0Score.
        made_by: Who wrote the second sentences: a machine that translated, or people (default: that of the preset,
            else unknown).
        scorer: Encoder of the paraphrase score: folder, Hub id (ID@REVISION for a revision), or file of word vectors;
            the small encoder of this package if left out.
        release: Licence and form of the release.
        add: More columns.
        engine: Where scoring runs.
    """
    out, release = result_folder(out), release or ReleaseConfig()
    known = None if preset is None else read_preset(preset)
    if known is not None:
        release, made_by = with_terms(release, known), made_by or known.made_by
    if made_by not in (None, *get_args(MadeBy)):
        raise InputError(f"made_by must be one of {', '.join(get_args(MadeBy))}, was {made_by!r}", option="made_by")
    if isinstance(data, str | Path | Sequence):
        files = [Path(one).expanduser() for one in ([data] if isinstance(data, str | Path) else data)]
        if known is not None:
            if columns or format != "pairs":
                raise InputError("give either `preset`, which has columns and format, or `columns` and `format`")
            data = open_preset(known, files, label=label, score=ppdb_score, language=release.language)
        elif label and format != "phrases":
            raise InputError("`label` is for datasets whose labels are known; give their `preset`", option="label")
        elif format == "phrases":
            if columns:
                raise InputError("`columns` is for files with columns, not for phrases", option="columns")
            data = PhraseFiles(files, score=ppdb_score, label=label)
        elif ppdb_score:
            raise InputError("`ppdb_score` is for files of PPDB; give `format` phrases", option="ppdb_score")
        else:
            data = _open_pairs(files, dict(columns or {}), scored=scorer is None)
    release.check_license()
    keep = "para_score" in data.columns and scorer is None
    encoder = None if keep else NamedEncoder.of(scorer)
    stages: list[Stage] = [
        ScoreStage(encoder, language=release.language),
        *column_stages(add, release.language, encoder),
    ]
    stated = {} if made_by in (None, "unknown") else {"made_by": made_by}
    identity: dict[str, Any] = {"pairs": {**data.identity, **stated}}
    return make_release(data.batches, out, identity, stages, release, engine, command="import")


def _open_pairs(files: Sequence[Path], columns: dict[str, str], *, scored: bool) -> Reader:
    """Open files of pairs; `scored` is whether an imported paraphrase score is used."""
    first = open_table(files[0], columns.values())
    columns = columns or _columns_of(first)
    if missing := {"reference", "translation"} - columns.keys():
        raise InputError(f"`columns` must name reference and translation; {', '.join(sorted(missing))} is missing")
    check_names(columns, ["reference", "translation", "para_score", "origin"])
    if not scored:
        columns.pop("para_score", None)
    options: TextOptions = {
        "numbers": {"para_score"} & columns.keys(),
        "optional": columns.keys() & {"origin"},
    }
    return TableFiles([first, *files[1:]], columns, **options)


def _columns_of(table: Table) -> dict[str, str]:
    """Columns of pairs by their names in the schema; in a file without names, by their order."""
    path = table.path
    if isinstance(table, PlainText):
        if is_rule(first_line(path)):
            raise InputError(f"{path} has lines of PPDB and no tabs; give `format` phrases", option="format")
        raise InputError(
            f"{path} has one text on each line; expected pairs, such as TSV with a tab between the two", path=path
        )
    if not table.names:
        return {"reference": "1", "translation": "2", **({"para_score": "3"} if table.width >= 3 else {})}
    if not set(SIDES) <= set(table.names):
        first, second = (*table.texts, "NAME", "NAME")[:2]
        raise InputError(
            f"{path} has the columns {', '.join(table.names)}; say which ones are the two sides of a pair, such as "
            f"`columns` 'reference={first},translation={second}'",
            path=path,
            option="columns",
        )
    return {side: side for side in SIDES}


def with_terms(release: ReleaseConfig, preset: Preset) -> ReleaseConfig:
    """Fill in description and licence of a release from those of the dataset's authors, unless given."""
    if release.license is None and preset.license is None:
        raise InputError(
            f"{preset.title} has no stated licence ({preset.license_stated}); check whether you may release the "
            "result, and name its `license`",
            option="license",
        )
    words = f"{preset.description} Its authors say of the licence: {preset.license_stated}."
    return replace(release, description=release.description or words, license=release.license or preset.license)
