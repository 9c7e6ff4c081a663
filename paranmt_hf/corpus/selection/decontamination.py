"""Finds sentences that are also in an evaluation set: the whole sentence, or a long run of its words.

Sentences are compared by the words of their normal forms (`text/normal_form.py`), which are tokens with a letter or a
digit. So case, white space, punctuation, HTML entities, soft hyphens and the like do not matter. Runs of words are
compared by hashes of 64 bits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.evaluation_sets import EvaluationSentences
from paranmt_hf.corpus.selection.filters import Filter, Verdict
from paranmt_hf.errors import InputError
from paranmt_hf.text.identity import RunHashes, mix, salt
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.normal_form import normal_form
from paranmt_hf.text.tokens import PerToken, TokenTable
from paranmt_hf.text.word_rules import word_tokenizer_for
from paranmt_hf.util.ranges import ranges

MIN_WORDS = 4  # Evaluation sentences with fewer words are not looked for
# Number of every word that is in no evaluation sentence, and number of tokens that are no words.
UNKNOWN_WORD, NO_WORD = 0, -1


class EvaluationText:
    """The sentences of evaluation sets, which can be searched for in text.

    Args:
        sentences: The evaluation sentences.
        ngram: Number of consecutive words of an evaluation sentence by which text is found.
        min_words: Sentences with fewer words are not looked for as a whole, because short ones, such as `Thank you.`,
            are everywhere.
        language: Language of the text (ISO 639-1).

    Attributes:
        sentences: The distinct evaluation sentences, sorted.

    Raises:
        InputError: If no sentence has `min_words` words.
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
        """Mark the texts [text] that are an evaluation sentence or share a run of words with one; none may be null."""
        return self.items_of(sentences) >= 0

    def items_of(self, sentences: pa.Array) -> np.ndarray:
        """Find the evaluation sentence that each text [text] is, or shares a run of words with.

        Returns:
            The index [text] of the sentence in `sentences`; -1 for none.
        """
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
        # Whole sentences come last, because an equal sentence is better evidence than a shared run of words.
        whole = np.flatnonzero((unknown[bounds[1:]] == unknown[bounds[:-1]]) & (sizes >= self.min_words))
        runs, items = self._whole.find(hashes.of(bounds[:-1][whole], bounds[1:][whole]))
        found[whole[runs]] = items
        return found

    def _number(self, tokens: Sequence[str]) -> list[int]:
        """Return the number of each token."""
        return [self._ids.get(token, UNKNOWN_WORD) if is_word(token) else NO_WORD for token in tokens]

    def _look_up(self, table: TokenTable) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the words [word] in all sentences, and the bounds of each sentence [sentence + 1]."""
        numbers = self._numbers.of(table)[table.ids]
        words = numbers != NO_WORD
        return numbers[words], np.concatenate([[0], np.cumsum(words)])[table.offsets]


class NotInEvaluation(Filter):
    """Drops rows with a side that is an evaluation sentence, or shares a run of words with one.

    Args:
        found: The evaluation sentences and the files they are from.
        text: The same sentences, to be searched for.
    """

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
    """Whether a token is a word, because it has a letter or a digit."""
    return any(map(str.isalnum, token))


def long_enough(counts: np.ndarray, least: int) -> np.ndarray:
    """Return the indices of the evaluation sentences that have at least `least` words.

    Args:
        counts: Number of words in each sentence [sentence].
        least: Smallest number of words.

    Raises:
        InputError: If there is no such sentence.
    """
    long = np.flatnonzero(counts >= least)
    if not len(long):
        raise InputError(
            f"no evaluation sentence has {least} words, so nothing can be found; name folders with evaluation sets"
        )
    return long


def _hashes(words: np.ndarray) -> RunHashes:
    """Return an object that hashes runs of words, given the numbers of all words [word]."""
    return RunHashes(mix(words.astype(np.uint64) + salt(0)))


class _HashTable:
    """Looks up hashes, each of which has an owner.

    Args:
        hashes: The hashes [hash].
        owners: Number of the owner of each hash [hash]; among equal hashes the first counts.
    """

    def __init__(self, hashes: np.ndarray, owners: np.ndarray) -> None:
        self._hashes, first = np.unique(hashes, return_index=True)
        self._owners = owners[first]
        # Most hashes that are not in the table are found out by their upper bits, without a search.
        bits = max(16, int(16 * len(self._hashes)).bit_length())
        self._shift = np.uint64(64 - bits)
        self._marked = np.zeros(2**bits, bool)
        self._marked[self._hashes >> self._shift] = True

    def find(self, hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices of those `hashes` that are in the table, and their owners."""
        maybe = np.flatnonzero(self._marked[hashes >> self._shift])
        positions = np.searchsorted(self._hashes, hashes[maybe]).clip(max=len(self._hashes) - 1)
        same = self._hashes[positions] == hashes[maybe]
        return maybe[same], self._owners[positions[same]]
