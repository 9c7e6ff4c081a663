"""Count the words and character trigrams of columns of sentences, and look up the rows of units.

Units are words, pieces of words, word n-grams and character trigrams; n-grams are not counted here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, repeat

import numpy as np
import pyarrow as pa

from paranmt_hf.encoders.config import UnitKind
from paranmt_hf.encoders.vocabulary import Vocabulary, trigrams_in
from paranmt_hf.text.definitions import rows_of_word
from paranmt_hf.text.tokens import Bags, PerToken, TokenTable, WordTokenizer
from paranmt_hf.util.ranges import expand

# The table of `_UsualTrigrams` covers 64 numbers of characters, number 0 being all other characters. Code points from
# 0xFFFF are never among the usual characters.
USUAL_CHARACTERS, BEYOND = 64, 0xFFFF


class UnitCounter:
    """Counts the units of some kinds in a corpus, which is given in parts."""

    def __init__(self, kinds: Sequence[UnitKind]) -> None:
        self._kinds = kinds
        self._words: Counter[str] = Counter()
        self._crossings: Counter[str] = Counter()
        self._first = PerToken(lambda tokens: [ord(token[0]) for token in tokens], np.int64)
        self._last = PerToken(lambda tokens: [ord(token[-1]) for token in tokens], np.int64)

    def add(self, table: TokenTable) -> None:
        """Count the units of the sentences of a token table."""
        counts = np.bincount(table.ids, minlength=len(table.vocabulary))
        used = np.flatnonzero(counts)
        self._words.update({table.vocabulary[token]: int(counts[token]) for token in used.tolist()})
        if "trigram" not in self._kinds:
            return
        # Trigrams across two words: the last character of a word, a blank and the first character of the next word.
        # Both characters are packed into one number, so that equal trigrams are counted together.
        left, right, _ = _neighbours(table)
        pairs = self._last.of(table)[left] << 32 | self._first.of(table)[right]
        codes, counts = np.unique(pairs, return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            self._crossings[f"{chr(code >> 32)} {chr(code & 0xFFFFFFFF)}"] += count

    def result(self) -> dict[UnitKind, Counter[str]]:
        """Return how often each unit occurs, by kind."""
        counts: dict[UnitKind, Counter[str]] = {}
        if "word" in self._kinds:
            counts["word"] = self._words
        if "trigram" in self._kinds:
            trigrams = self._crossings.copy()
            for word, count in self._words.items():
                for trigram in trigrams_in(word):
                    trigrams[trigram] += count
            counts["trigram"] = trigrams
        return counts


def count_units(
    columns: Iterable[pa.Array | pa.ChunkedArray], kinds: Sequence[UnitKind]
) -> dict[UnitKind, Counter[str]]:
    """Count how often each unit occurs in a corpus, by kind; the kinds are `word` and `trigram`."""
    tokenizer, counter = WordTokenizer(), UnitCounter(kinds)
    for column in columns:
        (table,) = tokenizer.tables(column)
        counter.add(table)
    return counter.result()


def _neighbours(table: TokenTable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the tokens that are followed by another token of their sentence.

    Returns:
        The ids of these tokens [pair], the ids of the tokens that follow them [pair], and for every token whether it
        has a follower [token].
    """
    has_next = np.ones(len(table.ids), bool)
    ends = table.offsets[1:][np.diff(table.offsets) > 0]
    # The last token of each sentence that is not empty has no follower.
    has_next[ends - 1] = False
    positions = np.flatnonzero(has_next)
    return table.ids[positions], table.ids[positions + 1], has_next


class Lookup:
    """Looks up the rows of a vocabulary for word tokens; remembers what it looked up for each distinct token."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.row_of = vocabulary.row_of
        self._forget(())

    def _forget(self, tokens: Sequence[str]) -> None:
        """Empty the cache, and use it for another list of tokens."""
        self._tokens = tokens
        self._known = 0

    def _new_tokens(self, table: TokenTable) -> Sequence[str]:
        """Return the tokens of the table's vocabulary that are not in the cache yet, and count them as known."""
        # Tokenizers append to their list of tokens, until they start a new one.
        if table.vocabulary is not self._tokens:
            self._forget(table.vocabulary)
        new = table.vocabulary[self._known :]
        self._known += len(new)
        return new

    def bags(self, table: TokenTable) -> Bags:
        """Look up the row of every unit of every sentence."""
        raise NotImplementedError


