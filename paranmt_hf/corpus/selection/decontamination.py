"""Which sentences also stand in an evaluation set: the whole sentence, or a long run of its words.

Sentences are compared as their word tokens (`text.py`; of other languages `word_rules.py`) that hold a letter or a
digit: case, white space, punctuation and the kind of apostrophe do not count. Hashes find candidates; word after word
decides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.draws import mix, salt
from paranmt_hf.corpus.selection.filters import Filter, Verdict, joined
from paranmt_hf.errors import InputError
from paranmt_hf.text.evaluation_sets import read_sentences
from paranmt_hf.text.tokens import TokenTable, expand
from paranmt_hf.text.word_rules import ENGLISH, word_tokenizer_for

NGRAM = 8
MIN_WORDS = 4
# An odd number has an inverse modulo 2**64.
_BASE = 0xD6E8FEB86659FD93
_INVERSE = pow(_BASE, -1, 2**64)
_NO_WORD = -1


class EvaluationText:
    """The sentences of evaluation sets, to be found in other text.

    Args:
        sentences: All of them, as written.
        ngram: Number of words in a row that no row may share with an evaluation sentence.
        min_words: An evaluation sentence of fewer words counts only as part of such a run: short ones (`Thank you.`)
            stand everywhere.
        language: ISO 639-1 code of that of the text, which decides what a word is.
    """

    def __init__(
        self,
        sentences: Collection[str],
        *,
        ngram: int = NGRAM,
        min_words: int = MIN_WORDS,
        language: str = ENGLISH,
    ) -> None:
        self.ngram, self.min_words, self.language = ngram, min_words, language
        self._ids: dict[str, int] = {}
        self._tokenizer = word_tokenizer_for(language)
        self._vocabulary: object = None
        self._of_token = np.empty(0, np.int64)
        (table,) = word_tokenizer_for(language).tables(pa.array(sorted(set(sentences)), pa.string()))
        for token in table.vocabulary:
            if _is_word(token):
                self._ids[token] = len(self._ids) + 1
        self._words, self._bounds = self._look_up(table)
        counts = np.diff(self._bounds)
        if not (counts >= min_words).any():
            raise InputError(
                f"no evaluation sentence has {min_words} words, so nothing can be found; name folders with evaluation "
                "sets"
            )
        self._starts = np.flatnonzero(counts >= min_words)
        runs = np.maximum(counts - ngram + 1, 0)
        self._runs, _ = expand(np.arange(len(self._words)), self._bounds[:-1], runs)
        self._index()

    @classmethod
    def read(cls, *folders: str | Path) -> EvaluationText:
        """Read the sentences of the evaluation sets in some folders."""
        return cls(read_sentences(*folders).texts)

    def _index(self) -> None:
        """Sort the hashes; another seed, should two different runs ever have the same."""
        for seed in range(100):
            self._seed = seed
            powers = _Powers(self._words, seed)
            runs = powers.hashes(self._runs, self._runs + self.ngram)
            firsts, ends = self._bounds[self._starts], self._bounds[self._starts + 1]
            self._sentence_table = _Table(powers.hashes(firsts, ends), firsts, ends - firsts)
            self._run_table = _Table(runs, self._runs, np.full(len(runs), self.ngram))
            if self._sentence_table.distinct(self._words) and self._run_table.distinct(self._words):
                return
        raise InputError("the evaluation sentences cannot be told apart; are they text?")

    def found_in(self, sentences: pa.Array) -> np.ndarray:
        """Tell which sentences are evaluation sentences, or share a run of words with one.

        Args:
            sentences: Strings [sentence] without nulls.

        Returns:
            Booleans [sentence].
        """
        (table,) = self._tokenizer.tables(sentences)
        words, bounds = self._look_up(table)
        found = np.zeros(len(sentences), bool)
        powers = _Powers(words, self._seed)
        unknown = np.concatenate([[0], np.cumsum(words == 0)])
        sizes = np.diff(bounds)
        whole = np.flatnonzero((unknown[bounds[1:]] == unknown[bounds[:-1]]) & (sizes >= self.min_words))
        starts, ends = bounds[:-1][whole], bounds[1:][whole]
        hit = self._sentence_table.find(powers.hashes(starts, ends), words, starts, sizes[whole], self._words)
        found[whole[hit]] = True
        if len(words) >= self.ngram:
            starts = np.flatnonzero(unknown[self.ngram :] == unknown[: -self.ngram])
            owners = np.repeat(np.arange(len(sizes)), sizes)
            starts = starts[owners[starts] == owners[starts + self.ngram - 1]]
            hashes = powers.hashes(starts, starts + self.ngram)
            counts = np.full(len(starts), self.ngram)
            found[owners[starts[self._run_table.find(hashes, words, starts, counts, self._words)]]] = True
        return found

    def _look_up(self, table: TokenTable) -> tuple[np.ndarray, np.ndarray]:
        """Number the words of sentences as the evaluation sets know them; 0 is a word that they have not.

        Returns:
            Numbers [word], and the bounds of each sentence [sentence + 1].
        """
        if table.vocabulary is not self._vocabulary:
            self._vocabulary, self._of_token = table.vocabulary, np.empty(0, np.int64)
        if new := table.vocabulary[len(self._of_token) :]:
            numbers = np.fromiter(map(self._ids.get, new, repeat(0)), np.int64, len(new))
            numbers[~np.fromiter(map(_is_word, new), bool, len(new))] = _NO_WORD
            self._of_token = np.concatenate([self._of_token, numbers])
        numbers = self._of_token[table.ids]
        words = numbers != _NO_WORD
        return numbers[words], np.concatenate([[0], np.cumsum(words)])[table.offsets]


class NotInEvaluation(Filter):
    """Drops rows of which a side stands in an evaluation set, whole or by a run of words.

    Args:
        text: What must not be shared.
        checksum: What tells that text from other text.
    """

    columns = ("reference", "translation")

    def __init__(self, text: EvaluationText, checksum: str) -> None:
        self._text, self._checksum = text, checksum
        self.reason = f"that share a sentence or {text.ngram} words in a row with an evaluation set"

    @property
    def identity(self) -> Mapping[str, Any]:
        """Its settings, and the checksum of the evaluation sets."""
        return {
            "filter": "evaluation sets",
            "ngram": self._text.ngram,
            "min_words": self._text.min_words,
            "sentences": self._checksum,
            # English is not named: what was selected before there were other languages is known again.
            **({} if self._text.language == ENGLISH else {"language": self._text.language}),
        }

    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""
        found = [self._text.found_in(joined(table[name])) for name in self.columns]
        return Verdict(~(found[0] | found[1]))


def _is_word(token: str) -> bool:
    return any(map(str.isalnum, token))


class _Powers:
    """Hashes of any runs of a text at the cost of three operations each: sums of words times powers of a base.

    Args:
        words: Numbers of words [word].
        seed: Decides the hashes.
    """

    def __init__(self, words: np.ndarray, seed: int) -> None:
        values = mix(words.astype(np.uint64) + salt(seed))
        self._sums = np.zeros(len(words) + 1, np.uint64)
        np.cumsum(values * _powers(_BASE, len(words)), out=self._sums[1:])
        self._back = _powers(_INVERSE, len(words) + 1)

    def hashes(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Hash runs, given their bounds [run]: numbers of 64 bits [run]."""
        return mix((self._sums[ends] - self._sums[starts]) * self._back[starts])


