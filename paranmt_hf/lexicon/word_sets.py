"""Write and read the set of words of each sentence pair, the first step of a lexicon, and document frequencies.

A word counts once in a sentence, however often it occurs there. Four files hold the result:

- `sets.arrow`: the entries of each sentence pair, as `distinct_words` returns them, with all words of the corpus;
- `words.parquet`: the words of the lexicon and their document frequencies; a word's place there is its row;
- `rows.int32`: the row of each word of the corpus by its number, -1 for a word that is not in the lexicon;
- `sets.json`: the number of sentence pairs. It is written last, and marks the others as complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.tokens import CorpusIds, TokenTable
from paranmt_hf.text.word_rules import word_tokenizer_for
from paranmt_hf.util.files import replacing, write_bytes
from paranmt_hf.util.records import read_json

# An entry, a word of a sentence pair, is the word's number shifted left by `SIDE_BITS`, plus the sides it occurs on:
# `REFERENCE`, `TRANSLATION` or their sum.
REFERENCE = 1
TRANSLATION = 2
SIDE_BITS = 2
SETS, ROWS, WORDS, DONE = "sets.arrow", "rows.int32", "words.parquet", "sets.json"
BLOCK_PAIRS = 100_000  # Sentence pairs that `WordSets.blocks` reads at once
SCHEMA = pa.schema({"words": pa.list_(pa.int32())})


@dataclass(frozen=True)
class LexiconWords:
    """The words of a lexicon and their document frequencies; a word's index is called its row."""

    words: list[str]  # The words, in the order of their characters
    references: np.ndarray  # Number of references with each word [word], int64
    translations: np.ndarray  # Number of translations with each word [word], int64
    pairs: int  # Number of sentence pairs of the corpus

    def __len__(self) -> int:
        return len(self.words)


def distinct_words(sides: Sequence[TokenTable], numbers: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Find the distinct words of each sentence pair, and the sides that they occur on.

    Args:
        sides: The tokens of the references and of the translations.
        numbers: The word number of each token [token], for the references and for the translations.

    Returns:
        The entries of all pairs [entry], int32: word number * 4, plus 1 if the reference has the word, plus 2 if the
        translation has it. And the bounds of the pairs [pair + 1], int32: the entries of pair p are those from
        `bounds[p]` up to `bounds[p + 1]`.
    """
    # The key of a token has its pair from bit 32 on, its word number in bits 1 to 31, and its side in bit 0. Sorted
    # keys thus have the tokens of a word in a pair next to each other, those of the reference first.
    keys = []
    for side, table in enumerate(sides):
        pairs = np.repeat(np.arange(len(table)), np.diff(table.offsets))
        keys.append((pairs << 32) | (numbers[side].astype(np.int64) << 1) | side)
    joined = np.concatenate(keys)
    # This removes repeated keys three times as fast as `np.unique`.
    joined.sort()
    joined = joined[np.diff(joined, prepend=-1) != 0]
    # Without the side, a key has its pair from bit 31 on and its word number in the 31 bits below.
    words = joined >> 1
    first = np.diff(words, prepend=-1) != 0
    on_both = np.append(~first[1:], False)
    sides_of_word = np.where(on_both, REFERENCE | TRANSLATION, (joined & 1) + 1)[first]
    words = words[first]
    entries = ((words & (2**31 - 1)) << SIDE_BITS) | sides_of_word
    bounds = np.searchsorted(words >> 31, np.arange(len(sides[0]) + 1))
    return entries.astype(np.int32), bounds.astype(np.int32)


def write_word_sets(tables: Iterable[pa.Table], folder: Path, limit: int, language: str = ENGLISH) -> None:
    """Write the word sets of a corpus of sentence pairs, and choose the words of the lexicon.

    The lexicon gets the words that occur in the most sentences; of equally frequent words, those that are first in the
    order of characters. Memory holds the distinct words of the corpus. The word sets take about 100 bytes of disk for
    each sentence pair.

    Args:
        tables: The sentence pairs, with the columns `reference` and `translation`.
        folder: Folder of the word sets.
        limit: Maximum number of words of the lexicon.
        language: ISO 639-1 code of the language, which decides how words are cut.
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
    # This file is written last, because it marks the others as complete.
    write_bytes(folder / DONE, json.dumps({"pairs": pairs}).encode())


class WordSets:
    """The word sets that `write_word_sets` wrote into a folder; `words` are the words of the lexicon."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        pairs = read_json(folder / DONE, "the number of pairs of sentences")["pairs"]
        table = pq.read_table(folder / WORDS, use_threads=False)
        counts = [table[side].to_numpy() for side in ("references", "translations")]
        self.words = LexiconWords(table["word"].to_pylist(), counts[0], counts[1], pairs)
        self._rows = np.fromfile(folder / ROWS, np.int32)

    @staticmethod
    def complete(folder: Path) -> bool:
        """Return whether a folder holds the word sets of a whole corpus."""
        return (folder / DONE).is_file()

    def blocks(self, start: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Read the word sets from the sentence pair `start` on, block by block, without words outside the lexicon.

        Yields:
            The row of each word [entry], int32; the sides that the word occurs on [entry], `REFERENCE`, `TRANSLATION`
            or their sum; and the bounds of the pairs in these two arrays [pair + 1].
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
