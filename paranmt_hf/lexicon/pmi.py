"""Pointwise mutual information of words, across the sentences of a pair and within a sentence, and its table.

ParaNMT-50M (arXiv:1711.05732), appendix A.1. Logarithms are natural. All counts are of sentences: a word counts once
in a sentence.

- Across: each sentence of a pair is taken as the sentence once, with the other one as its paraphrase, so n pairs are
  2 n events. #(u, v) counts those with u in the sentence and v in the paraphrase. It is symmetric. #(u) counts
  sentences of either side with u: PMI = log(#(u, v) 2n / (#(u) #(v))).
- Within: the same in the n references, and in the n translations, with v in the same sentence.
- Adjusted: PMI across minus the mean of the PMI within references and that within translations.

Two words that are never in one reference (or translation) have no PMI there. It counts as 0, the PMI of independent
words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.lexicon.counting import PairCounts
from paranmt_hf.lexicon.word_sets import LexiconWords
from paranmt_hf.util.files import replacing

TABLE = "lexicon.parquet"


def pmi(together: np.ndarray, counts: PairCounts, events_of: np.ndarray, events: int) -> np.ndarray:
    """Pointwise mutual information: log(together * events / (#(word) #(other))) [entry], 0 if `together` is 0.

    `together` are the events with both words [entry], `events_of` those with a word [word], `events` all of them.
    """
    # A sum of logarithms, because a product of counts would leave the range in which integers are exact.
    logarithms = np.log(np.maximum(events_of, 1)) - np.log(events) / 2
    values = np.log(np.maximum(together, 1)) - logarithms[counts.words] - logarithms[counts.others]
    values[together == 0] = 0
    return values


def cross_sentence_pmi(counts: PairCounts, words: LexiconWords) -> np.ndarray:
    """PMI across the two sentences of a pair [entry]."""
    return pmi(counts.across, counts, words.references + words.translations, 2 * words.pairs)


def within_sentence_pmi(counts: PairCounts, words: LexiconWords) -> np.ndarray:
    """Mean of the ordinary PMI within references and that within translations [entry]."""
    references = pmi(counts.references, counts, words.references, words.pairs)
    return (references + pmi(counts.translations, counts, words.translations, words.pairs)) / 2


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

# Columns with repeating values; for the others a dictionary takes time and space.
REPEATING = [field.name for field in SCHEMA if not pa.types.is_floating(field.type)]


def word_pair_table(counts: PairCounts, words: LexiconWords, vocabulary: pa.Array) -> pa.Table:
    """Convert counts to rows of a lexicon; `vocabulary` is the column of its words."""
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
    folder: Path, ranges: Iterable[PairCounts], words: LexiconWords, min_count: int, report: Callable[[int], None]
) -> int:
    """Write the pairs of words that were counted at least `min_count` times across sentences.

    `ranges` are counts sorted by word; `report` is called with the number of rows that are written, which is returned.
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
    """Split rows into row groups, independently of the number of runs."""
    left = SCHEMA.empty_table()
    for table in tables:
        left = pa.concat_tables([left, table])
        while left.num_rows >= GROUP_ROWS:
            yield left.slice(0, GROUP_ROWS).combine_chunks()
            left = left.slice(GROUP_ROWS)
    if left.num_rows:
        yield left.combine_chunks()
