"""Phrases in sentences, which count as one word: `at least`, `have to`."""

from __future__ import annotations

import numpy as np

from paranmt_hf.meaning.words import BEFORE_NUMBER, NUMBER, Lexicon
from paranmt_hf.util.machine import compiled


@compiled()
def find(keys: np.ndarray, wanted: int) -> int:
    """Return the position of a key in ascending keys; -1 if it is not there."""
    place = int(np.searchsorted(keys, wanted))
    return place if place < len(keys) and keys[place] == wanted else -1


@compiled()
def join_phrases(words: np.ndarray, bounds: np.ndarray, lexicon: Lexicon) -> tuple[np.ndarray, np.ndarray]:
    """Replace the words of each phrase by the phrase, the longest where several begin.

    Args:
        words: Numbers of the words of all sentences [word], int32.
        bounds: Bounds of each sentence in `words` [sentence + 1].
        lexicon: What is known of the words.

    Returns:
        The words and phrases [word], and the bounds of each sentence [sentence + 1].
    """
    joined, limits = np.empty(len(words), np.int32), np.empty(len(bounds), np.int64)
    count = 0
    for sentence in range(len(bounds) - 1):
        limits[sentence] = count
        place, stop = bounds[sentence], bounds[sentence + 1]
        while place < stop:
            word, last, following = words[place], place, place + 1
            node = lexicon.first_nodes[word]
            while node >= 0 and following < stop:
                step = find(lexicon.edges, (int(node) << 32) | int(words[following]))
                node = lexicon.edge_nodes[step] if step >= 0 else -1
                ends = node >= 0 and lexicon.node_words[node] >= 0
                # `up to` is a limit only before a number.
                if ends and lexicon.flags[lexicon.node_words[node]] & BEFORE_NUMBER:
                    ends = following + 1 < stop and lexicon.kinds[words[following + 1]] == NUMBER
                if ends:
                    word, last = lexicon.node_words[node], following
                following += 1
            joined[count] = word
            count += 1
            place = last + 1
    limits[-1] = count
    return joined[:count], limits
