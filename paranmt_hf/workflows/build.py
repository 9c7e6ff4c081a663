"""`paranmt build`: from a bitext to a release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paranmt_hf.corpus.authorship import AuthorshipConfig
from paranmt_hf.corpus.bitext.readers import AlignedText
from paranmt_hf.corpus.jobs.added_columns import column_stages
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.shards import Stage
from paranmt_hf.corpus.jobs.stages import ScoreStage, TranslateStage
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.errors import InputError
from paranmt_hf.util.work import result_folder
from paranmt_hf.workflows.support.release_run import Built, ReleaseConfig, make_release


def build(
    bitext: AlignedText,
    out: Path,
    *,
    translator: TranslatorConfig,
    scorer: ScorerConfig,
    release: ReleaseConfig,
    engine: EngineConfig | None = None,
    add: Sequence[str] = (),
    authorship: AuthorshipConfig | None = None,
) -> Built:
    """Back-translate a bitext, score the pairs and release them (ParaNMT-50M, section 3).

    Args:
        bitext: Aligned text with the columns `source` and `reference`.
        out: Folder of the release; its name is the name of the corpus.
        translator: The translation model and its search.
        scorer: The encoder of the paraphrase score.
        release: Licence and form of the release.
        engine: Where translation and scoring run.
        add: More columns: names of `schema.ADDED`.
        authorship: How the classifier behind `human_score` learns.

    Raises:
        InputError: Bad input, or `out` was made with other settings.
    """
    out = result_folder(out)
    release.check_license()
    engine = (engine or EngineConfig()).resolved()
    if engine.workers > 1 and (translator.device or "").startswith("cuda:"):
        raise InputError(
            f"device {translator.device!r} is one GPU, and there are {engine.workers} workers with a GPU each: give "
            "--device cuda, or --workers 1"
        )
    scorer.load()  # A scorer that cannot be read must show now and not after days of translating.
    # Translators beside each other share the cores, so none may take them all.
    translate, score = TranslateStage(translator, engine.threads), ScoreStage(scorer)
    more = column_stages(add, authorship)
    stages: list[Stage] = [translate, score, *more]
    identity = {"bitext": bitext.identity}
    for stage in stages:
        identity |= stage.identity
    return make_release(
        lambda report: bitext.batches(report, rows=release.rows_per_shard),
        out,
        identity,
        stages,
        release,
        engine,
        command="build",
    )
