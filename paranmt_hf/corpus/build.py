"""`paranmt build`: from a bitext to a release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paranmt_hf.corpus.authorship import AuthorshipConfig
from paranmt_hf.corpus.bitext.readers import AlignedText
from paranmt_hf.corpus.jobs.added_columns import column_stages
from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.shards import Stage
from paranmt_hf.corpus.jobs.stages import PivotStage, ScoreStage, TranslateStage
from paranmt_hf.corpus.language_models.config import LanguageModelConfig, is_language_model
from paranmt_hf.corpus.language_models.stage import AskStage
from paranmt_hf.corpus.release_run import Built, ReleaseConfig, make_release
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.encoders.scorer import ScorerConfig
from paranmt_hf.errors import InputError
from paranmt_hf.util.run import result_folder
from paranmt_hf.util.settings import is_given

NO_PIVOT = (
    "a pivot takes two translation models; `paranmt paraphrase-corpus --paraphraser openai:MODEL` makes pairs of text "
    "with a language model"
)


def build(
    bitext: AlignedText,
    out: Path,
    *,
    translator: TranslatorConfig | LanguageModelConfig,
    scorer: ScorerConfig,
    release: ReleaseConfig,
    engine: EngineConfig | None = None,
    add: Sequence[str] = (),
    authorship: AuthorshipConfig | None = None,
    pivot: TranslatorConfig | None = None,
) -> Built:
    """Back-translate a bitext, score the pairs and release them (ParaNMT-50M, section 3).

    Args:
        bitext: Aligned text with the columns `source` and `reference`, or with a pivot `reference` alone.
        out: Folder of the release; its name is the name of the corpus.
        translator: The translation model and its search, or a language model behind a server.
        scorer: The encoder of the paraphrase score.
        release: Licence and form of the release.
        engine: Where translation and scoring run.
        add: More columns: names of `schema.ADDED`.
        authorship: How the classifier behind `human_score` learns.
        pivot: Translates text without a bitext into the language from which `translator` translates back.
    """
    out = result_folder(out)
    release.check_license()
    engine = (engine or EngineConfig()).resolved()
    if pivot is not None and pivot.hypotheses > 1:
        raise InputError("the pivot gives one translation of each sentence; several hypotheses are the translator's")
    if pivot is not None and isinstance(translator, LanguageModelConfig):
        raise InputError(NO_PIVOT)
    draws = isinstance(translator, TranslatorConfig) and translator.sample
    if pivot is None and draws and is_given(translator, "beam"):
        raise InputError("--beam does nothing with --sample, which draws hypotheses; leave it out")
    if isinstance(translator, LanguageModelConfig):
        # What is missing must show now.
        translator.check_installed()
        translator = translator.answering_in(release.language)
    elif engine.workers > 1 and (translator.device or "").startswith("cuda:"):
        raise InputError(
            f"device {translator.device!r} is one GPU, and there are {engine.workers} workers with a GPU each: give "
            "--device cuda, or --workers 1"
        )
    scorer.check_language(release.language)
    scorer.load()  # A scorer that cannot be read must show now and not after days of translating.
    # Translators beside each other share the cores, so none may take them all.
    translate = (
        AskStage(translator)
        if isinstance(translator, LanguageModelConfig)
        else TranslateStage(translator, engine.threads)
    )
    first = [] if pivot is None else [PivotStage(TranslateStage(pivot, engine.threads))]
    score = ScoreStage(scorer, language=release.language)
    stages: list[Stage] = [*first, translate, score, *column_stages(add, authorship, release.language)]
    identity = {"bitext" if pivot is None else "text": bitext.identity}
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


def pivot_of(name: str, translator: TranslatorConfig | LanguageModelConfig) -> TranslatorConfig:
    """Settings of the model that translates into the pivot language, by those of the model that translates back.

    Args:
        name: The model.
        translator: The way back; where it names both languages they change places.
    """
    if isinstance(translator, LanguageModelConfig) or is_language_model(name):
        raise InputError(NO_PIVOT)
    both = translator.source_language and translator.target_language
    return TranslatorConfig(
        name,
        backend=translator.backend,
        beam=translator.beam,
        batch_tokens=translator.batch_tokens,
        max_source_tokens=translator.max_source_tokens,
        max_target_tokens=translator.max_target_tokens,
        device=translator.device,
        dtype=translator.dtype,
        source_language=translator.target_language if both else None,
        target_language=translator.source_language if both else None,
    )
