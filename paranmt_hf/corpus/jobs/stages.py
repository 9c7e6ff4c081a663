"""The stages of a build, each of which changes a shard: pivot, translate, score, and add columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from paranmt_hf.corpus.jobs.shards import ReportRows, Work
from paranmt_hf.corpus.release.schema import ADDED, COLUMNS, SIDES
from paranmt_hf.corpus.scoring import alignment, repetitions, sentence_ends
from paranmt_hf.corpus.scoring.alignment import ALIGNMENT
from paranmt_hf.corpus.scoring.repetitions import REPEATED_WORDS, repeated_words
from paranmt_hf.corpus.scoring.scores import score_pairs
from paranmt_hf.corpus.scoring.sentence_ends import SENTENCE_MISMATCH, sentence_mismatch
from paranmt_hf.corpus.translation.repeats import KnownTranslations
from paranmt_hf.corpus.translation.translator import Translator, TranslatorConfig, translate_table
from paranmt_hf.encoders.calibration import Calibration
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.errors import InputError
from paranmt_hf.meaning.differences import MEANING_DEFINITION, MEANING_MISMATCH, MeaningReader
from paranmt_hf.meaning.mismatch_columns import DEFINITION, MISMATCHES, MismatchReader
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.word_rules import word_tokenizer_for
from paranmt_hf.util.records import describe_differences

PROBABILITY = "para_probability"
# Number of sentences that are translated together, sorted by length. With more, batches are of more similar lengths;
# with fewer, progress is shown more often.
WINDOW = 2000


@dataclass(frozen=True)
class RepeatedSentences:
    """Translated sentences that occur several times in the input of a stage: the files, and their checksum."""

    paths: tuple[Path, ...]
    checksum: str  # A stage with other files of the same name is another stage


@dataclass(frozen=True)
class TranslateStage:
    """Translates shards: rows with `source` and `reference` get `translation` and `translation_score`."""

    config: TranslatorConfig  # The translation model and its search
    threads: int | None = None  # CPU threads of one worker; they do not change the result
    repeated: RepeatedSentences | None = None  # Sentences that are not translated again
    label: str = "translate"
    unit: str = "pairs"

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What determines the translations. The model is hashed once; workers receive the result with the stage."""
        # The engines import torch, which takes seconds.
        from paranmt_hf.corpus.translation.engines import translator_identity

        return {"translator": translator_identity(self.config)}

    def load_translator(self) -> Translator:
        """Load the translation model."""
        from paranmt_hf.corpus.translation.engines import load_translator

        translator = load_translator(self.config, self.threads)
        # If this is a worker, the identity came with the stage, and is that of the manifest.
        if differences := describe_differences(self.identity["translator"], translator.identity):
            raise InputError(
                f"this worker would not translate like the manifest says ({differences}): "
                "name `device`, `dtype` and `backend` instead of leaving them to each machine"
            )
        return translator

    def load(self) -> Work:
        translator = self.load_translator()
        if self.repeated is not None:
            known = pa.concat_tables([pq.read_table(path) for path in self.repeated.paths])
            translator = KnownTranslations(translator, known)
        return by_windows(WINDOW, lambda window: translate_table(window, translator))


@dataclass(frozen=True)
class PivotStage:
    """Translates shards with `reference` alone into another language, as `source`.

    `TranslateStage` then translates `source` back, so a corpus can be built without a bitext.
    """

    translate: TranslateStage  # Translates into the pivot language, with one hypothesis for each sentence
    label: str = "pivot"
    unit: str = "sentences"

    @property
    def identity(self) -> dict[str, Any]:
        return {"pivot": self.translate.identity["translator"]}

    def load(self) -> Work:
        inner = self.translate.load()

        def work(table: pa.Table, report: ReportRows) -> tuple[pa.Table, dict[str, int]]:
            translated, dropped = inner(table.append_column("source", table["reference"]), report)
            names = ["translation" if name == "source" else name for name in (*table.column_names, "source")]
            pivoted = translated.select(names).rename_columns([*table.column_names, "source"])
            return pivoted, {f"{reason} on the way to the pivot language": count for reason, count in dropped.items()}

        return work


@dataclass(frozen=True)
class ScoreStage:
    """Scores shards of pairs, which then have every required column of the schema."""

    config: NamedEncoder | None  # The scorer; None to keep the existing `para_score`
    label: str = "score"
    unit: str = "pairs"
    language: str = ENGLISH  # Language of the pairs (ISO 639-1), which determines how text is cut into words

    @property
    def identity(self) -> dict[str, Any]:
        scorer = self.config.identity if self.config else {"name": "as imported"}
        return {"scorer": {**scorer, **stated_language(self.language)}}

    def load(self) -> Work:
        encoder = self.config.load() if self.config else None
        tokenizer = word_tokenizer_for(self.language)
        # Whether the scorer cuts words as the columns do. Encoders of this package always cut by the English rules.
        shared = self.language == ENGLISH or bool(self.config and self.config.vectors)

        def scored(window: pa.Table) -> tuple[pa.Table, dict[str, int]]:
            columns = score_pairs(*sides_of(window), encoder, tokenizer, shared=shared)
            if encoder is None:
                columns["para_score"] = check_imported(window)
            return with_columns(window, columns), {}

        return by_windows(10_000, scored)


def check_imported(table: pa.Table) -> pa.ChunkedArray:
    """Return the imported paraphrase scores, clipped to [-1, 1] to remove rounding errors, float32.

    Raises:
        InputError: If a score is beyond -1.001 or 1.001, and so no cosine.
    """
    scores = table["para_score"]
    wrong = pc.greater(pc.abs(scores), 1.001)
    if pc.any(wrong).as_py():
        row = pc.index(wrong, True).as_py()
        raise InputError(
            f"para_score of row {table['id'][row].as_py()} (from 0) is {scores[row].as_py():g}; expected a cosine "
            "from -1 to 1: name the column of the score with `columns`, or leave it out and give a `scorer`"
        )
    return pc.max_element_wise(pc.min_element_wise(scores, pa.scalar(1, pa.float32())), pa.scalar(-1, pa.float32()))


