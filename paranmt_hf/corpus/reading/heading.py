"""Decides whether the first line of a TSV or CSV file has the names of the columns, or is a row.

The rules are tried in this order, and the first that applies decides:

1. Line 1 has columns that the user names: it has names.
2. A field of line 1 is empty (other than the first), a number, long, or ends like a sentence: it is a row. So it is if
   two fields are equal, unless all are words that columns are usually called.
3. A column has a word in line 1 and only numbers below: line 1 has names.
4. All fields are one name with different numbers or letters, and usual for columns, such as `sentence1` and
   `sentence2`: line 1 has names.
5. The rows below are sentences, and the fields are either usual names (`source`, `target`) or one name with different
   numbers or letters: line 1 has names.
6. Line 1 has one word in each field, and none of the rows below has; there are at least 20 of these rows, or in CSV,
   which mostly has names, at least one: line 1 has names.

Otherwise line 1 is a row, so that the first pair of a word list is not lost.
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

# Words in the names of columns that hold texts, their labels or scores; languages too, by name and by code.
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
# Letters of scripts without blanks between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def has_names(first: Sequence[str], below: Sequence[Sequence[str]], named: Collection[str], format: str) -> bool:
    """Decide whether the fields of line 1 are names of columns, by the rules above.

    Args:
        first: Fields of line 1, without white space around them.
        below: Fields of some lines that follow.
        named: Names or numbers of columns that the user gives; case does not matter.
        format: TSV or CSV.
    """
    fields = {field.lower() for field in first}
    if named and all(name.lower() in fields and not name.isdecimal() for name in named):
        return True
    numbered = _numbers_below(below, len(first))
    filled = [field for field in first if field]
    # pandas writes 0, 1, 2, ... as names of columns that have none.
    if filled == [str(number) for number in range(len(filled))]:
        return len(filled) > 1 and not any(number for number, field in zip(numbered, first, strict=True) if field)
    if not filled or "" in first[1:] or (len(set(filled)) < len(filled) and not all(map(_is_usual_name, filled))):
        return False
    if any(is_number(field) or len(field) > 40 or field[-1] in ".?!。？！" for field in filled):
        return False
    one_word = all(len(field.split()) < 2 for field in first)
    if any(number and not _is_missing(field) for number, field in zip(numbered, first, strict=True)):
        return True
    # pandas writes the numbers of rows into a first column without a name.
    if numbered[0] and not first[0] and one_word:
        return True
    words = all(map(_is_usual_name, filled))
    # Fields without the number or letter at their end, such as `sentence` from `sentence_A`.
    stems = {re.sub(r"\d+|(?<=[a-z])[A-Z]$|(?<=[\W_])[A-Za-z]$", "", field) for field in filled}
    alike = len(stems) == 1 < len(first)
    if words and alike and len(set(filled)) == len(filled):
        return True
    # Number of words in the longest field of each row; in scripts without blanks two characters count as a word.
    lengths = []
    for row in filter(None, below):
        lengths.append(max(max(len(field.split()), len(_UNSPACED.findall(field)) / 2) for field in row))
    # Rows with this many words are sentences.
    if (words or alike) and lengths and median(lengths) >= 4:
        return True
    short = [all(len(field.split()) < 2 for field in row) for row in below]
    return len(below) >= (20 if format == "TSV" else 1) and one_word and not any(short)


def is_number(field: str) -> bool:
    """Whether a field is a number; NaN is a missing value, not a number."""
    try:
        float(field)
    except ValueError:
        return False
    return not _is_missing(field)


def _is_missing(field: str) -> bool:
    """Whether a field is empty or a usual sign of a missing value, such as `NA`."""
    return field.strip().lower() in ("", "na", "n/a", "nan", "null", "none", "\\n")


def _numbers_below(below: Sequence[Sequence[str]], width: int) -> list[bool]:
    """Return for each column [column] whether it holds only numbers, missing values aside, and at least one."""
    found = []
    for column in range(width):
        values = [row[column] for row in below if column < len(row) and not _is_missing(row[column])]
        found.append(bool(values) and all(map(is_number, values)))
    return found


def _is_usual_name(field: str) -> bool:
    """Whether a field consists of words that are usual in names of columns, such as `sentence_A` or `#1 String`."""
    # `sentenceA` is cut into two words. One letter is allowed besides a usual word.
    words = re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", field))
    known = [word.lower() in NAME_WORDS for word in words]
    return any(known) and all(is_known or len(word) == 1 for word, is_known in zip(words, known, strict=True))


@cache
def _log_once(message: str) -> None:
    """Log a message once, because some commands open a file several times."""
    logger.info(message)


class Heading(NamedTuple):
    """The columns of a file, as line 1 and some lines below show them."""

    width: int  # Number of columns
    names: tuple[str, ...]  # Names of the columns; empty if line 1 is a row
    texts: tuple[str, ...]  # Names or numbers of the columns that hold text


def read_heading(path: Path, rows: Sequence[Sequence[str]], named: Collection[str], format: str) -> Heading:
    """Find out which columns a TSV or CSV file has, and log whether line 1 is read as names or as a row.

    Args:
        path: The file, for messages.
        rows: Fields of the first rows, line 1 included.
        named: Names or numbers of columns that the user gives.
        format: TSV or CSV.

    Raises:
        InputError: If line 1 is blank.
    """
    first, below = [field.strip() for field in rows[0]], rows[1:]
    if not any(first):
        raise InputError(f"{path}:1: this line is blank; expected names of columns or a row: remove it", path=path)
    found = has_names(first, below, named, format)
    if len(first) > 1 and found:
        _log_once(f"{path}: line 1 has the names of the columns, {', '.join(first)}")
    elif len(first) > 1 and not any(map(is_number, first)):
        # Nothing is logged if line 1 has a number, because it is then certainly a row.
        _log_once(f"{path}: line 1 is a row, columns have numbers from 1; if line 1 has names, use these")
    numbered = _numbers_below(below if found else rows, len(first))
    columns = first if found else [str(number) for number in range(1, len(first) + 1)]
    texts = [column for column, is_numbers in zip(columns, numbered, strict=True) if not is_numbers]
    return Heading(len(first), tuple(first) if found else (), tuple(texts))
