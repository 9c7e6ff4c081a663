"""The columns of a row: the one place that names, types and describes them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

SCHEMA_VERSION = "1.0.0"


@dataclass(frozen=True)
class Column:
    """One column of the corpus.

    Attributes:
        name: Name in the Parquet file.
        type: Arrow type.
        meaning: One sentence for the card: unit, range, and when it is null.
        nullable: Whether a row may lack the value.
        optional: Whether a release may lack the whole column.
    """

    name: str
    type: pa.DataType
    meaning: str
    nullable: bool = False
    optional: bool = False


COLUMNS = (
    Column("id", pa.int64(), "line number in the bitext, from 0; stable across runs"),
    Column("reference", pa.string(), "English side of the bitext, as written, white space normalised"),
    Column("translation", pa.string(), "best hypothesis of the translation model for the foreign side"),
    Column("source", pa.string(), "the foreign sentence", optional=True),
    Column(
        "translation_score",
        pa.float32(),
        "log-probability (natural logarithm, at most 0) of the hypothesis divided by its number of target tokens, "
        "the end token included; null when the translations were imported",
        nullable=True,
    ),
    Column("para_score", pa.float32(), "paraphrase score: cosine of the two sentence embeddings, from -1 to 1"),
    Column(
        "trigram_overlap",
        pa.float32(),
        "shared word trigrams (as multisets) over the smaller side's count, from 0 to 1; null when a side has fewer "
        "than three tokens",
        nullable=True,
    ),
    Column("reference_length", pa.int32(), "number of word tokens of the reference"),
    Column("translation_length", pa.int32(), "number of word tokens of the translation"),
    Column("origin", pa.string(), "which corpus or domain the line came from", nullable=True, optional=True),
)


def arrow_schema(*, source: bool = False, origin: bool = False) -> pa.Schema:
    """Build the Arrow schema of a release.

    Args:
        source: Keep the foreign sentence.
        origin: Keep the origin of the line.
    """
    chosen = {"source": source, "origin": origin}
    return pa.schema(
        [
            pa.field(column.name, column.type, nullable=column.nullable)
            for column in COLUMNS
            if chosen.get(column.name, True)
        ]
    )
