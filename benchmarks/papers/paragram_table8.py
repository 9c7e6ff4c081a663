"""Table 8 of PARAGRAM-PHRASE (arXiv:1511.08198): nearest neighbours of words in several spaces, side by side.

Among the 10,000 most common words that all spaces have, by cosine. A word is not a neighbour of itself, nor is a
vector of zeros.

    python benchmarks/papers/paragram_table8.py small glove.100d.100k.txt.gz --words unlike --top 5
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
from comparison import table
from spaces import frequencies, parser, vectors

from paranmt_hf.text.word_vectors import WordVectors

COMMON_WORDS = 10_000


def neighbours(space: WordVectors, word: str, candidates: Sequence[str], top: int) -> list[tuple[str, float]]:
    """Return the `top` nearest candidates of a word with their cosines, nearest first; ties keep their order."""
    row_of = {own: row for row, own in enumerate(space.words)}
    if word not in row_of:
        return []
    matrix = space.matrix[[row_of[candidate] for candidate in candidates]].astype(np.float64)
    own = space.matrix[row_of[word]].astype(np.float64)
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(own)
    cosines = np.divide(matrix @ own, lengths, out=np.full(len(matrix), -np.inf), where=lengths > 0)
    order = [row for row in np.argsort(-cosines, kind="stable") if lengths[row] > 0 and candidates[row] != word]
    return [(candidates[row], float(cosines[row])) for row in order[:top]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each word."""
    program = parser(__doc__)
    program.add_argument("--words", nargs="+", required=True, help="words whose neighbours are shown")
    program.add_argument("--top", type=int, default=10, help="neighbours of each word")
    options = program.parse_args(arguments)
    counts = frequencies(options.spaces, options.frequencies)
    frequent = counts.most_frequent(COMMON_WORDS)
    asked = [word.lower() for word in options.words]
    spaces = [vectors(space, {*frequent, *asked}) for space in options.spaces]
    known = set(frequent).intersection(*(space.words for space in spaces))
    candidates = [word for word in frequent if word in known]
    for word in asked:
        columns = []
        for space in spaces:
            found = neighbours(space, word, candidates, options.top)
            columns.append([f"{name} {cosine:.2f}" for name, cosine in found] or ["no vector"])
        rows = [[str(rank), *cells] for rank, cells in enumerate(zip_longest(*columns, fillvalue=""), 1)]
        print(table([word, *options.spaces], rows) + "\n")
    print(f"Among the {len(candidates):,} most common words that all have. Frequencies: {counts.source}.")


if __name__ == "__main__":
    main()
