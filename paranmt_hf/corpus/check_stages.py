"""What is refused or warned of around the stages of a release: scorers and columns that do not fit the text."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.added_columns import ColumnStage
from paranmt_hf.corpus.jobs.shards import Manifest, Stage
from paranmt_hf.corpus.jobs.stages import ScoreStage
from paranmt_hf.corpus.meaning.columns import MISMATCHES
from paranmt_hf.corpus.release import read_tables
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import usual_score
from paranmt_hf.text.word_rules import ENGLISH, word_tokenizer_for

# The embedded translator loses 0.1 from its test captions to other captions, and 0.7 to news.
MISFIT = 0.4


def check_scorer(manifest: Manifest, stages: Sequence[Stage]) -> None:
    """Refuse a scorer that knows nothing of the text, before hours of translation."""
    for stage in stages:
        if isinstance(stage, ScoreStage) and isinstance(stage.config, NamedEncoder):
            first = pq.read_table(manifest.paths()[0], columns=["reference"])
            stage.config.check_knows(first["reference"].to_pylist(), word_tokenizer_for(stage.language))


def check_stages(stages: Sequence[Stage], language: str) -> None:
    """Refuse stages that are for another language."""
    for stage in stages:
        if isinstance(stage, ScoreStage) and isinstance(stage.config, NamedEncoder):
            stage.config.check_language(language)
        if isinstance(stage, ColumnStage) and language != ENGLISH:
            if rules := [name for name in stage.names if name in MISMATCHES]:
                raise InputError(f"{rules[0]} is made by rules for English, not for language {language}; leave it out")


def misfit(manifest: Manifest, translator: TranslatorConfig) -> str | None:
    """Return a warning if the scores are far below those that the translator has on its own kind of text."""
    expected = usual_score(translator.name)
    # Draws are less probable than what a search finds, on any text.
    if expected is None or translator.sample:
        return None
    columns = ["translation_score", *(["rank"] if translator.hypotheses > 1 else [])]
    table = pa.concat_tables(read_tables(manifest.paths(), columns))
    if translator.hypotheses > 1:
        table = table.filter(pc.equal(table["rank"], 1))
    scores = table["translation_score"].to_numpy()
    mean = float(scores.mean()) if len(scores) else -math.inf
    if mean >= expected - MISFIT:
        return None
    return (
        f"the mean translation score is {mean:.2f}, far below the {expected:.2f} that {translator.name!r} reaches on "
        "the text it was trained for: these translations are of no use; choose another --translator"
    )
