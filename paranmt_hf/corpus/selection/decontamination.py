"""Sentences that are also in an evaluation set: the whole sentence, or a long run of its words.

The word tokens with a letter or a digit of their normal forms are compared: case, white space and punctuation do not
count, nor do HTML entities, soft hyphens and the like (`text/normal_form.py`). Runs of words are compared by hashes of
64 bits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.evaluation_sets import EvaluationSentences
from paranmt_hf.corpus.selection.filters import Filter, Verdict
from paranmt_hf.errors import InputError
from paranmt_hf.text.identity import RunHashes, mix, salt
from paranmt_hf.text.normal_form import normal_form
from paranmt_hf.text.tokens import PerToken, TokenTable, ranges
from paranmt_hf.text.word_rules import ENGLISH, word_tokenizer_for

MIN_WORDS = 4
UNKNOWN_WORD, NO_WORD = 0, -1  # Numbers of a word of no evaluation set, and of a token that is no word


class EvaluationText:
    """The sentences of evaluation sets, which are searched for in text of a language (ISO 639-1 code).

    No row may share `ngram` consecutive words with one. A sentence of fewer than `min_words` words is not looked for
    as a whole: short ones (`Thank you.`) are everywhere.
    """

    def __init__(
        self,
        sentences: Collection[str],
        *,
        ngram: int = 8,
        min_words: int = MIN_WORDS,
        language: str = ENGLISH,
    ) -> None:
        self.ngram, self.min_words, self.language = ngram, min_words, language
        self.sentences = sorted(set(sentences))
        self._tokenizer = word_tokenizer_for(language)
        (table,) = self._tokenizer.tables(normal_form(pa.array(self.sentences, pa.string())))
        self._ids = {token: number for number, token in enumerate(filter(is_word, table.vocabulary), 1)}
        self._numbers = PerToken(self._number, np.int64)
        words, bounds = self._look_up(table)
        hashes = _hashes(words)
        counts = np.diff(bounds)
        long = long_enough(counts, min_words)
        self._whole = _HashTable(hashes.of(bounds[:-1][long], bounds[1:][long]), long)
        runs = np.maximum(counts - ngram + 1, 0)
        starts, _ = ranges(bounds[:-1], runs)
        self._runs = _HashTable(hashes.of(starts, starts + ngram), np.repeat(np.arange(len(counts)), runs))

    def found_in(self, sentences: pa.Array) -> np.ndarray:
        """Mark strings [sentence], none null, that are evaluation sentences or share a run of words with one."""
        return self.items_of(sentences) >= 0

    def items_of(self, sentences: pa.Array) -> np.ndarray:
        """Index in `sentences` of the evaluation sentence that each string is or shares words with; -1 for none."""
        (table,) = self._tokenizer.tables(normal_form(sentences))
        words, bounds = self._look_up(table)
        found = np.full(len(sentences), -1, np.int64)
        hashes = _hashes(words)
        unknown = np.concatenate([[0], np.cumsum(words == UNKNOWN_WORD)])
        sizes = np.diff(bounds)
        if len(words) >= self.ngram:
            starts = np.flatnonzero(unknown[self.ngram :] == unknown[: -self.ngram])
            owners = np.repeat(np.arange(len(sizes)), sizes)
            starts = starts[owners[starts] == owners[starts + self.ngram - 1]]
            runs, items = self._runs.find(hashes.of(starts, starts + self.ngram))
            found[owners[starts[runs]]] = items
        # A whole sentence says more than a run of its words.
        whole = np.flatnonzero((unknown[bounds[1:]] == unknown[bounds[:-1]]) & (sizes >= self.min_words))
        runs, items = self._whole.find(hashes.of(bounds[:-1][whole], bounds[1:][whole]))
        found[whole[runs]] = items
        return found

    def _number(self, tokens: Sequence[str]) -> list[int]:
        return [self._ids.get(token, UNKNOWN_WORD) if is_word(token) else NO_WORD for token in tokens]

    def _look_up(self, table: TokenTable) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the words of sentences [word], and bounds [sentence + 1]."""
        numbers = self._numbers.of(table)[table.ids]
        words = numbers != NO_WORD
        return numbers[words], np.concatenate([[0], np.cumsum(words)])[table.offsets]


class NotInEvaluation(Filter):
    """Drops rows with a side in an evaluation set, whole or by a run of words."""

    explains, task = True, "decontaminate"

    def __init__(self, found: EvaluationSentences, text: EvaluationText) -> None:
        self._text = text
        self._set_of = dict(zip(found.texts, found.sets, strict=True))
        super().__init__(
            "evaluation sets",
            f"that share a sentence or {text.ngram} words in a row with an evaluation set",
            ["reference", "translation"],
            sentences=found.checksum,
            ngram=text.ngram,
            min_words=text.min_words,
            language=text.language,
        )

    def judge(self, table: pa.Table) -> Verdict:
        found = [self._text.found_in(table[name].combine_chunks()) for name in self.columns]
        return Verdict(~(found[0] | found[1]))

    def explain(self, table: pa.Table) -> list[tuple[str, str]]:
        left, right = (self._text.items_of(table[name].combine_chunks()) for name in self.columns)
        items = [self._text.sentences[item] for item in np.where(left >= 0, left, right).tolist()]
        return [(item, self._set_of[item]) for item in items]


def is_word(token: str) -> bool:
    """Whether a token has a letter or a digit."""
    return any(map(str.isalnum, token))


def long_enough(counts: np.ndarray, least: int) -> np.ndarray:
    """Find the evaluation sentences with enough words [long sentence], given the words of each [sentence]."""
    long = np.flatnonzero(counts >= least)
    if not len(long):
        raise InputError(
            f"no evaluation sentence has {least} words, so nothing can be found; name folders with evaluation sets"
        )
    return long


def _hashes(words: np.ndarray) -> RunHashes:
    return RunHashes(mix(words.astype(np.uint64) + salt(0)))


class _HashTable:
    """Looks up hashes [run], of which each has an owner."""

    def __init__(self, hashes: np.ndarray, owners: np.ndarray) -> None:
        self._hashes, first = np.unique(hashes, return_index=True)
        self._owners = owners[first]
        # A look into a small table saves most searches.
        bits = max(16, int(16 * len(self._hashes)).bit_length())
        self._shift = np.uint64(64 - bits)
        self._marked = np.zeros(2**bits, bool)
        self._marked[self._hashes >> self._shift] = True

    def find(self, hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the hashes [found] that are in the table, and their owners."""
        maybe = np.flatnonzero(self._marked[hashes >> self._shift])
        places = np.searchsorted(self._hashes, hashes[maybe]).clip(max=len(self._hashes) - 1)
        same = self._hashes[places] == hashes[maybe]
        return maybe[same], self._owners[places[same]]
