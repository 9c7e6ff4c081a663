"""Checks of the input of a corpus: columns without sentences, a scorer that does not fit, a useless translator."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.shards import Manifest, Stage
from paranmt_hf.corpus.jobs.stages import ColumnStage, ScoreStage, TranslateStage
from paranmt_hf.corpus.release.release import read_tables
from paranmt_hf.corpus.translation.translator import TranslatorConfig
from paranmt_hf.corpus.translation.unusual_lines import are_in_capitals
from paranmt_hf.errors import InputError
from paranmt_hf.hub.repository import usual_score
from paranmt_hf.meaning.differences import MEANING_MISMATCH
from paranmt_hf.meaning.mismatch_columns import MISMATCHES
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.word_rules import word_tokenizer_for
from paranmt_hf.util.parquet import read_schema
from paranmt_hf.util.wording import brief, counted

logger = logging.getLogger(__name__)


def check_stages(stages: Sequence[Stage], language: str) -> None:
    """Reject a scorer that is for another language, and columns by English rules in another language (ISO 639-1)."""
    for stage in stages:
        if isinstance(stage, ScoreStage) and stage.config is not None:
            stage.config.check_language(language)
        names = stage.names if isinstance(stage, ColumnStage) else ()
        rules = [name for name in names if name in (*MISMATCHES, MEANING_MISMATCH)]
        if rules and language != ENGLISH:
            raise InputError(f"{rules[0]} is made by rules for English, not for language {language}; leave it out")


def check_scorers(manifest: Manifest, stages: Sequence[Stage]) -> None:
    """Reject a scorer that knows none of the words, before hours of translation.

    Args:
        manifest: The input, of which the first shard is looked at.
        stages: The stages, one of which may have a scorer.
    """
    for stage in stages:
        if isinstance(stage, ScoreStage) and stage.config is not None:
            first = pq.read_table(manifest.paths()[0], columns=["reference"])
            stage.config.check_knows(first["reference"].to_pylist(), word_tokenizer_for(stage.language))


def check_sentences(manifest: Manifest) -> list[str]:
    """Check that the columns of text in the first shard hold sentences rather than, for example, labels.

    Returns:
        Warnings about columns that do not, if the shard has fewer than 1,000 rows.

    Raises:
        InputError: If there are such columns, and the shard has at least 1,000 rows.
    """
    warnings = []
    table = pq.read_table(manifest.paths()[0])
    for name in ("source", "reference", "translation"):
        reason = unlike_sentences(table[name]) if name in table.column_names else ""
        if not reason:
            continue
        warning = f"the column {name} does not seem to hold sentences: {reason}; name another column"
        if table.num_rows >= 1000:
            raise InputError(warning, option="columns")
        logger.warning(f"warning: {warning}")
        warnings.append(warning)
    return warnings


def unlike_sentences(column: pa.ChunkedArray) -> str:
    """Return why texts [row] do not seem to be sentences; "" if they may be, or there are fewer than 20.

    Texts are labels or numbers if at least 90 % of them are equal, or have no letter, or if there are at most 20
    different texts, each a single word. In any 1,000 consecutive rows of real pairs, sorted ones too, at most 25 % are
    equal and 24 % have no letter.
    """
    rows = len(column)
    if rows < 20:
        return ""
    values, counts = column.value_counts().flatten()
    most = pc.max(counts)
    if most.as_py() >= 0.9 * rows:
        return f"{most.as_py():,} of {rows:,} are {brief(values[pc.index(counts, most).as_py()].as_py())}"
    letters = pc.sum(pc.match_substring_regex(column, r"\pL")).as_py()
    if rows - letters >= 0.9 * rows:
        return f"{rows - letters:,} of {rows:,} have no letter"
    if len(values) <= 20 and not pc.any(pc.match_substring(values, " ")).as_py():
        return f"{rows:,} rows hold {counted(len(values), 'different word')}"
    return ""


def count_capitals(manifest: Manifest, stages: Sequence[Stage]) -> int:
    """Count the lines in capitals that are translated in sentence case; 0 if nothing is translated."""
    if not any(isinstance(stage, TranslateStage) for stage in stages):
        return 0
    names = read_schema(manifest.paths()[0]).names
    side = "source" if "source" in names else "reference"
    return sum(pc.sum(are_in_capitals(table[side])).as_py() or 0 for table in read_tables(manifest.paths(), [side]))


def misfit(manifest: Manifest, translator: TranslatorConfig) -> str | None:
    """Check that the mean translation score is not far below the usual one of the translator.

    Args:
        manifest: Translated shards.
        translator: The translator.

    Returns:
        A warning if it is; None if it is not, or if the usual score is not known.
    """
    expected = usual_score(translator.name)
    # Sampled hypotheses are less probable than those of a search on any text, so they say nothing.
    if expected is None or translator.sample or not manifest.rows:
        return None
    ranked = ["rank"] if translator.hypotheses > 1 else []
    table = pa.concat_tables(read_tables(manifest.paths(), ["translation_score", *ranked]))
    if ranked:
        table = table.filter(pc.equal(table["rank"], 1))
    mean = pc.mean(table["translation_score"]).as_py()
    # The translator of this package scores 0.1 lower on other captions than on its test captions, on news 0.7 lower.
    if mean >= expected - 0.4:
        return None
    return (
        f"the mean translation score is {mean:.2f}, far below the {expected:.2f} that {translator.name!r} reaches on "
        "the text it was trained for: these translations are of no use; choose another `translator`"
    )
