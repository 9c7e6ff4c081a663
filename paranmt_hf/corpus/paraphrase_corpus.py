"""`paranmt paraphrase-corpus`: pairs from text alone, by a language model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paranmt_hf.corpus.authorship import AuthorshipConfig
from paranmt_hf.corpus.bitext.readers import AlignedText
from paranmt_hf.corpus.jobs.added_columns import column_stages
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.shards import Stage
from paranmt_hf.corpus.jobs.stages import ScoreStage
from paranmt_hf.corpus.language_models.config import LanguageModelConfig
from paranmt_hf.corpus.language_models.stage import AskStage
from paranmt_hf.corpus.release_run import Built, ReleaseConfig, make_release
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.util.run import result_folder


def paraphrase_corpus(
    text: AlignedText,
    out: Path,
    *,
    paraphraser: LanguageModelConfig,
    scorer: ScorerConfig,
    release: ReleaseConfig,
    engine: EngineConfig | None = None,
    add: Sequence[str] = (),
    authorship: AuthorshipConfig | None = None,
) -> Built:
    """Have a language model paraphrase each sentence, score the pairs and release them.

    Args:
        text: Text with the column `reference`.
        out: Folder of the release; its name is the name of the corpus.
        paraphraser: The language model, and what it is asked.
        scorer: The encoder of the paraphrase score.
        release: Licence and form of the release.
        engine: Where scoring runs; the server does the rest.
        add: More columns: names of `schema.ADDED`.
        authorship: How the classifier behind `human_score` learns.
    """
    out = result_folder(out)
    release.check_license()
    # What is missing must show now and not after hours of answers.
    paraphraser.check_installed()
    paraphraser = paraphraser.answering_in(release.language)
    scorer.check_language(release.language)
    scorer.load()
    score = ScoreStage(scorer, language=release.language)
    stages: list[Stage] = [
        AskStage(paraphraser, "paraphrase"),
        score,
        *column_stages(add, authorship, release.language),
    ]
    identity = {"pairs": {**text.identity, "paraphrased": True, "made_by": "machine"}}
    for stage in stages:
        identity |= stage.identity
    return make_release(
        lambda report: text.batches(report, rows=release.rows_per_shard),
        out,
        identity,
        stages,
        release,
        engine,
        command="paraphrase-corpus",
    )
