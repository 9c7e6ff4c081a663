"""Whether the first line of TSV or CSV has the names of its columns, or is a row.

The rule, in this order:

1. Columns that the user names, and that are in line 1, show that it has names.
2. A field of line 1 that is empty (the first aside), a number, or ends a sentence shows a row; so do two equal fields,
   unless they are what columns are called.
3. A column with a word in line 1 and numbers alone below shows names.
4. Names such as `sentence1` and `sentence2`, of words that data sets call their columns, numbered or lettered.
5. Where the rows below are sentences: such words alone (`source`, `target`), or such a numbering of other words.
6. Line 1 has one word in each of its fields, and none of the rows below, at least 20, has; in CSV, which mostly has
   names, one row is enough.

Everything else is a row: the first pair of a list of words must not get lost.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple

from paranmt_hf.errors import InputError

logger = logging.getLogger(__name__)

# What columns of texts and what belongs to them are called; languages too, by name and by code.
NAME_WORDS = frozenset(
    """
    answer anchor caption column content context de deu document dst duplicate en eng english entailment entailed
    es example expression fr french german headline hypothesis id idx index input is is_duplicate judgement judgment
    label language lang line mt negative number original origin output pair para paraphrase paraphrased para_score
    passage phrase positive pred prediction premise question quality query ref reference response rewrite score scores
    sent sentence sentences set side sim similarity source spanish split src str string summary tag target text texts
    tgt title trans translated translation trg utterance word words
    """.split()
)
# Letters of Thai, Lao, Burmese, Khmer, Japanese and Chinese.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def has_names(first: Sequence[str], below: Sequence[Sequence[str]], named: Collection[str], format: str) -> bool:
    """Decide whether the fields of line 1 are names.

    Args:
        first: Fields of line 1, without white space around them.
        below: Fields of some lines that follow.
        named: Columns that the user names; case does not matter.
        format: TSV or CSV.
    """
    fields = {field.lower() for field in first}
    if named and all(name.lower() in fields and not name.isdecimal() for name in named):
        return True
    numbered = _numbers_below(below, len(first))
    filled = [field for field in first if field]
    if filled == [str(number) for number in range(len(filled))]:
        # As pandas numbers columns without names.
        return len(filled) > 1 and not any(number for number, field in zip(numbered, first, strict=True) if field)
    if not filled or "" in first[1:] or (len(set(filled)) < len(filled) and not all(map(_is_called_so, filled))):
        return False
    if any(is_number(field) or len(field) > 40 or field[-1] in ".?!。？！" for field in filled):
        return False
    one_word = all(len(field.split()) < 2 for field in first)
    if any(number and not _is_missing(field) for number, field in zip(numbered, first, strict=True)):
        return True
    if numbered[0] and not first[0] and one_word:
        # As pandas writes the numbers of rows.
        return True
    words = all(map(_is_called_so, filled))
    # Fields without the number or letter that tells them from others, such as `sentence` of `sentence_A`.
    stems = {re.sub(r"\d+|(?<=[a-z])[A-Z]$|(?<=[\W_])[A-Za-z]$", "", field) for field in filled}
    alike = len(stems) == 1 < len(first)
    if words and alike and len(set(filled)) == len(filled):
        return True
    # Of a script without blanks two characters are a word.
    lengths = []
    for row in filter(None, below):
        lengths.append(max(max(len(field.split()), len(_UNSPACED.findall(field)) / 2) for field in row))
    if (words or alike) and lengths and median(lengths) >= 4:
        # The rows are sentences.
        return True
    short = [all(len(field.split()) < 2 for field in row) for row in below]
    return len(below) >= (20 if format == "TSV" else 1) and one_word and not any(short)


def is_number(field: str) -> bool:
    """Whether a field is a number."""
    try:
        float(field)
    except ValueError:
        return False
    return not _is_missing(field)


def _is_missing(field: str) -> bool:
    return field.strip().lower() in ("", "na", "n/a", "nan", "null", "none", "\\n")


def _numbers_below(below: Sequence[Sequence[str]], width: int) -> list[bool]:
    """Whether the rows have numbers alone in a column [column], where they have anything."""
    found = []
    for column in range(width):
        values = [row[column] for row in below if column < len(row) and not _is_missing(row[column])]
        found.append(bool(values) and all(map(is_number, values)))
    return found


def _is_called_so(field: str) -> bool:
    """Whether a field is made of words that columns are called, such as `sentence_A` or `#1 String`."""
    # sentenceA is two words, A may be one.
    words = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", field))
    known = [word.lower() in NAME_WORDS for word in words]
    return any(known) and all(is_known or len(word) == 1 for word, is_known in zip(words, known, strict=True))


@cache
def _log_once(message: str) -> None:
    """Log a message once, because some commands open a file several times."""
    logger.info(message)


class Heading(NamedTuple):
    """What line 1 and some lines below show of the columns."""

    width: int  # Number of columns
    names: tuple[str, ...]  # Names of the columns; none if line 1 is a row
    texts: tuple[str, ...]  # Names or numbers of the columns that hold text


def read_heading(path: Path, rows: Sequence[Sequence[str]], named: Collection[str], format: str) -> Heading:
    """Find names and kinds of columns from the first rows of a file, TSV or CSV, and log how line 1 is read."""
    first, below = [field.strip() for field in rows[0]], rows[1:]
    if not any(first):
        raise InputError(f"{path}:1: this line is blank; expected names of columns or a row: remove it", path=path)
    found = has_names(first, below, named, format)
    if len(first) > 1 and found:
        _log_once(f"{path}: line 1 has the names of the columns, {', '.join(first)}")
    elif len(first) > 1 and not any(map(is_number, first)):
        # With a number in it, line 1 is certainly a row.
        _log_once(f"{path}: line 1 is a row, columns have numbers from 1; if line 1 has names, use these")
    numbered = _numbers_below(below if found else rows, len(first))
    columns = first if found else [str(number) for number in range(1, len(first) + 1)]
    texts = [column for column, is_numbers in zip(columns, numbered, strict=True) if not is_numbers]
    return Heading(len(first), tuple(first) if found else (), tuple(texts))
