"""Lists of paraphrases: a word, and behind it its paraphrases, with blanks between them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.phrases.lines import Lines
from paranmt_hf.corpus.phrases.ppdb import BAR, FORM

LISTED = "a word and its paraphrases, with blanks between them"
# Lines that are looked at, and the part of them that must look like sentences. Of 1,000 lines of captions and of news
# 75 % and more do, also without punctuation and in lower case; of the lexical paraphrases of PPDB XL 2 % at most.
FIRST_LINES, MOST_SENTENCES = 1000, 1 / 3
_END = re.compile(r"""\w ?[.!?]["')\u2019\u201d]*$""")


def parse_listed(lines: Lines) -> list[pa.Array]:
    """Take lines apart: a pair of each word with each of its paraphrases.

    Only blanks separate; other white space stands for words of the list.

    Returns:
        Words and paraphrases [pair], string.

    Raises:
        InputError: A line has no paraphrase, or is of another form.
    """
    lines.refuse(pc.match_substring(lines.text, BAR), f"{LISTED}, as on the first line, and not {FORM}")
    lines.refuse(pc.match_substring(lines.text, "\t"), f"{LISTED}, and no tab (`paranmt import` reads TSV files)")
    parts = pc.split_pattern(lines.text, " ")
    line_of, words = np.asarray(pc.list_parent_indices(parts)), parts.flatten()
    written = np.asarray(pc.greater(pc.utf8_length(words), 0))
    line_of, words = line_of[written], words.filter(pa.array(written))
    counts = np.bincount(line_of, minlength=len(lines.text))
    lines.refuse(counts < 2, LISTED)
    starts = np.cumsum(counts) - counts
    paraphrases = np.ones(len(words), bool)
    paraphrases[starts] = False
    return [words.take(pa.array(np.repeat(starts, counts - 1))), words.filter(pa.array(paraphrases))]


def looks_like_sentences(lines: Sequence[str]) -> bool:
    """Tell whether the first lines of a file are sentences, and no list of words and their paraphrases.

    A line looks like a sentence if it has three words or more and one of them occurs twice, or it ends with a full
    stop, or lines further up, with others between, begin with the same word. A list has each word and each of its
    paraphrases once.
    """
    starts: set[str] = set()
    found, before = 0, ""
    for line in lines[:FIRST_LINES]:
        words = line.lower().split()
        if not words:
            continue
        begins_again = words[0] in starts and words[0] != before
        if len(words) > 2:
            found += begins_again or len(set(words)) < len(words) or _END.search(line.rstrip()) is not None
        starts.add(before := words[0])
    return found > MOST_SENTENCES * min(len(lines), FIRST_LINES)
