"""`paranmt build`: a corpus from a bitext, by translation, or from text alone, by a pivot or a language model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.shards import Stage
from paranmt_hf.corpus.jobs.stages import PivotStage, ScoreStage, TranslateStage, column_stages
from paranmt_hf.corpus.language_models.config import LanguageModelConfig, ModelTask
from paranmt_hf.corpus.language_models.stage import AskStage
from paranmt_hf.corpus.reading.bitext import TextInput
from paranmt_hf.corpus.reading.readers import Reader, Report
from paranmt_hf.corpus.release.release_run import Built, ReleaseConfig, make_release, translator_of
from paranmt_hf.corpus.release.schema import AddedColumn
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.corpus.translation.unusual_lines import with_letters
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.hub.licenses import check_terms
from paranmt_hf.util.markers import Advanced, Count, Group
from paranmt_hf.util.run import result_folder
from paranmt_hf.util.yaml_files import settings_of


def build(
    text: TextInput | Reader,
    out: str | Path,
    *,
    translator: str | Path | TranslatorConfig | None = None,
    hypotheses: Count | None = None,
    pivot: str | TranslatorConfig | None = None,
    language_model: str | Path | LanguageModelConfig | None = None,
    scorer: str | Path | None = None,
    release: ReleaseConfig | None = None,
    add: Sequence[AddedColumn] = (),
    engine: Annotated[EngineConfig | None, Group()] = None,
    keep_without_letters: Annotated[bool, Advanced] = False,
) -> Built:
    """Translate a bitext, score the pairs and release them (ParaNMT-50M, section 3).

    Text without a foreign side becomes pairs by a pivot, which translates it into another language, from which the
    translator translates back, or by a language model, which paraphrases it.

    Args:
        text: The bitext, or text with the column `reference` alone.
        out: Folder of the corpus; its name becomes the name of the corpus.
        translator: Translation model: folder, Hub id, `captions-cs-en` (the small one of the package, for captions),
            or YAML file with its settings (docs/corpus.md).
        hypotheses: Number of translations of a sentence, each a row with its rank.
        pivot: Of text alone: translation model into another language, from which `translator` translates back.
        language_model: Language model behind an OpenAI-compatible server in place of `translator`: its name, or a YAML
            file with its settings (docs/language-models.md). Its key is read from OPENAI_API_KEY.
        scorer: Encoder of the paraphrase score: folder, Hub id (ID@REVISION for a revision), or file of word vectors;
            the small encoder of this package if left out.
        release: Licence and form of the corpus.
        add: More columns.
        engine: Where translation and scoring run.
        keep_without_letters: Translate lines without a letter too, such as `...`, of which models make sentences of
            their own; else they are dropped and counted.
    """
    release, encoder = release or ReleaseConfig(), NamedEncoder.of(scorer)
    opened = text.open(release.language) if isinstance(text, TextInput) else text
    is_bitext = "source" in opened.columns
    if (translator is None) == (language_model is None):
        raise InputError("give a `translator` or a `language_model`")
    needs_pivot = translator is not None and not is_bitext
    if (pivot is not None) != needs_pivot:
        raise InputError(
            "text without a foreign side needs a `pivot` beside the `translator`, and a bitext takes no `pivot`"
        )

    def batches(report: Report) -> Iterator[pa.RecordBatch]:
        read = opened.batches(report)
        return read if keep_without_letters else with_letters(read, report)

    asked, translating, through = None, None, None
    if language_model is not None:
        asked = settings_of(LanguageModelConfig, language_model, "a language model").answering_in(release.language)
    if translator is not None:
        translating = settings_of(TranslatorConfig, translator, "a translation model")
        translating = replace(translating, hypotheses=hypotheses or translating.hypotheses)
        through = pivot_of(pivot, translating) if isinstance(pivot, str) else pivot
    sources = list(text.data or ()) if isinstance(text, TextInput) else []
    sources += [model.name for model in (translating, through) if model is not None]
    if scorer is not None:
        sources.append(str(scorer))
    out = result_folder(out, sources=sources)
    task: ModelTask = "translate" if is_bitext else "paraphrase"
    release.check_license()
    for model in (translating, through):
        if model is not None:
            check_terms(model.name, release.license)
    engine = (engine or EngineConfig()).resolved()
    encoder.check_language(release.language)
    # A missing package and a scorer that cannot be read are reported before the translation, which takes long.
    encoder.load()
    stages: list[Stage] = []
    if translating is not None:
        # Imports torch, which the help of the command does not need.
        from paranmt_hf.corpus.translation.engines import follow_record

        _check_device(translating, engine)
        if through is not None:
            through = follow_record(through, translator_of(out, "pivot"))
            stages.append(PivotStage(TranslateStage(through, engine.threads)))
        translating = follow_record(translating, translator_of(out, "translator"))
        stages.append(TranslateStage(translating, engine.threads))
    elif asked is not None:
        stages.append(AskStage(asked, task))
    stages += [ScoreStage(encoder, language=release.language), *column_stages(add, release.language, encoder)]
    read = {**opened.identity, **({"without_letters": "kept"} if keep_without_letters else {})}
    identity: dict[str, Any] = {"bitext" if is_bitext else "text": read}
    if asked is not None and not is_bitext:
        identity = {"pairs": {**read, "paraphrased": True, "made_by": "machine"}}
    return make_release(batches, out, identity, stages, release, engine, command="build")


def _check_device(translator: TranslatorConfig, engine: EngineConfig) -> None:
    if engine.workers > 1 and (translator.device or "").startswith("cuda:"):
        raise InputError(
            f"device {translator.device!r} is one GPU, and there are {engine.workers} workers with a GPU each: give "
            "the device cuda, or 1 worker"
        )


def pivot_of(name: str, translator: TranslatorConfig) -> TranslatorConfig:
    """Settings of the model into the pivot language: those of the way back, one hypothesis, languages swapped."""
    both = translator.source_language and translator.target_language
    shared = ("backend", "beam", "batch_tokens", "max_source_tokens", "max_target_tokens", "device", "dtype")
    settings = TranslatorConfig(name, **{field: getattr(translator, field) for field in shared})
    if not both:
        return settings
    return replace(settings, source_language=translator.target_language, target_language=translator.source_language)
