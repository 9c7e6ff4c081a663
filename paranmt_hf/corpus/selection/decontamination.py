"""Sentences that are also in an evaluation set: the whole sentence, or a long run of its words.

The word tokens with a letter or a digit of their normal forms are compared: case, white space and punctuation do not
count, nor do HTML entities, soft hyphens and the like (`text/normal_form.py`). Hashes find candidates; words decide.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.evaluation_sets import EvaluationSentences
from paranmt_hf.corpus.selection.filters import Filter, Verdict
from paranmt_hf.errors import InputError
from paranmt_hf.text.identity import mix, salt
from paranmt_hf.text.normal_form import normal_form
from paranmt_hf.text.tokens import PerToken, TokenTable, ranges
from paranmt_hf.text.word_rules import ENGLISH, word_tokenizer_for

NGRAM = 8
MIN_WORDS = 4
_NO_WORD = -1


class EvaluationText:
    """The sentences of evaluation sets, which are searched for in text of a language (ISO 639-1 code).

    No row may share `ngram` consecutive words with one. A sentence of fewer than `min_words` words is not looked for
    as a whole: short ones (`Thank you.`) are everywhere.
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
        self.sentences = sorted(set(sentences))
        self._tokenizer = word_tokenizer_for(language)
        (table,) = self._tokenizer.tables(normal_form(pa.array(self.sentences, pa.string())))
        self._ids = {token: number for number, token in enumerate(filter(is_word, table.vocabulary), 1)}
        self._numbers = PerToken(self._number, np.int64)
        words, bounds = self._look_up(table)
        counts = np.diff(bounds)
        long = long_enough(counts, min_words)
        self._whole = _RunTable(words, bounds[:-1][long], bounds[1:][long], long)
        runs_of = np.maximum(counts - ngram + 1, 0)
        runs, _ = ranges(bounds[:-1], runs_of)
        self._runs = _RunTable(words, runs, runs + ngram, np.repeat(np.arange(len(counts)), runs_of))

    def found_in(self, sentences: pa.Array) -> np.ndarray:
        """Mark strings [sentence], none null, that are evaluation sentences or share a run of words with one."""
        return self.items_of(sentences) >= 0

    def items_of(self, sentences: pa.Array) -> np.ndarray:
        """Index in `sentences` of the evaluation sentence that each string is or shares words with; -1 for none."""
        (table,) = self._tokenizer.tables(normal_form(sentences))
        words, bounds = self._look_up(table)
        found = np.full(len(sentences), -1, np.int64)
        hashes = _RunHashes(words)
        unknown = np.concatenate([[0], np.cumsum(words == 0)])
        sizes = np.diff(bounds)
        if len(words) >= self.ngram:
            starts = np.flatnonzero(unknown[self.ngram :] == unknown[: -self.ngram])
            owners = np.repeat(np.arange(len(sizes)), sizes)
            starts = starts[owners[starts] == owners[starts + self.ngram - 1]]
            runs, items = self._runs.find(hashes, starts, starts + self.ngram)
            found[owners[starts[runs]]] = items
        # A whole sentence says more than a run of its words.
        whole = np.flatnonzero((unknown[bounds[1:]] == unknown[bounds[:-1]]) & (sizes >= self.min_words))
        runs, items = self._whole.find(hashes, bounds[:-1][whole], bounds[1:][whole])
        found[whole[runs]] = items
        return found

    def _number(self, tokens: Sequence[str]) -> list[int]:
        return [self._ids.get(token, 0) if is_word(token) else _NO_WORD for token in tokens]

    def _look_up(self, table: TokenTable) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the words of sentences [word], 0 for words of no evaluation set, and bounds [sentence + 1]."""
        numbers = self._numbers.of(table)[table.ids]
        words = numbers != _NO_WORD
        return numbers[words], np.concatenate([[0], np.cumsum(words)])[table.offsets]


class NotInEvaluation(Filter):
    """Drops rows with a side in an evaluation set, whole or by a run of words."""

    explains, task = True, "decontaminate"

    def __init__(self, found: EvaluationSentences, text: EvaluationText) -> None:
        self._text, self._set_of = text, dict(zip(found.texts, found.sets, strict=True))
        reason = f"that share a sentence or {text.ngram} words in a row with an evaluation set"
        settings: dict[str, Any] = {"ngram": text.ngram, "min_words": text.min_words, "language": text.language}
        super().__init__("evaluation sets", reason, ["reference", "translation"], sentences=found.checksum, **settings)

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


class _RunHashes:
    """Hashes of any runs of numbered words: sums of a hash of each word, whatever their order."""

    def __init__(self, words: np.ndarray) -> None:
        self.words = words
        self._sums = np.zeros(len(words) + 1, np.uint64)
        np.cumsum(mix(words.astype(np.uint64) + salt(0)), out=self._sums[1:])

    def of(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Hash runs, given their bounds [run]: numbers of 64 bits [run]."""
        return self._sums[ends] - self._sums[starts]


class _RunTable:
    """Runs of words, given by their bounds [run] and the sentences that they are from [run], in a hash table."""

    def __init__(self, words: np.ndarray, starts: np.ndarray, ends: np.ndarray, owners: np.ndarray) -> None:
        hashes = _RunHashes(words).of(starts, ends)
        order = np.argsort(hashes, kind="stable")
        self._words, self._hashes, self._owners = words, hashes[order], owners[order]
        self._starts, self._ends = starts[order], ends[order]
        # A look into a small table saves most searches.
        bits = max(16, int(16 * len(hashes)).bit_length())
        self._shift = np.uint64(64 - bits)
        self._marked = np.zeros(2**bits, bool)
        self._marked[self._hashes >> self._shift] = True

    def find(self, text: _RunHashes, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Find which runs of a text, given their bounds [run], are in the table.

        Returns their indices among these runs, and for each a sentence that has it.
        """
        hashes = text.of(starts, ends)
        maybe = np.flatnonzero(self._marked[hashes >> self._shift])
        first, last = (np.searchsorted(self._hashes, hashes[maybe], side) for side in ("left", "right"))
        same = np.flatnonzero(first < last)
        found, owners = [], []
        for run, low, high in zip(maybe[same], first[same], last[same], strict=True):
            words = text.words[starts[run] : ends[run]]
            for at in range(low, high):
                if np.array_equal(words, self._words[self._starts[at] : self._ends[at]]):
                    found.append(run)
                    owners.append(self._owners[at])
                    break
        return np.array(found, np.int64), np.array(owners, np.int64)
