"""Which words a corpus has and how often, while it is read; and which of them get a row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paranmt_hf.encoders.vocabulary import UNKNOWN
from paranmt_hf.errors import InputError
from paranmt_hf.text import cut_chunk
from paranmt_hf.tokens import WordTokenizer
from paranmt_hf.training.sent2vec.config import Sent2VecConfig

# Distinct words that are counted at once; some 150 bytes each.
MOST_DISTINCT = 8_000_000


@dataclass(frozen=True)
class Words:
    """The words that have a row.

    Attributes:
        names: The word of each row [word], by falling count; row 0 is `[UNK]`, the placeholder's while training.
        counts: How often each one occurs [word], int64; 0 for row 0.
        lines: Sentences of the corpus, known words or not: each ends in `</s>`.
        tokens: Words of the corpus and ends of lines, known or not.
    """

    names: list[str]
    counts: np.ndarray
    lines: int
    tokens: int

    def keep(self, config: Sent2VecConfig) -> np.ndarray:
        """Probability that a word is taken as a target [word]: section 2.1, q_p; may be above 1.

        The paper leaves open what the frequency is a share of. The authors' program counts all words, rare ones and
        ends of lines too (`initTableDiscard` in its `dictionary.cc`).
        """
        share = np.maximum(self.counts, 1) / self.tokens
        # A resolved configuration has a threshold and a count.
        ratio = (config.threshold or 0.0) / share
        chosen = self.counts >= max(config.min_target_count or 0, 1)
        return np.where(chosen, np.sqrt(ratio) + ratio, 0.0)


class WordCounter:
    """Numbers and counts the words of columns of sentences.

    Memory is bounded: where there are too many distinct words, the rarest so far are forgotten, and counted from zero
    if they come again, as the authors' program does (`readFromFile` in its `dictionary.cc`).

    Args:
        cut: How text is cut, `words` or `blanks`.
        most: Distinct words that are kept at once.
    """

    def __init__(self, cut: str, most: int = MOST_DISTINCT) -> None:
        self._cut = cut_chunk if cut == "words" else _whole
        self._most, self._rarest = most, 1
        self._number_of: dict[str, int] = {}
        self._counts = np.zeros(1024, np.int64)
        self._next = self._total = 0
        self.forgotten = 0
        self._begin()

    def _begin(self) -> None:
        self._tokenizer = WordTokenizer(cut=self._cut)
        self._vocabulary: Iterable[str] = ()
        self._numbers = np.empty(0, np.int32)

    def add(self, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Count the words of some sentences.

        Args:
            column: Sentences [sentence], without nulls.

        Returns:
            The number of each word [word], int32, and the words of each sentence [sentence], int32.
        """
        (table,) = self._tokenizer.tables(column)
        if table.vocabulary is not self._vocabulary:
            self._vocabulary, self._numbers = table.vocabulary, np.empty(0, np.int32)
        new = table.vocabulary[len(self._numbers) :]
        if len(new):
            self._numbers = np.concatenate([self._numbers, self._number(new)])
        numbers = self._numbers[table.ids]
        np.add.at(self._counts, numbers, 1)
        self._total += len(numbers)
        if len(self._number_of) > self._most:
            self._forget_rarest()
        return numbers, table.lengths

    def _number(self, words: Iterable[str]) -> np.ndarray:
        known, found = self._number_of, []
        for word in words:
            number = known.get(word)
            if number is None:
                number = known[word] = self._next
                self._next += 1
            found.append(number)
        if self._next > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros(max(self._next, len(self._counts)), np.int64)])
        return np.array(found, np.int32)

    def _forget_rarest(self) -> None:
        while len(self._number_of) > self._most * 3 // 4:
            self._rarest += 1
            counts, least = self._counts, self._rarest
            kept = {word: number for word, number in self._number_of.items() if counts[number] >= least}
            self.forgotten += len(self._number_of) - len(kept)
            # A number is not used again, and never gets a row.
            counts[counts < least] = 0
            self._number_of = kept
        self._begin()

    def choose(self, config: Sent2VecConfig, lines: int) -> tuple[Words, np.ndarray]:
        """Choose the words that get a row.

        Args:
            config: The settings, resolved.
            lines: Sentences that were read.

        Returns:
            The words, and the row of each number [number], int32, 0 for words without one.

        Raises:
            InputError: No word is left, or none of them can be a target.
        """
        counts, least = self._counts, config.min_count or 1
        # The placeholder's row has the name that unknown words have when sentences are encoded.
        found = [word for word, number in self._number_of.items() if counts[number] >= least and word != UNKNOWN]
        found.sort(key=lambda word: (-counts[self._number_of[word]], word))
        kept = found[: config.max_words]
        if not kept:
            most = int(counts.max(initial=0))
            raise InputError(
                f"no word occurs {least:,} times in the {lines:,} sentences, the most frequent one {most:,} times; "
                "lower --min-count, or give more text"
            )
        numbers = np.array([self._number_of[word] for word in kept])
        rows = np.zeros(self._next, np.int32)
        rows[numbers] = np.arange(1, len(kept) + 1)
        # Forgotten words are among them.
        tokens = self._total + lines
        words = Words([UNKNOWN, *kept], np.concatenate([[0], counts[numbers]]), lines, tokens)
        if words.counts[1] < (config.min_target_count or 1):
            raise InputError(
                f"no word can be a target: {kept[0]!r}, the most frequent one, occurs {words.counts[1]:,} times, and "
                f"--min-target-count is {config.min_target_count:,}; lower it, or give more text"
            )
        return words, rows


def _whole(chunk: str) -> list[str]:
    return [chunk] if chunk else []
