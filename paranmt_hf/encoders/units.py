"""The units of columns of sentences (words, word n-grams, character trigrams): counts, and lookup of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, repeat

import numpy as np
import pyarrow as pa

from paranmt_hf.encoders.config import UnitKind
from paranmt_hf.encoders.vocabulary import Vocabulary, trigrams_in
from paranmt_hf.text.definitions import rows_of_word
from paranmt_hf.text.tokens import Bags, PerToken, TokenTable, WordTokenizer, expand

# Characters with a place in a table of all combinations, one of them for all others; and the first code point that
# has none.
USUAL_CHARACTERS, BEYOND = 64, 0xFFFF


class UnitCounter:
    """Counts the units of some kinds in a corpus, table by table."""

    def __init__(self, kinds: Sequence[UnitKind]) -> None:
        self._kinds = kinds
        self._words: Counter[str] = Counter()
        self._crossings: Counter[str] = Counter()

    def add(self, table: TokenTable) -> None:
        """Count the units of some sentences."""
        counts = np.bincount(table.ids, minlength=len(table.vocabulary))
        used = np.flatnonzero(counts)
        self._words.update({table.vocabulary[token]: int(counts[token]) for token in used.tolist()})
        if "trigram" not in self._kinds:
            return
        # Those made of a word's last character, a blank and the next word's first character. Two token ids as one
        # number, so that equal neighbours are counted together; divmod takes them apart again.
        left, right, _ = _neighbours(table)
        pairs, counts = np.unique(left.astype(np.int64) * len(table.vocabulary) + right, return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            first, second = divmod(pair, len(table.vocabulary))
            self._crossings[f"{table.vocabulary[first][-1]} {table.vocabulary[second][0]}"] += count

    def result(self) -> dict[UnitKind, Counter[str]]:
        """Count of each unit, by kind."""
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
    """Count how often each unit of some kinds occurs in a corpus."""
    tokenizer, counter = WordTokenizer(), UnitCounter(kinds)
    for column in columns:
        (table,) = tokenizer.tables(column)
        counter.add(table)
    return counter.result()


def _neighbours(table: TokenTable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find tokens that are followed by another token of their sentence.

    Returns the token [pair], the next token [pair], and whether each token has one [token].
    """
    has_next = np.ones(len(table.ids), bool)
    ends = table.offsets[1:][np.diff(table.offsets) > 0]
    # The last token of each sentence that has one.
    has_next[ends - 1] = False
    positions = np.flatnonzero(has_next)
    return table.ids[positions], table.ids[positions + 1], has_next


class Lookup:
    """Maps word tokens to rows of a vocabulary, with a cache of tokens."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.row_of = vocabulary.row_of
        self._forget(())

    def _forget(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._known = 0

    def _new_tokens(self, table: TokenTable) -> Sequence[str]:
        # A tokenizer's vocabulary only grows, until the tokenizer starts a new one.
        if table.vocabulary is not self._tokens:
            self._forget(table.vocabulary)
        new = table.vocabulary[self._known :]
        self._known += len(new)
        return new

    def bags(self, table: TokenTable) -> Bags:
        """Look up every unit of every sentence."""
        raise NotImplementedError


class WordLookup(Lookup):
    """Rows of the words of sentences."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._rows = PerToken(self._look_up, np.int32)

    def _look_up(self, tokens: Sequence[str]) -> list[int]:
        return list(map(self.row_of.get, tokens, repeat(0)))

    def bags(self, table: TokenTable) -> Bags:
        """Look up the words of every sentence, in order."""
        return Bags(self._rows.of(table)[table.ids], table.offsets)


class PieceLookup(Lookup):
    """Rows of the words of sentences and, of words without one, of their pieces."""

    def _forget(self, tokens: Sequence[str]) -> None:
        super()._forget(tokens)
        self._rows = np.empty(0, np.int32)
        self._bounds = np.zeros(1, np.int64)

    def bags(self, table: TokenTable) -> Bags:
        """Look up the words or pieces of every sentence, in order."""
        new = self._new_tokens(table)
        if new:
            cut = [rows_of_word(word, self.row_of) for word in new]
            self._rows = np.concatenate([self._rows, np.array(list(chain.from_iterable(cut)), np.int32)])
            ends = np.cumsum(list(map(len, cut)))
            self._bounds = np.concatenate([self._bounds, self._bounds[-1] + ends])
        starts = self._bounds[table.ids]
        rows, bounds = expand(self._rows, starts, self._bounds[table.ids + 1] - starts)
        return Bags(rows, bounds[table.offsets])


class NgramLookup(WordLookup):
    """Rows of the known words of sentences and of their n-grams."""

    def bags(self, table: TokenTable) -> Bags:
        """Look up the words and n-grams of every sentence; those without a row are left out."""
        words = super().bags(table)
        assert self.vocabulary.ngrams is not None
        return Bags(*self.vocabulary.ngrams.bags(words.rows, words.offsets))


