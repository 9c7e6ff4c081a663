"""The columns `number_mismatch`, `negation_mismatch`, `name_mismatch` and `address_mismatch`.

Each counts the claims of one sentence of a pair that the other does not confirm, both ways added up (`items.py`). The
normal forms of the sentences are compared (`text/normal_form.py`). `numbers.py`, `negations.py`, `names.py` and
`addresses.py` find the claims. They work on chunks, which are texts between blanks, and on runs of chunks; each
distinct chunk or run is read once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.meaning import chunks as marks
from paranmt_hf.meaning.addresses import addresses_in, has_address
from paranmt_hf.meaning.chunks import Chunks
from paranmt_hf.meaning.items import Claims, Lists, Memory, Statement, count_unconfirmed
from paranmt_hf.meaning.names import WORD, name_bits, name_keys, names_in
from paranmt_hf.meaning.negations import negation_bits, negation_mismatch
from paranmt_hf.meaning.number_words import number_bits
from paranmt_hf.meaning.numbers import numbers_in
from paranmt_hf.text.normal_form import normal_form

MISMATCHES = ("number_mismatch", "negation_mismatch", "name_mismatch", "address_mismatch")
# Flags without which a sentence makes no claims of a kind
NEEDED = {
    "number_mismatch": (marks.NUMBER, marks.CENT),
    "name_mismatch": (marks.CAPITAL,),
    "address_mismatch": (marks.ADDRESS,),
}
DEFINITION = 3  # Raise it when a definition changes, so that columns of earlier corpora are computed again


class MismatchReader:
    """Computes columns of mismatches, batch after batch.

    Args:
        wanted: Names of the columns.
        capacity: Number of distinct chunks and runs after which all that was read is forgotten; results do not depend
            on it.
    """

    def __init__(self, wanted: Sequence[str] = MISMATCHES, capacity: int = 1_000_000) -> None:
        self._wanted, self._capacity = wanted, capacity
        self._forget()

    def _forget(self) -> None:
        """Forget all chunks and runs that were read."""
        # Each key gets the next number when it is first asked for.
        self._keys: dict[str, int] = defaultdict(count().__next__)
        self._claims = Claims()
        self._chunks = Memory(self._read_chunk)
        self._numbers = Memory(lambda run: self._read(numbers_in(run)))
        self._names = Memory(lambda run: self._read(names_in(run)))
        self._addresses = Memory(lambda run: self._read(addresses_in(run)))

    def _read_chunk(self, chunk: str) -> tuple[list[int], list[int]]:
        """Return the flags of a chunk, as a list of one, and the numbers of the keys of names that it confirms."""
        words = [chunk] if chunk.isalpha() else WORD.findall(chunk)
        bits = number_bits(chunk, words) | negation_bits(chunk, words) | name_bits(chunk, words)
        if has_address(chunk):
            bits |= marks.ADDRESS
        return [bits], [self._keys[key] for key in name_keys(chunk, words)]

    def _read(self, found: Statement) -> tuple[list[int], list[int]]:
        """Return the numbers of the claims of a statement, and of the keys that it confirms."""
        claims = [self._claims.number(claim, self._keys) for claim in found.claims]
        return claims, [self._keys[key] for key in found.evidence]

    def columns(self, references: pa.Array, translations: pa.Array) -> dict[str, pa.Array]:
        """Compute the columns of pairs.

        Args:
            references: First sentences [pair], string.
            translations: Second sentences [pair], string.

        Returns:
            Each wanted column [pair], int32, by its name.
        """
        first = np.arange(len(references))
        counts = self.counts(pa.concat_arrays([references, translations]), first, first + len(references))
        return {name: pa.array(count, pa.int32()) for name, count in counts.items()}

    def counts(self, sentences: pa.Array, first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
        """Compute the columns of pairs of some sentences.

        Args:
            sentences: The sentences [sentence], string.
            first: Index of the first sentence of each pair [pair].
            second: Index of the second sentence of each pair [pair].

        Returns:
            Each wanted column [pair], by its name.
        """
        return self._counts(self.cut(normal_form(sentences)), first, second)

    def differ(self, sentences: pa.Array, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Mark the pairs [pair] of some sentences with a mismatch, or with the same numbers in another order.

        Args:
            sentences: The sentences [sentence], string.
            first: Index of the first sentence of each pair.
            second: Index of the second sentence of each pair.
        """
        chunks = self.cut(normal_form(sentences))
        claims, bounds = self._numbers_of(chunks)[0].flat()
        values = self._claims.hashes(claims, first_key=True)
        together = _sums(values, bounds)
        # A sum weighted by odd numbers depends on the order, and the plain sum does not.
        positions = np.arange(len(claims)) - np.repeat(bounds[:-1], np.diff(bounds))
        in_order = _sums(values * (2 * positions + 1).astype(np.uint64), bounds)
        differ = (together[first] == together[second]) & (in_order[first] != in_order[second])
        for counts in self._counts(chunks, first, second).values():
            differ |= counts > 0
        return differ

    def signatures(self, sentences: pa.Array) -> np.ndarray:
        """Return a hash [sentence], uint64, of the claims of each sentence except negations.

        Equal claims have equal hashes.
        """
        chunks, sums = self.cut(normal_form(sentences)), np.zeros(len(sentences), np.uint64)
        for name, read in self._readers.items():
            if name in self._wanted:
                claims, bounds = read(chunks)[0].flat()
                sums += _sums(self._claims.hashes(claims), bounds)
        return sums

    def cut(self, texts: pa.Array) -> Chunks:
        """Cut texts in their normal form at blanks, and find the flags and keys of each chunk."""
        if sum(map(len, (self._chunks, self._numbers, self._names, self._addresses))) > self._capacity:
            self._forget()
        pieces = pc.split_pattern(texts, " ")
        texts = pieces.flatten().dictionary_encode()
        bounds = pieces.offsets.to_numpy()
        bits, keys = self._chunks.lists(texts.dictionary)
        chosen = texts.indices.to_numpy()
        return Chunks(texts, bounds - bounds[0], bits.values[bits.starts][chosen], keys.take(chosen))

    def _counts(self, chunks: Chunks, first: np.ndarray, second: np.ndarray) -> dict[str, np.ndarray]:
        """Compute the wanted columns [pair] of pairs of sentences."""
        counts = {}
        for name in self._wanted:
            if name == "negation_mismatch":
                counts[name] = negation_mismatch(chunks, first, second)
            else:
                claims, *evidence = self._readers[name](chunks)
                counts[name] = self._unconfirmed(claims, evidence, first, second)
                counts[name] += self._unconfirmed(claims, evidence, second, first)
        return counts

    def unconfirmed(
        self, name: str, chunks: Chunks, first: np.ndarray, second: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mark the pairs of sentences whose first claims what the second does not confirm, and the other way round.

        Args:
            name: Column of the kind of claims, but not `negation_mismatch`.
            chunks: The sentences, cut at blanks.
            first: Index of the first sentence of each pair [pair].
            second: Index of the second sentence of each pair [pair].

        Returns:
            A mask of pairs [pair] for each direction.
        """
        if not chunks.has(*NEEDED[name]).any():
            nothing = np.zeros(len(first), bool)
            return nothing, nothing
        claims, *evidence = self._readers[name](chunks)
        # Both directions at once, because for few pairs each call takes longer than its work.
        both = np.concatenate([first, second]), np.concatenate([second, first])
        one, other = np.split(self._unconfirmed(claims, evidence, *both) > 0, 2)
        return one, other

    def _unconfirmed(self, claims: Lists, evidence: list[Lists], one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Count the claims of one sentence of each pair that the other does not confirm [pair]."""
        return count_unconfirmed(claims.take(one), self._claims, *(part.take(other) for part in evidence))

    @property
    def _readers(self) -> dict[str, Callable[[Chunks], list[Lists]]]:
        """For each column the function that finds the claims of each sentence, and its evidence in several lists."""
        return {
            "number_mismatch": self._numbers_of,
            "name_mismatch": self._names_of,
            "address_mismatch": self._addresses_of,
        }

    def _numbers_of(self, chunks: Chunks) -> list[Lists]:
        """Find the claims and the evidence of numbers in each sentence."""
        number = chunks.has(marks.NUMBER)
        # `and` in `two hundred and five`
        joins = chunks.has(marks.AND) & chunks.before(chunks.has(marks.SCALE)) & chunks.after(number)
        # `per cent`
        per, cent = chunks.has(marks.PER), chunks.has(marks.CENT)
        joins |= (per & chunks.after(cent)) | (cent & chunks.before(per))
        # `10 a.m.`
        joins |= chunks.has(marks.HALF_DAY) & chunks.before(number)
        # `a` in `half a million`
        a, half, scale = (chunks.has(bit) for bit in (marks.A, marks.HALF, marks.SCALE))
        joins |= a & chunks.before(half) & chunks.after(scale)
        # `a half`, `a third`, and `and` in `one and a half`
        part = a & chunks.after(half | chunks.has(marks.PART))
        joins |= part | (chunks.has(marks.AND) & chunks.before(number) & chunks.after(part))
        none = np.zeros_like(number)
        runs, bounds = chunks.runs(number | joins, none, none)
        return [lists.joined(bounds) for lists in self._numbers.lists(runs)]

    def _addresses_of(self, chunks: Chunks) -> list[Lists]:
        """Find the claims and the evidence of addresses in each sentence."""
        address = chunks.has(marks.ADDRESS)
        runs, bounds = chunks.runs(address, address, np.zeros_like(address))
        return [lists.joined(bounds) for lists in self._addresses.lists(runs)]

    def _names_of(self, chunks: Chunks) -> list[Lists]:
        """Find the claims and the evidence of names in each sentence."""
        letters, capital = chunks.has(marks.LETTERS), chunks.has(marks.CAPITAL)
        ends = chunks.has(marks.ENDS)
        opens = chunks.begins | chunks.before(ends) | chunks.has(marks.OPENS)
        runs, bounds = chunks.runs(capital, chunks.before(chunks.has(marks.TAIL)) | opens, opens)
        claims, initials = (lists.joined(bounds) for lists in self._names.lists(runs))
        headline = (2 * chunks.count(capital) > chunks.count(letters)) & (chunks.count(chunks.has(marks.PLAIN)) == 0)
        claims = Lists(claims.values, claims.starts, np.where(headline, 0, claims.lengths))
        return [claims, chunks.keys.joined(chunks.bounds), initials]


def _sums(values: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Add up the values [value], uint64, of each sentence, between its bounds [sentence + 1]; sums may wrap around."""
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    return totals[bounds[1:]] - totals[bounds[:-1]]