def _powers(base: int, count: int) -> np.ndarray:
    """The first powers of a number modulo 2**64 [count]."""
    powers = np.full(count, np.uint64(base))
    powers[:1] = 1
    return np.multiply.accumulate(powers)


class _Table:
    """Runs of words by hash.

    Args:
        hashes: Hashes [run].
        starts: Where each run begins among the words [run].
        counts: Number of words of each run [run].
    """

    def __init__(self, hashes: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> None:
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._starts, self._counts = hashes[order], starts[order], counts[order]
        # A look into a small table spares most searches.
        bits = max(16, int(16 * len(hashes)).bit_length())
        self._shift = np.uint64(64 - bits)
        self._marked = np.zeros(2**bits, bool)
        self._marked[self._hashes >> self._shift] = True

    def distinct(self, words: np.ndarray) -> bool:
        """Tell whether runs of equal hashes are equal."""
        same = np.flatnonzero(self._hashes[1:] == self._hashes[:-1])
        first, second = (self._starts[same], self._counts[same]), (self._starts[same + 1], self._counts[same + 1])
        return bool(_equal(words, *first, words, *second).all())

    def find(
        self, hashes: np.ndarray, words: np.ndarray, starts: np.ndarray, counts: np.ndarray, known: np.ndarray
    ) -> np.ndarray:
        """Find which runs of some words are in the table: their positions among the runs asked for."""
        maybe = np.flatnonzero(self._marked[hashes >> self._shift])
        if not len(self._hashes):
            return maybe
        at = np.minimum(np.searchsorted(self._hashes, hashes[maybe]), len(self._hashes) - 1)
        same = self._hashes[at] == hashes[maybe]
        maybe, at = maybe[same], at[same]
        equal = _equal(words, starts[maybe], counts[maybe], known, self._starts[at], self._counts[at])
        return maybe[equal]


def _equal(
    words: np.ndarray,
    starts: np.ndarray,
    counts: np.ndarray,
    others: np.ndarray,
    other_starts: np.ndarray,
    other_counts: np.ndarray,
) -> np.ndarray:
    """Compare runs word by word [run], bool."""
    equal = counts == other_counts
    rows = np.flatnonzero(equal)
    if not len(rows):
        return equal
    left, bounds = expand(words, starts[rows], counts[rows])
    right, _ = expand(others, other_starts[rows], counts[rows])
    equal[rows] = np.add.reduceat(left != right, bounds[:-1]) == 0
    return equal
