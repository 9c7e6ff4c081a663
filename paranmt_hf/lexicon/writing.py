"""A lexicon as Parquet: a row for each pair of words in each order, sorted by word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.lexicon.merging import PairCounts
from paranmt_hf.lexicon.pmi import cross_sentence_pmi, within_sentence_pmi
from paranmt_hf.lexicon.record import TABLE
from paranmt_hf.lexicon.word_sets import Words
from paranmt_hf.util.files import replacing

# A row group is what is read to find the paraphrases of a word.
GROUP_ROWS = 250_000
SCHEMA = pa.schema(
    [
        pa.field("word", pa.string(), nullable=False),
        pa.field("paraphrase", pa.string(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("count_in_references", pa.int64(), nullable=False),
        pa.field("count_in_translations", pa.int64(), nullable=False),
        pa.field("pmi", pa.float32(), nullable=False),
        pa.field("adjusted_pmi", pa.float32(), nullable=False),
    ]
)

# Columns in which few values repeat; of the others a dictionary takes time and room.
REPEATING = [field.name for field in SCHEMA if not pa.types.is_floating(field.type)]


def word_pair_table(counts: PairCounts, words: Words, vocabulary: pa.Array) -> pa.Table:
    """Turn counts into rows of a lexicon.

    Args:
        counts: Counts of word pairs.
        words: The words, and how many sentences have each.
        vocabulary: The words as an Arrow column.
    """
    across = cross_sentence_pmi(counts, words)
    columns = [
        vocabulary.take(pa.array(counts.words)),
        vocabulary.take(pa.array(counts.others)),
        *map(pa.array, (counts.across, counts.references, counts.translations)),
        pa.array(across.astype("float32")),
        pa.array((across - within_sentence_pmi(counts, words)).astype("float32")),
    ]
    return pa.table(columns, schema=SCHEMA)


def write_word_pairs(
    folder: Path, ranges: Iterable[PairCounts], words: Words, min_count: int, report: Callable[[int], None]
) -> int:
    """Write the pairs of words that were counted across sentences.

    Args:
        folder: Where to write.
        ranges: Counts of word pairs, sorted by word.
        words: The words.
        min_count: Pairs that were counted less often are left out.
        report: Is told how many rows were written.

    Returns:
        Number of rows.
    """
    vocabulary, rows = pa.array(words.words, pa.string()), 0
    with (
        replacing(folder / TABLE) as aside,
        pq.ParquetWriter(aside, SCHEMA, use_dictionary=REPEATING, compression="zstd", store_schema=False) as writer,
    ):
        chosen = (counts.take(counts.across >= min_count) for counts in ranges)
        for table in _groups(word_pair_table(kept, words, vocabulary) for kept in chosen):
            writer.write_table(table, row_group_size=GROUP_ROWS)
            rows += table.num_rows
            report(rows)
    return rows


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Cut rows into row groups, which so do not depend on how many runs the counts were in."""
    left = SCHEMA.empty_table()
    for table in tables:
        left = pa.concat_tables([left, table])
        while left.num_rows >= GROUP_ROWS:
            yield left.slice(0, GROUP_ROWS).combine_chunks()
            left = left.slice(GROUP_ROWS)
    if left.num_rows:
        yield left.combine_chunks()
