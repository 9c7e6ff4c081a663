"""Lists of paraphrases: a word, and behind it its paraphrases, with blanks between them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.phrases.lines import Lines
from paranmt_hf.corpus.phrases.ppdb import BAR, FORM

LISTED = "a word and its paraphrases, with blanks between them"


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
