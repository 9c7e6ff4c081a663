"""`paranmt import`: from pairs that are translated already to a release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from paranmt_hf.corpus.authorship import AuthorshipConfig
from paranmt_hf.corpus.bitext.presets import Preset
from paranmt_hf.corpus.bitext.readers import AlignedText
from paranmt_hf.corpus.jobs.added_columns import column_stages
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.shards import Stage
from paranmt_hf.corpus.jobs.stages import ScoreStage
from paranmt_hf.corpus.release_run import Built, ReleaseConfig, make_release
from paranmt_hf.corpus.schema import MadeBy
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.errors import InputError
from paranmt_hf.util.run import result_folder


def import_pairs(
    pairs: AlignedText,
    out: Path,
    *,
    scorer: ScorerConfig | None,
    release: ReleaseConfig,
    engine: EngineConfig | None = None,
    made_by: MadeBy = "unknown",
    add: Sequence[str] = (),
    authorship: AuthorshipConfig | None = None,
) -> Built:
    """Score pairs that are already translated, and release them.

    Args:
        pairs: Aligned text with the columns `reference` and `translation`, and `para_score` if there is no scorer.
        out: Folder of the release.
        scorer: The encoder of the paraphrase score; None keeps the score that came with the pairs.
        release: Licence and form of the release.
        engine: Where scoring runs.
        made_by: Who wrote the second sentences: a machine that translated, or people; the card says so.
        add: More columns: names of `schema.ADDED`.
        authorship: How the classifier behind `human_score` learns.
    """
    out = result_folder(out)
    release.check_license()
    if made_by not in get_args(MadeBy):
        raise InputError(f"made_by must be one of {', '.join(get_args(MadeBy))}, was {made_by!r}")
    stages: list[Stage] = [
        ScoreStage(scorer, language=release.language),
        *column_stages(add, authorship, release.language),
    ]
    stated = {} if made_by == "unknown" else {"made_by": made_by}
    identity: dict[str, Any] = {"pairs": {**pairs.identity, **stated}}
    for stage in stages:
        identity |= stage.identity
    return make_release(
        lambda report: pairs.batches(report, rows=release.rows_per_shard),
        out,
        identity,
        stages,
        release,
        engine,
        command="import",
    )


def stated(preset: Preset, license: str | None = None) -> dict[str, str]:
    """Say what the authors of a data set say of it, for the fields of `ReleaseConfig` that have these names.

    Args:
        preset: The data set.
        license: Identifier of the licence, if it is not to be what they state.
    """
    if license is None and preset.license is None:
        raise InputError(
            f"{preset.title} has no stated licence ({preset.license_stated}); look whether you may release what you "
            "make of it, and name the licence with --license"
        )
    words = f"{preset.description} Its authors say of the licence: {preset.license_stated}."
    if license is not None:
        return {"description": words}
    licence = {name: getattr(preset, name) for name in ("license", "license_name", "license_link")}
    return {"description": words, **{name: value for name, value in licence.items() if value}}
