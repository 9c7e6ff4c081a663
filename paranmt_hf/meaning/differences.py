"""What two sentences say differently, in English: the rules of `rules.py`, numbers, names and addresses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paranmt_hf.meaning import sentence_pair as kinds
from paranmt_hf.meaning.items import Memory
from paranmt_hf.meaning.mismatch_columns import MISMATCHES, MismatchReader
from paranmt_hf.meaning.phrases import join_phrases
from paranmt_hf.meaning.rules import compare_pairs
from paranmt_hf.meaning.sentence_pair import KINDS, NEAR, NUMBER_REPLACED
from paranmt_hf.meaning.spelt_out import spelt_in_digits
from paranmt_hf.meaning.words import Words, tokens_of
from paranmt_hf.text.identity import mix
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.normal_form import normal_form

MEANING_MISMATCH = "meaning_mismatch"
MEANING_DEFINITION = 1  # Raise it when a rule or a list changes, so that columns of earlier corpora are computed again
NUMBERS, NAMES, ADDRESSES = KINDS, KINDS + 1, KINDS + 2
CLAIMS = {"number_mismatch": NUMBERS, "name_mismatch": NAMES, "address_mismatch": ADDRESSES}
SEEN_BY_RULES = {NUMBERS: 1 << kinds.COUNT | 1 << kinds.VERSION, NAMES: 1 << kinds.NAMED}
REASONS = {
    kinds.OPPOSITE: "{0} and {1} are opposites",
    kinds.ORDER: "{0} and {1} have changed places",
    NUMBERS: "the numbers differ",
    NAMES: "the names differ",
    ADDRESSES: "the addresses differ",
}


@dataclass(frozen=True)
class Differences:
    """The differences of pairs of sentences."""

    bits: np.ndarray  # Differences of each pair, as bits [pair], int32
    words: np.ndarray  # Numbers of the words of each difference [pair, difference, side], int32, -1 for none
    texts: list[str]  # The words by their numbers

    @property
    def counts(self) -> np.ndarray:
        """Number of kinds of differences of each pair [pair], int32."""
        return np.bitwise_count(self.bits).astype(np.int32)

    def reasons(self, pair: int) -> list[str]:
        """Say in words how the sentences of a pair differ."""
        return [self._reason(pair, kind) for kind in range(ADDRESSES + 1) if self.bits[pair] >> kind & 1]

    def _reason(self, pair: int, kind: int) -> str:
        """Say in words what one difference of a pair is."""
        numbers = self.words[pair, kind].tolist() if kind < KINDS else [-1, -1]
        words = [f"`{self.texts[number].rstrip('~')}`" if number >= 0 else "" for number in numbers]
        if kind in REASONS:
            return REASONS[kind].format(*words)
        if all(words):
            return f"{words[0]} is not {words[1]}"
        side = "first" if words[0] else "second"
        return f"{words[0] or words[1]} is in the {side} sentence alone"


class MeaningReader:
    """Compares English sentences, batch after batch.

    Args:
        capacity: Number of distinct words and runs after which all that was read is forgotten; results do not depend
            on it.
    """

    def __init__(self, capacity: int = 1_000_000) -> None:
        self._claims = MismatchReader(list(CLAIMS), capacity)
        self._capacity = capacity
        self._forget()

    def _forget(self) -> None:
        """Forget all words that were read."""
        self._words = Words()
        self._tokens = Memory(lambda chunk: ([self._words.number(token) for token in tokens_of(chunk)], []))

    def compare(self, sentences: pa.Array, first: np.ndarray, second: np.ndarray) -> Differences:
        """Find the differences of pairs of some sentences.

        Args:
            sentences: The sentences [sentence], string.
            first: Index of the first sentence of each pair [pair].
            second: Index of the second sentence of each pair [pair].
        """
        if len(self._tokens) > self._capacity:
            self._forget()
        chunks = self._claims.cut(spelt_in_digits(normal_form(sentences)))
        tokens, _ = self._tokens.lists(chunks.texts.dictionary)
        words, bounds = tokens.take(chunks.texts.indices.to_numpy()).flat()
        lexicon = self._words.lexicon()
        words, bounds = join_phrases(words, bounds[chunks.bounds], lexicon)
        bits, found = compare_pairs(words, bounds, first, second, lexicon)
        near, replaced = bits & NEAR != 0, bits & NUMBER_REPLACED != 0
        bits &= ~(NEAR | NUMBER_REPLACED)
        for name, kind in CLAIMS.items():
            one, other = self._claims.unconfirmed(name, chunks, first, second)
            differ = one & other
            if kind == NAMES:
                # Sentences that say much else may name other people and places without contradiction.
                differ &= near
            elif kind == NUMBERS:
                differ |= (one | other) & replaced
            # What the rules have seen is one difference, of which they know the words.
            differ &= bits & SEEN_BY_RULES.get(kind, 0) == 0
            bits |= differ.astype(np.int32) << kind
        return Differences(bits, found, self._words.texts)

    def column(self, references: pa.Array, translations: pa.Array) -> pa.Array:
        """Compute the column `meaning_mismatch` of pairs [pair], int32: how many kinds of differences each has."""
        first = np.arange(len(references))
        found = self.compare(pa.concat_arrays([references, translations]), first, first + len(references))
        return pa.array(found.counts, pa.int32())


class DifferentDocuments:
    """Finds documents that look like copies but do not mean the same; a document has one or more texts.

    Documents differ, too, if one of them alone has some number, name, negation or address, or if they have the same
    numbers in another order: "at 8 in room 9" and "at 9 in room 8". In languages other than English only numbers in
    digits and addresses count.

    Args:
        sides: For each text of a document a function that reads this text of the documents with some indices
            [document].
        language: Language of the texts (ISO 639-1).
    """

    def __init__(self, *sides: Callable[[np.ndarray], pa.Array], language: str = ENGLISH) -> None:
        self._sides = sides
        # Digits, units by their signs, and addresses are the same in every language.
        any_language = ("number_mismatch", "address_mismatch")
        self._reader = MismatchReader(MISMATCHES if language == ENGLISH else any_language)
        self._meanings = MeaningReader() if language == ENGLISH else None

    def between(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Mark the pairs of documents [pair] that differ in any of their texts.

        Args:
            first: Index of the first document of each pair.
            second: Index of the second document of each pair.
        """
        found = np.zeros(len(first), bool)
        for start in range(0, len(first), 2**17):
            part = slice(start, start + 2**17)
            documents, index_of = np.unique(np.concatenate([first[part], second[part]]), return_inverse=True)
            one, other = np.split(index_of, 2)
            for side in self._sides:
                texts = side(documents)
                found[part] |= self._reader.differ(texts, one, other)
                if self._meanings is not None:
                    found[part] |= self._meanings.compare(texts, one, other).bits != 0
        return found

    def signatures(self, count: int) -> np.ndarray:
        """Return a hash [document], uint64, of what each of the first `count` documents claims.

        Equal claims have equal hashes.
        """
        found = np.zeros(count, np.uint64)
        for start in range(0, count, 2**16):
            documents = np.arange(start, min(start + 2**16, count))
            for side in self._sides:
                found[documents] = mix(found[documents]) + self._reader.signatures(side(documents))
        return found
