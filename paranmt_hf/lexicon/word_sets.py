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
REFERENCE, TRANSLATION, SIDE_BITS = 1, 2, 2
SETS, ROWS, WORDS, DONE = "sets.arrow", "rows.int32", "words.parquet", "sets.json"
BLOCK_PAIRS = 100_000  # Pairs of sentences that are read at once
SCHEMA = pa.schema({"words": pa.list_(pa.int32())})


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
    of each pair [entry], int32, as number * 4 + sides; and the bounds of each pair in these [pair + 1], int32.
    """
    keys = []
    for side, table in enumerate(sides):
        pairs = np.repeat(np.arange(len(table)), np.diff(table.offsets))
        keys.append((pairs << 32) | (numbers[side].astype(np.int64) << 1) | side)
    joined = np.concatenate(keys)
    # Three times as fast as `np.unique`.
    joined.sort()
    joined = joined[np.diff(joined, prepend=-1) != 0]
    words = joined >> 1
    first = np.diff(words, prepend=-1) != 0
    on_both = np.append(~first[1:], False)
    on = np.where(on_both, REFERENCE | TRANSLATION, (joined & 1) + 1)[first]
    words = words[first]
    entries = ((words & (2**31 - 1)) << SIDE_BITS) | on
    bounds = np.searchsorted(words >> 31, np.arange(len(sides[0]) + 1))
    return entries.astype(np.int32), bounds.astype(np.int32)


def write_word_sets(tables: Iterable[pa.Table], folder: Path, limit: int, language: str = ENGLISH) -> None:
    """Write the words of a corpus of sentence pairs, and choose those of the lexicon.

    Chosen are the `limit` words in the most sentences; of equally frequent ones the first in the order of their
    characters. Memory holds the corpus's distinct words; the sets of words take about 100 bytes of disk for a pair.
    """
    tokenizer, numbers = word_tokenizer_for(language), CorpusIds()
    counts = np.zeros((2, 0), np.int64)
    pairs = 0
    with replacing(folder / SETS) as path, pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
        for table in tables:
            sides = tokenizer.tables(table["reference"], table["translation"])
            entries, bounds = distinct_words(sides, [numbers.of(side)[side.ids] for side in sides])
            writer.write_batch(pa.record_batch([pa.ListArray.from_arrays(bounds, entries)], schema=SCHEMA))
            counts = np.pad(counts, ((0, 0), (0, len(numbers.id_of) - counts.shape[1])))
            for side, bit in enumerate((REFERENCE, TRANSLATION)):
                counts[side] += np.bincount(entries[entries & bit != 0] >> SIDE_BITS, minlength=counts.shape[1])
            pairs += len(bounds) - 1
    words = list(numbers.id_of)
    totals = counts.sum(axis=0).tolist()
    chosen = sorted(range(len(words)), key=lambda number: (-totals[number], words[number]))[:limit]
    chosen.sort(key=words.__getitem__)
    rows = np.full(len(words), -1, np.int32)
    rows[chosen] = np.arange(len(chosen), dtype=np.int32)
    write_bytes(folder / ROWS, rows.tobytes())
    columns = {
        "word": [words[number] for number in chosen],
        "references": counts[0, chosen],
        "translations": counts[1, chosen],
    }
    with replacing(folder / WORDS) as aside:
        pq.write_table(pa.table(columns), aside, compression="zstd")
    # The last file marks them as complete.
    write_bytes(folder / DONE, json.dumps({"pairs": pairs}).encode())


class WordSets:
    """The words of each pair of sentences in a folder, as `write_word_sets` wrote them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        pairs = read_json(folder / DONE, "the number of pairs of sentences")["pairs"]
        table = pq.read_table(folder / WORDS, use_threads=False)
        counts = [table[side].to_numpy() for side in ("references", "translations")]
        self.words = LexiconWords(table["word"].to_pylist(), counts[0], counts[1], pairs)
        self._rows = np.fromfile(folder / ROWS, np.int32)

    @staticmethod
    def complete(folder: Path) -> bool:
        """Whether a folder holds complete sets of words."""
        return (folder / DONE).is_file()

    def blocks(self, start: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Read the sets of words from the pair `start` on, block by block.

        Yields the row of each word [entry], int32, the sides that it is on [entry], and bounds [pair + 1] of the pairs
        in these. Words that are not in the lexicon are left out.
        """
        with pa.memory_map(str(self._folder / SETS)) as source, pa.ipc.open_file(source) as file:
            column = file.read_all()["words"]
            for first in range(start, len(column), BLOCK_PAIRS):
                sets = column.slice(first, BLOCK_PAIRS).combine_chunks()
                bounds = sets.offsets.to_numpy()
                entries = sets.values.to_numpy()[bounds[0] : bounds[-1]]
                rows = self._rows[entries >> SIDE_BITS]
                known = rows >= 0
                kept = np.concatenate([[0], np.cumsum(known)])
                yield rows[known], entries[known] & (REFERENCE | TRANSLATION), kept[bounds - bounds[0]]