class TrigramLookup(Lookup):
    """Rows of the character trigrams of sentences.

    A trigram is in one word and the blanks around it, or it is the last character of a word, a blank, and the first
    character of the next word. So the trigrams of a sentence follow from its tokens, without looking at its text.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        # Which trigram `x y` has which row, as a table over the characters at these places in the vocabulary.
        crossings = [unit for unit in vocabulary.units[1:] if len(unit) == 3 and unit[1] == " "]
        codes = _codes("".join(crossings)).reshape(-1, 3)
        # The characters before and behind the blank, ascending; the number of one is its position here plus 1.
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
        tokens = self._new_tokens(table)
        # In slices: the rows of a large vocabulary as Python numbers would take many times their memory.
        for low in range(0, len(tokens), 100_000):
            new = tokens[low : low + 100_000]
            # Every token between two blanks of its own.
            text = f" {'  '.join(new)} "
            codes = _codes(text)
            # With its two blanks a token of n characters has n + 2 of them, and so n trigrams.
            counts = np.fromiter(map(len, new), np.int64, len(new))
            ends = np.cumsum(counts + 2) - 1
            starts = len(self._inside) + np.cumsum(counts) - counts
            begins = np.ones(len(codes), bool)
            begins[ends] = begins[ends - 1] = False
            inside = self._usual.rows(codes)
            for at in self._usual.unusual(codes).tolist():
                inside[at] = self.row_of.get(text[at : at + 3], 0)
            # As the left neighbour a token gives its last character, as the right one its first.
            sides = (codes[ends - 1], self._first), (codes[ends - counts], self._last)
            neighbours = np.stack([_numbers(characters, known) for characters, known in sides]).astype(np.int32)
            self._inside = np.concatenate([self._inside, inside[begins[:-2]]])
            self._starts = np.concatenate([self._starts, starts])
            self._counts = np.concatenate([self._counts, counts])
            self._ends = np.concatenate([self._ends, neighbours], axis=1)

    def bags(self, table: TokenTable) -> Bags:
        """Look up the character trigrams of every sentence, in order."""
        self._learn(table)
        _, _, has_next = _neighbours(table)
        counts = self._counts[table.ids]
        # Token t gives the rows from bounds[t] to bounds[t + 1]: those inside it, and then the crossing to the next.
        bounds = np.zeros(len(table.ids) + 1, np.int64)
        np.cumsum(counts + has_next, out=bounds[1:])
        rows = np.empty(bounds[-1], np.int32)
        # Without crossings the rows of token t begin at inner[t]; the crossings before it move them to bounds[t].
        values, inner = expand(self._inside, self._starts[table.ids], counts)
        rows[np.arange(len(values)) + np.repeat(bounds[:-1] - inner[:-1], counts)] = values
        rows[bounds[1:][has_next] - 1] = self.crossings(table)
        return Bags(rows, bounds[table.offsets])

    def crossings(self, table: TokenTable) -> np.ndarray:
        """Row of the trigram across each token and its successor in the sentence [neighbours], int32."""
        self._learn(table)
        left, right, _ = _neighbours(table)
        # A character that no crossing of the vocabulary has on that side is 0 there, and row and column 0 are unknown.
        places = self._ends[0][left] * np.int32(self._crossing.shape[1]) + self._ends[1][right]
        return self._crossing.ravel()[places]

    def inside(self, tokens: np.ndarray) -> Bags:
        """Rows of the trigrams in some tokens of the current table, with the blanks around them."""
        return Bags(*expand(self._inside, self._starts[tokens], self._counts[tokens]))


def _codes(text: str) -> np.ndarray:
    """Code points of a text [character], int64."""
    return np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.int64)


def _numbers(codes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """1-based index of each character among the sorted known characters; 0 if unknown."""
    if not len(known):
        return np.zeros(len(codes), np.int64)
    found = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return np.where(known[found] == codes, found + 1, 0)


class _UsualTrigrams:
    """Rows of the trigrams of a vocabulary's most frequent characters, as a table of all their combinations."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        rows = np.array([row for row, unit in enumerate(vocabulary.units) if row and len(unit) == 3], np.int32)
        codes = _codes("".join(vocabulary.units[row] for row in rows.tolist())).reshape(-1, 3)
        characters, counts = np.unique(codes[codes < BEYOND], return_counts=True)
        usual = characters[np.argsort(-counts, kind="stable")[: USUAL_CHARACTERS - 1]]
        # Number 0 is that of all other characters.
        self._number_of = np.zeros(BEYOND + 1, np.int64)
        self._number_of[usual] = np.arange(1, len(usual) + 1)
        self._rows = np.zeros(USUAL_CHARACTERS**3, np.int32)
        numbers = self._number_of[np.minimum(codes, BEYOND)]
        whole = (numbers != 0).all(axis=1)
        self._rows[self._places(numbers[whole].ravel())[::3]] = rows[whole]

    @staticmethod
    def _places(numbers: np.ndarray) -> np.ndarray:
        return (numbers[:-2] * USUAL_CHARACTERS + numbers[1:-1]) * USUAL_CHARACTERS + numbers[2:]

    def rows(self, codes: np.ndarray) -> np.ndarray:
        """Row of the trigram that begins at each character of a text [character - 2], int32; 0 for none."""
        return self._rows[self._places(self._number_of[np.minimum(codes, BEYOND)])]

    def unusual(self, codes: np.ndarray) -> np.ndarray:
        """Positions of the trigrams of a text with another character, which are not looked up here."""
        others = self._number_of[np.minimum(codes, BEYOND)] == 0
        return np.flatnonzero(others[:-2] | others[1:-1] | others[2:])


def lookup(vocabulary: Vocabulary) -> Lookup:
    """Create the lookup for a vocabulary's kind."""
    if vocabulary.has_pieces:
        return PieceLookup(vocabulary)
    return {"word": WordLookup, "trigram": TrigramLookup, "ngram": NgramLookup}[vocabulary.kind](vocabulary)