class WordLookup(Lookup):
    """Looks up the rows of words."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._rows = PerToken(self._look_up, np.int32)

    def _look_up(self, tokens: Sequence[str]) -> list[int]:
        """Return the row of each token; 0 if it has none."""
        return list(map(self.row_of.get, tokens, repeat(0)))

    def bags(self, table: TokenTable) -> Bags:
        """Look up the rows of the words of every sentence, in order."""
        return Bags(self._rows.of(table)[table.ids], table.offsets)


class PieceLookup(Lookup):
    """Looks up the rows of words and, for a word without one, of its pieces."""

    def _forget(self, tokens: Sequence[str]) -> None:
        super()._forget(tokens)
        self._rows = np.empty(0, np.int32)
        self._bounds = np.zeros(1, np.int64)

    def bags(self, table: TokenTable) -> Bags:
        """Look up the rows of the words or their pieces of every sentence, in order."""
        new = self._new_tokens(table)
        if new:
            cut = [rows_of_word(word, self.row_of.get) for word in new]
            self._rows = np.concatenate([self._rows, np.array(list(chain.from_iterable(cut)), np.int32)])
            ends = np.cumsum(list(map(len, cut)))
            self._bounds = np.concatenate([self._bounds, self._bounds[-1] + ends])
        starts = self._bounds[table.ids]
        rows, bounds = expand(self._rows, starts, self._bounds[table.ids + 1] - starts)
        return Bags(rows, bounds[table.offsets])


class NgramLookup(WordLookup):
    """Looks up the rows of known words and of word n-grams."""

    def bags(self, table: TokenTable) -> Bags:
        """Look up the rows of the words and then the n-grams of every sentence; those without a row are left out."""
        words = super().bags(table)
        assert self.vocabulary.ngrams is not None
        return Bags(*self.vocabulary.ngrams.bags(words.rows, words.offsets))


class TrigramLookup(Lookup):
    """Looks up the rows of character trigrams.

    A trigram is either inside one word with a blank on both sides, or a crossing: the last character of a word, a
    blank, and the first character of the next word. So the trigrams of a sentence follow from its tokens, without its
    text.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        # The rows of the crossings `x y`, as a table [x, y] of the numbers of both characters.
        crossings = [unit for unit in vocabulary.units[1:] if len(unit) == 3 and unit[1] == " "]
        codes = _codes("".join(crossings)).reshape(-1, 3)
        # The characters before and behind the blank, ascending; the number of a character is its position plus 1.
        self._first, self._last = np.unique(codes[:, 0]), np.unique(codes[:, 2])
        self._crossing = np.zeros((len(self._first) + 1, len(self._last) + 1), np.int32)
        rows = [self.row_of[unit] for unit in crossings]
        self._crossing[_numbers(codes[:, 0], self._first), _numbers(codes[:, 2], self._last)] = rows
        self._usual = _UsualTrigrams(vocabulary)

    def _forget(self, tokens: Sequence[str]) -> None:
        super()._forget(tokens)
        self._inside = np.empty(0, np.int32)
        self._starts = np.empty(0, np.int64)
        self._counts = np.empty(0, np.int64)
        self._ends = np.empty((2, 0), np.int32)

    def _learn(self, table: TokenTable) -> None:
        """Add the new tokens of a table to the cache: the rows of the trigrams inside each, and its ends.

        The ends are the numbers of its first and last character, for the trigrams that cross two words.
        """
        tokens = self._new_tokens(table)
        # In slices, because Python numbers take many times the memory of the rows that they stand for.
        for low in range(0, len(tokens), 100_000):
            new = tokens[low : low + 100_000]
            # One text of all tokens, each between two blanks of its own.
            text = f" {'  '.join(new)} "
            codes = _codes(text)
            # With its two blanks, a token of n characters has n + 2 characters, and so n trigrams.
            counts = np.fromiter(map(len, new), np.int64, len(new))
            ends = np.cumsum(counts + 2) - 1
            starts = len(self._inside) + np.cumsum(counts) - counts
            begins = np.ones(len(codes), bool)
            begins[ends] = begins[ends - 1] = False
            inside = self._usual.rows(codes)
            for start in self._usual.unusual(codes).tolist():
                inside[start] = self.row_of.get(text[start : start + 3], 0)
            # The crossing of two tokens has the last character of the left one and the first one of the right one.
            sides = (codes[ends - 1], self._first), (codes[ends - counts], self._last)
            neighbours = np.stack([_numbers(characters, known) for characters, known in sides]).astype(np.int32)
            self._inside = np.concatenate([self._inside, inside[begins[:-2]]])
            self._starts = np.concatenate([self._starts, starts])
            self._counts = np.concatenate([self._counts, counts])
            self._ends = np.concatenate([self._ends, neighbours], axis=1)

    def bags(self, table: TokenTable) -> Bags:
        """Look up the rows of the character trigrams of every sentence, in order."""
        self._learn(table)
        _, _, has_next = _neighbours(table)
        counts = self._counts[table.ids]
        # The rows of token t are those from bounds[t] to bounds[t + 1]: the trigrams inside it, then its crossing to
        # the next token.
        bounds = np.zeros(len(table.ids) + 1, np.int64)
        np.cumsum(counts + has_next, out=bounds[1:])
        rows = np.empty(bounds[-1], np.int32)
        # Counting no crossings, the rows of token t begin at inner[t]; with the crossings before it, at bounds[t].
        values, inner = expand(self._inside, self._starts[table.ids], counts)
        rows[np.arange(len(values)) + np.repeat(bounds[:-1] - inner[:-1], counts)] = values
        rows[bounds[1:][has_next] - 1] = self.crossings(table)
        return Bags(rows, bounds[table.offsets])

    def crossings(self, table: TokenTable) -> np.ndarray:
        """Return the row of the trigram across each token and its follower in the sentence [pair], int32."""
        self._learn(table)
        left, right, _ = _neighbours(table)
        # A character that no known crossing has on this side has the number 0, and line and column 0 of the table hold
        # the row of unknown units.
        places = self._ends[0][left] * np.int32(self._crossing.shape[1]) + self._ends[1][right]
        return self._crossing.ravel()[places]

    def inside(self, tokens: np.ndarray) -> Bags:
        """Return the rows of the trigrams inside some tokens of the table that was looked up last.

        The blanks around a token count as parts of it.

        Args:
            tokens: Ids of the tokens [token].
        """
        return Bags(*expand(self._inside, self._starts[tokens], self._counts[tokens]))


