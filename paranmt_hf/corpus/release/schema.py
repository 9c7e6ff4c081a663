"""The columns of a corpus; names, types and meanings are stated only here."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from paranmt_hf.util.markers import Range

SCHEMA_VERSION = "1.0.0"
# Columns that can be added to a finished corpus.
AddedColumn = Literal[
    "number_mismatch",
    "negation_mismatch",
    "name_mismatch",
    "address_mismatch",
    "meaning_mismatch",
    "sentence_mismatch",
    "repeated_words",
    "alignment",
    "para_probability",
]
# Who wrote the second sentences of imported pairs.
MadeBy = Literal["machine", "people", "unknown"]
SIDES = ("reference", "translation")  # The columns of the two sentences of a pair
MOST_RANKS = 256  # More than the hypotheses of any sentence, so that id * MOST_RANKS + rank is unique
COSINES, SHARES, ANY = Range(at_least=-1, at_most=1), Range(at_least=0, at_most=1), Range()


@dataclass(frozen=True)
class Column:
    """A column of corpora."""

    name: str  # Name in the Parquet file
    type: pa.DataType  # Arrow type
    meaning: str  # One sentence for the card: unit, range, and when it is null
    nullable: bool = False  # Whether a row may lack the value
    optional: bool = False  # Whether a corpus may lack the whole column
    command: str = "paranmt build"  # The command that makes the column, for messages; CORPUS stands for the folder
    range: Range = ANY  # Which values a number can have
    counted: bool = False  # Whether the record counts the rows with a value other than 0


def _mismatch(name: str, meaning: str) -> Column:
    """Return a column of mismatches that `paranmt score --add` adds; the record counts its rows other than 0."""
    command = f"paranmt score CORPUS --add {name}"
    return Column(name, pa.int32(), meaning, optional=True, command=command, counted=True)


COLUMNS = (
    Column("id", pa.int64(), "line number in the bitext, from 0; stable across runs"),
    Column(
        "rank",
        pa.int32(),
        "number of the hypothesis among those of the same id, from 1, the best; rows of one id have one reference",
        optional=True,
        command="paranmt build --hypotheses N",
    ),
    Column("reference", pa.string(), "English side of the bitext, as written, white space normalised"),
    Column("translation", pa.string(), "best hypothesis of the translation model for the foreign side"),
    Column("source", pa.string(), "the foreign sentence", optional=True, command="paranmt build --keep-source"),
    Column(
        "translation_score",
        pa.float32(),
        "log-probability (natural logarithm, at most 0) of the hypothesis divided by its number of target tokens, "
        "the end token included",
        nullable=True,
        optional=True,
        range=Range(at_most=0),
    ),
    Column(
        "para_score",
        pa.float32(),
        "paraphrase score: cosine of the two sentence embeddings, from -1 to 1",
        range=COSINES,
    ),
    Column(
        "trigram_overlap",
        pa.float32(),
        "shared word trigrams (as multisets) over the smaller side's count, from 0 to 1; null when a side has fewer "
        "than three tokens",
        nullable=True,
        range=SHARES,
    ),
    Column("reference_length", pa.int32(), "number of word tokens of the reference"),
    Column("translation_length", pa.int32(), "number of word tokens of the translation"),
    Column(
        "origin",
        pa.string(),
        "which corpus or domain the line came from",
        nullable=True,
        optional=True,
        command="paranmt import --columns",
    ),
    Column(
        "document",
        pa.int64(),
        "line number, from 0, of the document that the sentence is from; `id` counts the sentences of all documents",
        optional=True,
        command="paranmt build --split",
    ),
    Column(
        "ppdb_score",
        pa.float32(),
        "a score that PPDB gives the pair",
        nullable=True,
        optional=True,
        command="paranmt import --format phrases --ppdb-score",
    ),
    Column(
        "label",
        pa.int32(),
        "1 where the pair was labelled a paraphrase, 0 where it was labelled none, null where there is no label",
        nullable=True,
        optional=True,
        command="paranmt import --preset",
    ),
    _mismatch(
        "number_mismatch",
        "how many numbers, percentages, times, months and days of the week of one sentence the other lacks, both "
        "ways; digits and words are equal; units, fractions and multiples count where both sentences have some",
    ),
    _mismatch(
        "negation_mismatch",
        "how many words such as not, never, without or n't one sentence has where the other has no negation at all",
    ),
    _mismatch(
        "name_mismatch",
        "how many names (words with a capital letter that do not usually begin a sentence) of one sentence the other "
        "lacks, both ways; words with the same first four letters are equal, acronyms equal what they stand for",
    ),
    _mismatch(
        "address_mismatch",
        "how many addresses of web pages and of e-mail of one sentence the other lacks, both ways; case, "
        "`http://` and `www.` aside",
    ),
    _mismatch(
        "meaning_mismatch",
        "how many kinds of differences there are that contradict each other: numbers, units, names, negations, "
        "opposites, the order of words, and words such as only, all, at least and must; 0 if the rules find none",
    ),
    _mismatch(
        "sentence_mismatch",
        "how many sentences one side has that the other lacks, by their ends, if it also has at least 1.3 times the "
        "words; else 0",
    ),
    _mismatch(
        "repeated_words",
        "how many words of the translation are in a run of up to 8 words that repeats the run right before it, less "
        "those of the reference; at least 0",
    ),
    Column(
        "alignment",
        pa.int32(),
        "0 if the sides belong together; k if they are shifted, so that the reference of line n fits the translation "
        "of line n + k; null in a section where no shift of up to 10 lines fits",
        nullable=True,
        optional=True,
        command="paranmt score CORPUS --add alignment",
        counted=True,
    ),
    Column(
        "para_probability",
        pa.float32(),
        "probability that the two sentences are paraphrases, from 0 to 1: para_score by the calibration of the "
        "scorer, for the share of paraphrases that the record states as `prior`",
        range=SHARES,
        optional=True,
        command="paranmt score CORPUS --add para_probability",
    ),
)


RANGES = {column.name: column.range for column in COLUMNS}
COUNTED = frozenset(column.name for column in COLUMNS if column.counted)
OPTIONAL = frozenset(column.name for column in COLUMNS if column.optional)
ADDED: tuple[str, ...] = get_args(AddedColumn)
# Meanings of columns in a corpus of imported pairs, where they differ from `COLUMNS`.
IMPORTED = {
    "id": "number of the pair in the input, from 0; stable across runs",
    "reference": "first sentence of the pair, as written, white space normalised",
    "reference_length": "number of word tokens of the first sentence",
    "translation_length": "number of word tokens of the second sentence",
}
# Meanings of columns by kind of corpus (`release_card.pair_kind`), where they differ from `COLUMNS`.
_ANSWER_SCORE = (
    "mean log-probability (natural logarithm, at most 0) of the tokens of the language model's answer; null where the "
    "server gives none"
)
MEANINGS = {
    "mined": {
        "id": "rank of the pair among those that were mined, best first, from 0",
        "reference": "the sentence of the pair that comes first in the input, as written, white space normalised",
        "translation": "the sentence that was found to mean about the same",
        "origin": "`mined`: the two sentences did not come as a pair",
    },
    "answered": {
        "translation": "a language model's translation of the foreign side",
        "translation_score": _ANSWER_SCORE,
    },
    "paraphrased": {
        "id": "number of the sentence in the input, from 0; stable across runs",
        "reference": "the sentence of the input, as written, white space normalised",
        "translation": "a language model's paraphrase of it",
        "translation_score": _ANSWER_SCORE,
    },
    "pivoted": {
        "id": "line number in the text, from 0; stable across runs",
        "reference": "the sentence, as written, white space normalised",
        "translation": "best hypothesis of the second translation model for what the first one made of the sentence",
        "source": "the sentence in the language between, as the first translation model gave it",
    },
}
SECOND: dict[MadeBy, str] = {
    "machine": "second sentence of the pair, a machine translation that was imported",
    "people": "second sentence of the pair, written by people",
    "unknown": "second sentence of the pair",
}


def arrow_schema(optional: Collection[str] = ()) -> pa.Schema:
    """Return the Arrow schema of a corpus, with those of the optional columns that are named in `optional`."""
    return pa.schema(
        [
            pa.field(column.name, column.type, nullable=column.nullable)
            for column in COLUMNS
            if not column.optional or column.name in optional
        ]
    )


def key_columns(names: Collection[str]) -> list[str]:
    """Return the columns of `names` that identify a row: `id`, and `rank` if sentences have several hypotheses."""
    return ["id", *(["rank"] if "rank" in names else [])]


def row_numbers(table: pa.Table | pa.RecordBatch) -> np.ndarray:
    """Return a number for each row [row], int64, that depends on its `id` and `rank` alone and ascends with them.

    Without a column `rank` it is the `id`.
    """
    ids: np.ndarray = table["id"].to_numpy()
    if "rank" not in table.schema.names:
        return ids
    return ids.astype(np.int64) * MOST_RANKS + table["rank"].to_numpy()


def describe_missing(where: object, missing: Collection[str]) -> str:
    """Describe which columns a corpus or file lacks, and which command adds them.

    The result is the beginning of a sentence: ``corpus lacks the column name_mismatch; `paranmt score CORPUS --add
    name_mismatch` makes it``.
    """
    names = sorted(missing)
    one = len(names) == 1
    text = f"{where} lacks the column{'' if one else 's'} {', '.join(names)}"
    if added := [name for name in ADDED if name in missing]:
        text += (
            f"; `paranmt score CORPUS --add {' '.join(added)}` makes {'it' if added == names else ', '.join(added)}"
        )
    return text
