"""Lines for which translation models are not made: without a letter, or in capitals.

From `...` a model makes a sentence of its own. The translator of this package reaches a mean paraphrase score of 0.04
on 150 captions in capitals, and of 0.78 on the same captions in sentence case or as they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.text.normal_form import normal_form

NO_LETTER = "without a letter"  # Reason to drop a row, in reports


def with_letters(batches: Iterable[pa.RecordBatch], report: Report) -> Iterator[pa.RecordBatch]:
    """Drop rows whose `source` or `reference` has no letter, and count them in the report."""
    for batch in batches:
        sides = [name for name in ("source", "reference") if name in batch.schema.names]
        # Text is normalised first, because the name of an entity such as `&nbsp;` is no text.
        found = [pc.match_substring_regex(normal_form(batch[name]), r"\pL") for name in sides]
        kept = batch.filter(found[0] if len(found) == 1 else pc.and_(*found))
        if lost := batch.num_rows - kept.num_rows:
            report.dropped[NO_LETTER] = report.dropped.get(NO_LETTER, 0) + lost
            report.kept -= lost
        yield kept


def are_in_capitals(lines: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Mark the lines [line] in capitals: they have at least five capitals, and no lower case or caseless letters."""
    lines = normal_form(lines)
    # A line with fewer capitals may be an acronym, such as NATO.
    capitals = pc.greater_equal(pc.count_substring_regex(lines, r"\p{Lu}"), 5)
    return pc.and_not(capitals, pc.match_substring_regex(lines, r"[\p{Ll}\p{Lo}]"))


def in_sentence_case(lines: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return lines [line] with those in capitals changed to lower case after the first character; others stay."""
    return pc.if_else(are_in_capitals(lines), pc.utf8_capitalize(lines), lines)
