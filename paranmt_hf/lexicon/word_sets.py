"""The first step of a lexicon: the word set of each pair of sentences, on disk, and document frequencies.

A word counts once in a sentence, however often it occurs there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.text.tokens import CorpusIds, TokenTable
from paranmt_hf.text.word_rules import ENGLISH, word_tokenizer_for
from paranmt_hf.util.files import replacing, write_bytes
from paranmt_hf.util.records import read_json

# A word of a pair of sentences is written as its number times 4, plus the sides that it is on.
REFERENCE, TRANSLATION = 1, 2
SIDE_BITS = 2
WORDS = "words.parquet"
ENTRIES, SIZES, NUMBERS, DONE = "entries.int32", "sizes.int32", "rows.int32", "sets.json"


@dataclass(frozen=True)
class LexiconWords:
    """The words of a lexicon, and their document frequencies; a word's row is its index."""

    words: list[str]  # The words, in the order of their characters
    references: np.ndarray  # References with the word [word], int64
    translations: np.ndarray  # Translations with the word [word], int64
    pairs: int  # Pairs of sentences that were counted

    def __len__(self) -> int:
        return len(self.words)


def distinct_words(sides: Sequence[TokenTable], numbers: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct words of each pair of sentences, and their sides.

    `numbers` has the number of the word of each token, for the references and for the translations. Returns the words
    of each pair [entry], int32, as number * 4 + sides; and how many each pair has [pair], int32.
    """
    keys = []
    for side, table in enumerate(sides):
        pairs = np.repeat(np.arange(len(table)), np.diff(table.offsets))
        keys.append((pairs << 32) | (numbers[side].astype(np.int64) << 1) | side)
    joined = np.concatenate(keys)
    joined.sort()
    joined = joined[np.diff(joined, prepend=-1) != 0]
    words = joined >> 1
    first = np.diff(words, prepend=-1) != 0
    on_both = np.append(~first[1:], False)
    on = np.where(on_both, REFERENCE | TRANSLATION, (joined & 1) + 1)[first]
    words = words[first]
    entries = ((words & (2**31 - 1)) << SIDE_BITS) | on
    return entries.astype(np.int32), np.bincount(words >> 31, minlength=len(sides[0])).astype(np.int32)


def write_word_sets(tables: Iterable[pa.Table], folder: Path, limit: int, language: str = ENGLISH) -> None:
    """Write the words of a corpus of sentence pairs, and choose those of the lexicon.

    Chosen are the `limit` words in the most sentences; of equally frequent ones the first in the order of their
    characters. Memory holds the corpus's distinct words; the sets of words take about 100 bytes of disk for a pair.
    """
    tokenizer, numbers = word_tokenizer_for(language), CorpusIds()
    counts, pairs = np.zeros((2, 0), np.int64), 0
    with replacing(folder / ENTRIES) as entries_path, replacing(folder / SIZES) as sizes_path:
        with entries_path.open("wb") as entries_file, sizes_path.open("wb") as sizes_file:
            for table in tables:
                sides = tokenizer.tables(table["reference"], table["translation"])
                entries, sizes = distinct_words(sides, [numbers.of(side)[side.ids] for side in sides])
                entries_file.write(entries.data)
                sizes_file.write(sizes.data)
                counts = _add(counts, entries, len(numbers.id_of))
                pairs += len(sizes)
    _write_words(folder, list(numbers.id_of), counts, pairs, limit)


def _add(counts: np.ndarray, entries: np.ndarray, words: int) -> np.ndarray:
    """Count the sentences [side, word] of each word."""
    grown = np.zeros((2, words), np.int64)
    grown[:, : counts.shape[1]] = counts
    for side, bit in enumerate((REFERENCE, TRANSLATION)):
        grown[side] += np.bincount(entries[entries & bit != 0] >> SIDE_BITS, minlength=words)
    return grown


def _write_words(folder: Path, words: list[str], counts: np.ndarray, pairs: int, limit: int) -> None:
    """Choose the words of the lexicon and write them; the last file marks them as complete."""
    totals = counts.sum(axis=0).tolist()
    chosen = sorted(range(len(words)), key=lambda number: (-totals[number], words[number]))[:limit]
    chosen.sort(key=words.__getitem__)
    rows = np.full(len(words), -1, np.int32)
    rows[chosen] = np.arange(len(chosen), dtype=np.int32)
    write_bytes(folder / NUMBERS, rows.tobytes())
    columns = {"word": [words[number] for number in chosen], "references": counts[0, chosen]}
    with replacing(folder / WORDS) as aside:
        pq.write_table(pa.table({**columns, "translations": counts[1, chosen]}), aside, compression="zstd")
    write_bytes(folder / DONE, json.dumps({"pairs": pairs}).encode())


class WordSets:
    """The words of each pair of sentences in a folder, as `write_word_sets` wrote them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        pairs = read_json(folder / DONE, "the number of pairs of sentences")["pairs"]
        table = pq.read_table(folder / WORDS, use_threads=False)
        counts = [table[side].to_numpy() for side in ("references", "translations")]
        self.words = LexiconWords(table["word"].to_pylist(), counts[0], counts[1], pairs)
        self._rows = np.fromfile(folder / NUMBERS, np.int32)

    @staticmethod
    def complete(folder: Path) -> bool:
        """Whether a folder holds complete sets of words."""
        return (folder / DONE).is_file()

    def blocks(self, start: int, rows: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Read the sets of words from the pair `start` on, `rows` pairs at a time.

        Yields the row of each word [entry], int32, the sides that it is on [entry], and bounds [pair + 1] of the pairs
        in these. Words that are not in the lexicon are left out.
        """
        with (self._folder / ENTRIES).open("rb") as entries_file, (self._folder / SIZES).open("rb") as sizes_file:
            skipped = 0
            for done in range(0, start, rows):
                skipped += int(np.fromfile(sizes_file, np.int32, min(rows, start - done)).sum(dtype=np.int64))
            entries_file.seek(4 * skipped)
            while len(sizes := np.fromfile(sizes_file, np.int32, rows)):
                bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
                entries = np.fromfile(entries_file, np.int32, bounds[-1])
                words = self._rows[entries >> SIDE_BITS]
                known = words >= 0
                kept = np.concatenate([[0], np.cumsum(known)])
                yield words[known], entries[known] & (REFERENCE | TRANSLATION), kept[bounds]