def _codes(text: str) -> np.ndarray:
    """Return the code points of a text [character], int64."""
    return np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.int64)


def _numbers(codes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return for each character its position among the known characters, counted from 1; 0 if it is not among them.

    Args:
        codes: Code points of the characters [character].
        known: Code points of the known characters, ascending.
    """
    if not len(known):
        return np.zeros(len(codes), np.int64)
    found = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.where(known[found] == codes, found + 1, 0)


class _UsualTrigrams:
    """Looks up the rows of trigrams of the most frequent characters, in a table of all their combinations."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        rows = np.array([row for row, unit in enumerate(vocabulary.units) if row and len(unit) == 3], np.int32)
        codes = _codes("".join(vocabulary.units[row] for row in rows.tolist())).reshape(-1, 3)
        characters, counts = np.unique(codes[codes < BEYOND], return_counts=True)
        usual = characters[np.argsort(-counts, kind="stable")[: USUAL_CHARACTERS - 1]]
        # All other characters have the number 0.
        self._number_of = np.zeros(BEYOND + 1, np.int64)
        self._number_of[usual] = np.arange(1, len(usual) + 1)
        self._rows = np.zeros(USUAL_CHARACTERS**3, np.int32)
        numbers = self._number_of[np.minimum(codes, BEYOND)]
        whole = (numbers != 0).all(axis=1)
        self._rows[self._places(numbers[whole].ravel())[::3]] = rows[whole]

    @staticmethod
    def _places(numbers: np.ndarray) -> np.ndarray:
        """Return the position in the table of the trigram that begins at each character but the last two."""
        return (numbers[:-2] * USUAL_CHARACTERS + numbers[1:-1]) * USUAL_CHARACTERS + numbers[2:]

    def rows(self, codes: np.ndarray) -> np.ndarray:
        """Return the row of the trigram that begins at each character of a text [character - 2], int32; 0 for none."""
        return self._rows[self._places(self._number_of[np.minimum(codes, BEYOND)])]

    def unusual(self, codes: np.ndarray) -> np.ndarray:
        """Return the positions at which trigrams begin that have an unusual character, and so are not in the table."""
        others = self._number_of[np.minimum(codes, BEYOND)] == 0
        return np.flatnonzero(others[:-2] | others[1:-1] | others[2:])


def lookup(vocabulary: Vocabulary) -> Lookup:
    """Create the lookup for a vocabulary, by the kind of its units."""
    if vocabulary.has_pieces:
        return PieceLookup(vocabulary)
    return {"word": WordLookup, "trigram": TrigramLookup, "ngram": NgramLookup}[vocabulary.kind](vocabulary)
