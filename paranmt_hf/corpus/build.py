"""`paranmt build`: makes a corpus from a bitext by translation, or from text alone by a pivot or a language model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from paranmt_hf.corpus.jobs.engine import EngineConfig
from paranmt_hf.corpus.jobs.shards import Stage
from paranmt_hf.corpus.jobs.stages import PivotStage, ScoreStage, TranslateStage, column_stages
from paranmt_hf.corpus.language_models.config import LanguageModelConfig
from paranmt_hf.corpus.language_models.stage import AskStage
from paranmt_hf.corpus.reading.bitext import TextInput
from paranmt_hf.corpus.reading.readers import Reader, Report
from paranmt_hf.corpus.release.release_run import Built, ReleaseConfig, Way, make_release, translator_of
from paranmt_hf.corpus.release.schema import AddedColumn
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.corpus.translation.unusual_lines import with_letters
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.hub.licenses import check_terms
from paranmt_hf.util.markers import Count, Group
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
) -> Built:
    """Translate a bitext, score the pairs and release them (ParaNMT-50M, section 3).

    Text without a foreign side becomes pairs in one of two ways: a pivot translates it into another language, from
    which the translator translates it back, or a language model paraphrases it. Lines without a letter, such as `...`,
    are dropped and counted, because models invent sentences for them.

    Args:
        text: The bitext, or text with the column `reference` alone.
        out: Folder of the corpus; its name becomes the name of the corpus.
        translator: Translation model: folder, Hub id, `captions-cs-en` (the small one of the package, for captions),
            or YAML file with its settings (docs/corpus.md).
        hypotheses: Number of translations of each sentence. Each of them is a row, with its rank.
        pivot: For text without a foreign side: translation model into another language, from which `translator`
            translates back.
        language_model: Language model behind an OpenAI-compatible server in place of `translator`: its name, or a YAML
            file with its settings (docs/language-models.md). Its key is read from OPENAI_API_KEY.
        scorer: Encoder of the paraphrase score: folder, Hub id (ID@REVISION for a revision), or file of word vectors;
            that of this package for the language if left out.
        release: Licence and form of the corpus.
        add: Columns that the corpus gets besides those that every corpus has.
        engine: Where translation and scoring run.
    """
    release = release or ReleaseConfig()
    encoder = NamedEncoder.of(scorer, release.language)
    opened = text.open(release.language) if isinstance(text, TextInput) else text
    is_bitext = "source" in opened.columns
    if (translator is None) == (language_model is None):
        raise InputError("give a `translator` or a `language_model`")
    if (pivot is not None) != (translator is not None and not is_bitext):
        raise InputError(
            "text without a foreign side needs a `pivot` beside the `translator`, and a bitext takes no `pivot`"
        )
    models: dict[Way, TranslatorConfig] = {}
    if translator is not None:
        back = settings_of(TranslatorConfig, translator, "a translation model")
        models["translator"] = replace(back, hypotheses=hypotheses or back.hypotheses)
    if pivot is not None:
        models["pivot"] = pivot_of(pivot, models["translator"]) if isinstance(pivot, str) else pivot
    data = list(text.data or ()) if isinstance(text, TextInput) else []
    names = [model.name for model in models.values()]
    out = result_folder(out, sources=[*data, *names, *([scorer] if scorer is not None else [])])

    def batches(report: Report) -> Iterator[pa.RecordBatch]:
        return with_letters(opened.batches(report), report)

    stages: list[Stage] = []
    if language_model is not None:
        asked = settings_of(LanguageModelConfig, language_model, "a language model").answering_in(release.language)
        stages.append(AskStage(asked, "translate" if is_bitext else "paraphrase"))
    release.check_license()
    for name in names:
        check_terms(name, release.license)
    engine = (engine or EngineConfig()).resolved()
    encoder.check_language(release.language)
    # A missing package and a scorer that cannot be read are reported before the translation, which takes long.
    encoder.load()
    if models:
        stages += _translations(models, out, engine)
    stages += [ScoreStage(encoder, language=release.language), *column_stages(add, release.language, encoder)]
    identity: dict[str, Any] = {"bitext" if is_bitext else "text": opened.identity}
    if language_model is not None and not is_bitext:
        identity = {"pairs": {**opened.identity, "paraphrased": True, "made_by": "machine"}}
    return make_release(batches, out, identity, stages, release, engine, command="build")


def _translations(models: Mapping[Way, TranslatorConfig], out: Path, engine: EngineConfig) -> list[Stage]:
    """Return the stages that translate, with the device and dtype that earlier work for this corpus used."""
    # This import loads torch, which the help of the command does not need.
    from paranmt_hf.corpus.translation.engines import follow_record

    if engine.workers > 1 and (models["translator"].device or "").startswith("cuda:"):
        raise InputError(
            f"device {models['translator'].device!r} is one GPU, and there are {engine.workers} workers with a GPU "
            "each: give the device cuda, or 1 worker"
        )
    followed = {way: follow_record(model, translator_of(out, way)) for way, model in models.items()}
    stages: list[Stage] = [TranslateStage(followed["translator"], engine.threads)]
    if "pivot" in followed:
        stages.insert(0, PivotStage(TranslateStage(followed["pivot"], engine.threads)))
    return stages


def pivot_of(name: str, translator: TranslatorConfig) -> TranslatorConfig:
    """Return the settings of the translation model `name`, from the language of the corpus into the pivot language.

    The search settings are those of `translator`, the way back, but with one hypothesis; the two languages are
    swapped.
    """
    shared = ("backend", "beam", "batch_tokens", "max_source_tokens", "max_target_tokens", "device", "dtype")
    settings = {field: getattr(translator, field) for field in shared}
    if translator.source_language and translator.target_language:
        settings["source_language"] = translator.target_language
        settings["target_language"] = translator.source_language
    return TranslatorConfig(name, **settings)