def by_windows(rows: int, change: Callable[[pa.Table], tuple[pa.Table, Mapping[str, int]]]) -> Work:
    """Turn a function that changes at most `rows` rows into the work of a stage on a whole shard.

    Args:
        rows: Number of rows that the function gets at once.
        change: Takes a table, and returns the new table and the number of rows that it dropped, by reason.
    """

    def work(table: pa.Table, report: ReportRows) -> tuple[pa.Table, dict[str, int]]:
        parts, dropped = [], Counter[str]()
        # An empty shard is changed too, so that its result has the right columns.
        for start in range(0, max(1, table.num_rows), rows):
            part, reasons = change(table.slice(start, rows))
            parts.append(part)
            dropped.update(reasons)
            report(min(start + rows, table.num_rows))
        return pa.concat_tables(parts), dict(dropped)

    return work


def with_columns(table: pa.Table, columns: dict[str, pa.Array]) -> pa.Table:
    """Return a table with some columns added or replaced, in the order and types of the schema; others are dropped."""
    available = {name: table[name] for name in table.column_names} | columns
    return pa.table({one.name: pc.cast(available[one.name], one.type) for one in COLUMNS if one.name in available})


@dataclass(frozen=True)
class ColumnStage:
    """Adds optional columns to shards of pairs.

    The column `alignment` depends on all rows, so it is made when the corpus is written (`ReleaseRun`).
    """

    names: tuple[str, ...]  # The columns to add, of `schema.ADDED` and in its order
    language: str = ENGLISH  # Language of the pairs (ISO 639-1), which determines how text is cut into words
    scorer: NamedEncoder | None = None  # Scorer of the corpus, whose calibration gives `para_probability`
    prior: float | None = None  # Share of paraphrases among the pairs; None for that of the calibration data
    label: str = "columns"
    unit: str = "pairs"

    def __post_init__(self) -> None:
        if unknown := [name for name in self.names if name not in ADDED]:
            raise InputError(f"the columns that can be added are {', '.join(ADDED)}, not {unknown[0]!r}", option="add")
        object.__setattr__(self, "names", tuple(name for name in ADDED if name in self.names))

    @property
    def identity(self) -> dict[str, Any]:
        made: dict[str, Any] = dict.fromkeys(MISMATCHES, {"definition": DEFINITION})
        made[MEANING_MISMATCH] = {"definition": [DEFINITION, MEANING_DEFINITION]}
        made[SENTENCE_MISMATCH] = {"definition": sentence_ends.DEFINITION}
        made[REPEATED_WORDS] = {"definition": repetitions.DEFINITION, **stated_language(self.language)}
        made[ALIGNMENT] = {"definition": alignment.DEFINITION}
        if PROBABILITY in self.names:
            made[PROBABILITY] = calibration_of(self.scorer).stated(self.prior)
        return {"columns": {name: made[name] for name in self.names}}

    def load(self) -> Work:
        mismatches = [name for name in self.names if name in MISMATCHES]
        reader = MismatchReader(mismatches)
        meanings = MeaningReader() if MEANING_MISMATCH in self.names else None
        calibration = calibration_of(self.scorer) if PROBABILITY in self.names else None
        tokenizer = word_tokenizer_for(self.language)

        def added(window: pa.Table) -> tuple[pa.Table, dict[str, int]]:
            sides = sides_of(window)
            columns = reader.columns(*sides) if mismatches else {}
            if meanings is not None:
                columns[MEANING_MISMATCH] = meanings.column(*sides)
            if SENTENCE_MISMATCH in self.names:
                lengths = [window[f"{side}_length"].to_numpy() for side in SIDES]
                columns[SENTENCE_MISMATCH] = sentence_mismatch(*sides, *lengths)
            if REPEATED_WORDS in self.names:
                columns[REPEATED_WORDS] = repeated_words(*tokenizer.tables(*sides))
            if calibration is not None:
                scores = window["para_score"].to_numpy()
                columns[PROBABILITY] = pa.array(calibration.probability(scores, prior=self.prior), pa.float32())
            return with_columns(window, columns), {}

        return by_windows(10_000, added)


def column_stages(names: Sequence[str], language: str, scorer: NamedEncoder | None) -> list[ColumnStage]:
    """Return the stage that adds the columns `names` to pairs of a language (ISO 639-1); empty if there are none."""
    return [ColumnStage(tuple(names), language, scorer)] if names else []


def calibration_of(scorer: NamedEncoder | None) -> Calibration:
    """Return the calibration of the scorer of a corpus, which turns its scores into probabilities.

    Raises:
        InputError: If there is no scorer, or it is not calibrated.
    """
    if scorer is None:
        raise InputError(f"{PROBABILITY} needs the encoder of para_score; give it as `scorer`", option="scorer")
    found = None if scorer.vectors else Calibration.of(scorer.model)
    if found is None:
        raise InputError(
            f"the scorer {scorer.name!r} is not calibrated, which {PROBABILITY} needs; `paranmt calibrate` makes a "
            "calibration from rated pairs"
        )
    return found


def stated_language(language: str) -> dict[str, str]:
    """Return the entry `language` for an identity; empty for English, whose identities do not name it."""
    return {} if language == ENGLISH else {"language": language}


def sides_of(table: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Return the columns `reference` and `translation` of a table, each as one array."""
    return table[SIDES[0]].combine_chunks(), table[SIDES[1]].combine_chunks()
