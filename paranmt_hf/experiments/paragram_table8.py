"""Table 8 of PARAGRAM-PHRASE (arXiv:1511.08198): nearest neighbours of words in several spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import Evaluation, Results, Row
from paranmt_hf.evaluation.similarities import directions
from paranmt_hf.evaluation.word_averages import count_words, word_vectors, words_in_order
from paranmt_hf.evaluation.word_weights import RANK, counts_by_rank
from paranmt_hf.text.definitions import words as cut
from paranmt_hf.text.word_vectors import WordVectors
from paranmt_hf.util.markers import Count, PythonOnly
from paranmt_hf.util.tables import markdown_table

COMMON_WORDS = 10_000  # The neighbours of table 8 are among the most common tokens


def paragram_table8(
    spaces: Sequence[str | Path],
    *,
    words: Sequence[str],
    frequencies: str = RANK,
    top: Count = 10,
    common: Annotated[int, PythonOnly] = COMMON_WORDS,
) -> Evaluation:
    """Find the nearest neighbours of words by cosine among the most common words, in several spaces side by side.

    A word is not a neighbour of itself, nor is a vector of zeros; words that a space lacks are left out of all.

    Args:
        spaces: Encoders (folders, Hub ids, `small`) or files of word vectors.
        words: Words whose neighbours are shown.
        frequencies: How often words occur: rank (the order of the first space, by Zipf's law), a list with a word and
            its count on each line, or what is counted: a text, a Parquet file, a corpus (both sides).
        top: Neighbours of each word.
        common: Number of the most common words that neighbours are taken from.
    """
    check_spaces(spaces)
    asked = [_one_word(word) for word in words]
    if not asked:
        raise InputError("name the words whose neighbours are shown", option="words")
    names = [str(space) for space in spaces]
    counts = counts_by_rank(words_in_order(spaces[0]), names[0]) if frequencies == RANK else count_words(frequencies)
    frequent = counts.most_frequent(common)
    found = {name: word_vectors(space, {*frequent, *asked}) for name, space in zip(names, spaces, strict=True)}
    return find_neighbours(found, asked, frequent, counts.source, top)


def _one_word(text: str) -> str:
    tokens = cut(text)
    if len(tokens) != 1:
        raise InputError(f"{text!r} is {len(tokens)} words; neighbours are those of one word")
    return tokens[0]


def check_spaces(spaces: Sequence[str | Path]) -> None:
    """Reject an empty list of spaces."""
    if not spaces:
        raise InputError("name encoders or files of word vectors", option="spaces")


def find_neighbours(
    spaces: Mapping[str, WordVectors], words: Sequence[str], frequent: Sequence[str], source: str, top: int
) -> Evaluation:
    """Find the nearest neighbours of words in each space among the frequent words that all spaces have."""
    known = [set(vectors.words) for vectors in spaces.values()]
    candidates = [word for word in frequent if all(word in own for own in known)]
    if not candidates:
        raise InputError(
            f"none of the {len(frequent):,} most common words has a vector in all of {', '.join(spaces)}; give other "
            "`frequencies`"
        )
    if not any(word in own for word in words for own in known):
        raise InputError(f"{' '.join(words)}: no vector in {', '.join(spaces)}; ask for other `words`")
    note = f"Among the {len(candidates):,} most common words that all have. Frequencies: {source}."
    results = [
        Results(
            kind="neighbours", model=name, tables=neighbours_in_space(vectors, words, candidates, top), notes=[note]
        )
        for name, vectors in spaces.items()
    ]
    return Evaluation(results, (side_by_side,), each=False)


def neighbours_in_space(
    vectors: WordVectors, words: Sequence[str], candidates: Sequence[str], top: int
) -> dict[str, list[Row]]:
    """Find the nearest of some candidates for each word, nearest first; an empty list for a word without a vector.

    Equally near ones are in the order of the candidates.
    """
    row_of = {word: row for row, word in enumerate(vectors.words)}
    matrix = directions(vectors.matrix[[row_of[word] for word in candidates]])
    filled = (matrix != 0).any(axis=1)
    tables: dict[str, list[Row]] = {}
    for word in words:
        tables[word] = []
        if word in row_of:
            cosines = np.clip(matrix @ directions(vectors.matrix[[row_of[word]]])[0], -1, 1)
            order = [r for r in np.argsort(-cosines, kind="stable").tolist() if filled[r] and candidates[r] != word]
            tables[word] = [Row(name=candidates[r], values={"cosine": float(cosines[r])}) for r in order[:top]]
    return tables


def side_by_side(results: Sequence[Results]) -> str:
    """Format a table for each word, with the spaces side by side."""
    blocks = []
    for word in results[0].tables:
        columns = [[f"{row.name} {row.main:.2f}" for row in each.tables[word]] or ["no vector"] for each in results]
        depth = max(map(len, columns))
        lines = [[str(rank + 1), *((*column, *[""] * depth)[rank] for column in columns)] for rank in range(depth)]
        blocks.append(markdown_table([word, *(each.model for each in results)], lines))
    return "\n\n".join([*blocks, *results[0].notes])
