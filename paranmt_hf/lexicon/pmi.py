"""Pointwise mutual information of words, with its table, from counts of sentence pairs that contain both.

Let R [pair, word] be 1 if a reference contains a word, and T the same for translations. Three symmetric matrices
[word, word] are wanted: R'R (references with both words), T'T (translations with both), and R'T + T'R (pairs with one
word on a side and the other word on the other side). They are the digits of one: with S = R + c T for a large number c

    S'S = R'R + c (R'T + T'R) + c^2 T'T

so one product of integers counts all three. It is computed for a block of pairs at a time. Blocks are added up as long
as they fit into memory, and then written as a run; at the end the runs are added up, a range of words at a time.

Pointwise mutual information (PMI): ParaNMT-50M (arXiv:1711.05732), appendix A.1. Logarithms are natural. All counts
are of sentences: a word counts once in a sentence.

- Across: each sentence of a pair is taken as the sentence once, with the other one as its paraphrase, so n pairs are
  2 n events. #(u, v) counts those with u in the sentence and v in the paraphrase. It is symmetric. #(u) counts
  sentences of either side with u: PMI = log(#(u, v) 2n / (#(u) #(v))).
- Within: the same in the n references, and in the n translations, with v in the same sentence.
- Adjusted: PMI across minus the mean of the PMI within references and that within translations.

Two words that are never in one reference (or translation) have no PMI there. It counts as 0, the PMI of independent
words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sparse

from paranmt_hf.lexicon.word_sets import LexiconWords, WordSets
from paranmt_hf.util.files import replacing, writing

BITS = 21  # Bits of each of the three counts; a pair of sentences adds at most 2 to the middle one
RUN_PAIRS = 2 ** (BITS - 1) - 1
MASK = 2**BITS - 1
# What a word adds to S, by the sides that it is on: none, reference, translation, both.
WEIGHTS = np.array([0, 1, 2**BITS, 2**BITS + 1], np.int64)
# Multiplications of a block, the maximum number of entries of its product, of 12 bytes each.
BLOCK_PRODUCTS = 8_000_000
BLOCK_ROWS = 100_000
# Memory for each entry of what is kept: the sum, and while two are added these and the sum, 12 bytes each.
ENTRY_BYTES = 36
FOLDER = "runs"


@dataclass(frozen=True)
class Run:
    """The counts of some pairs of sentences on disk, sorted by word and then by the other word.

    The file holds bounds [word + 1], int64; then the other word of each entry, int32; then the counts, int64. `first`
    is the number of the first pair of sentences, and `last` that of the last one plus 1.
    """

    path: Path
    first: int
    last: int

    def bounds(self, words: int) -> np.ndarray:
        """Where the entries of each word begin and end [word + 1], int64."""
        return np.fromfile(self.path, np.int64, words + 1)

    def read(self, words: int, entries: int, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Entries `first` to `last` of all `entries`: other words, int32, and counts, int64, packed in one number."""
        others = 8 * (words + 1)
        found = np.fromfile(self.path, np.int32, last - first, offset=others + 4 * first)
        return found, np.fromfile(self.path, np.int64, last - first, offset=others + 4 * entries + 8 * first)


def runs_of(folder: Path) -> list[Run]:
    """Find the complete runs, in order."""
    runs = []
    for path in sorted(folder.glob("*-*.run")):
        first, _, last = path.stem.partition("-")
        runs.append(Run(path, int(first), int(last)))
    return runs


def count_word_pairs(sets: WordSets, folder: Path, memory: int, report: Callable[[int], None]) -> list[Run]:
    """Count the pairs of words of a corpus, continuing after existing runs.

    `memory` is the number of bytes that the counts may take, which decides the number of runs and nothing else;
    `report` is called with the number of pairs of sentences that are counted.
    """
    with writing(folder):
        folder.mkdir(exist_ok=True)
    runs = runs_of(folder)
    first = last = runs[-1].last if runs else 0
    report(last)
    sums = _Sums()
    # Frequent words first, so that most additions of a product are close in memory, which takes a third less time.
    by_frequency = np.argsort(-(sets.words.references + sets.words.translations), kind="stable").astype(np.int32)
    for matrix in _matrices(sets, first, by_frequency):
        if sums.entries * ENTRY_BYTES >= memory or last + matrix.shape[0] - first > RUN_PAIRS:
            _write_run(folder, first, last, sums.total(), by_frequency)
            first, sums = last, _Sums()
        sums.add(_product(matrix))
        last += matrix.shape[0]
        report(last)
    if last > first:
        _write_run(folder, first, last, sums.total(), by_frequency)
    return runs_of(folder)


def _matrices(sets: WordSets, start: int, order: np.ndarray) -> Iterator[sparse.csr_array]:
    """Split the sets of words into blocks S [pair, word] of bounded work, with reordered words."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=order.dtype)
    for words, sides, bounds in sets.blocks(start, BLOCK_ROWS):
        work = np.cumsum(np.diff(bounds) ** 2)
        first = 0
        while first < len(work):
            before = work[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(work, before + BLOCK_PRODUCTS, side="right")))
            part = slice(bounds[first], bounds[last])
            inner = (bounds[first : last + 1] - bounds[first]).astype(np.int32)
            yield sparse.csr_array(
                (WEIGHTS[sides[part]], place[words[part]], inner), shape=(last - first, len(order)), copy=False
            )
            first = last


def _product(matrix: sparse.csr_array) -> sparse.csr_array:
    """Compute S' S; the entries of the result [word, word] are sorted."""
    product = matrix.T.tocsr() @ matrix
    # It equals its transpose, and transposing sorts it, in linear time.
    return product.T.tocsr()


class _Sums:
    """Sums matrices as in merge sort: only those of similar size, so that none is copied often."""

    def __init__(self) -> None:
        self._parts: list[sparse.csr_array] = []

    @property
    def entries(self) -> int:
        return sum(part.nnz for part in self._parts)

    def add(self, matrix: sparse.csr_array) -> None:
        self._parts.append(matrix)
        while len(self._parts) > 1 and self._parts[-2].nnz < 2 * self._parts[-1].nnz:
            self._add_last()

    def total(self) -> sparse.csr_array:
        while len(self._parts) > 1:
            self._add_last()
        return self._parts[0]

    def _add_last(self) -> None:
        last = self._parts.pop()
        self._parts[-1] = self._parts[-1] + last


def _write_run(folder: Path, first: int, last: int, total: sparse.csr_array, order: np.ndarray) -> None:
    """Write the counts, with the words in their original order."""
    for _ in ("columns", "rows"):
        total = sparse.csr_array((total.data, order[total.indices], total.indptr), shape=total.shape).T.tocsr()
    with replacing(folder / f"{first:012d}-{last:012d}.run") as aside, aside.open("wb") as file:
        file.write(total.indptr.astype(np.int64).data)
        file.write(total.indices.astype(np.int32, copy=False).data)
        file.write(total.data.data)


# Entries of all runs that are added up at once, at about 100 bytes each; a word's entries stay together.
RANGE_ENTRIES = 500_000


@dataclass(frozen=True)
class PairCounts:
    """Counts of pairs of different words [entry], sorted by word and then by the other word.

    `words` and `others` are rows of words; `across` is the number of pairs of sentences with the one word on a side
    and the other on the other, where a pair counts twice if both words are on both sides; `references` and
    `translations` are the numbers of such sentences with both.
    """

    words: np.ndarray
    others: np.ndarray
    across: np.ndarray
    references: np.ndarray
    translations: np.ndarray

    def __len__(self) -> int:
        return len(self.words)

    def take(self, chosen: np.ndarray) -> PairCounts:
        return PairCounts(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def merged(runs: Sequence[Run], words: int) -> Iterator[PairCounts]:
    """Merge runs: the summed counts of one range of words after the other."""
    bounds = [run.bounds(words) for run in runs]
    ends = np.sum(bounds, axis=0)
    first = 0
    while first < words:
        last = int(np.searchsorted(ends, ends[first] + RANGE_ENTRIES, side="right")) - 1
        last = min(max(last, first + 1), words)
        yield _range(runs, bounds, words, first, last)
        first = last


def _range(runs: Sequence[Run], bounds: Sequence[np.ndarray], words: int, first: int, last: int) -> PairCounts:
    """Sum the entries of some words."""
    keys, packed = [], []
    for run, ends in zip(runs, bounds, strict=True):
        others, counts = run.read(words, int(ends[-1]), int(ends[first]), int(ends[last]))
        rows = np.repeat(np.arange(first, last), np.diff(ends[first : last + 1]))
        keys.append(rows * words + others)
        packed.append(counts)
    key, counts = np.concatenate(keys), np.concatenate(packed)
    if len(runs) > 1:
        # Each run is sorted, which a stable sort exploits.
        order = np.argsort(key, kind="stable")
        key, counts = key[order], counts[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    rows, others = np.divmod(key[starts], words)
    found = PairCounts(
        rows,
        others,
        *(_sums(part, starts) for part in ((counts >> BITS) & MASK, counts & MASK, counts >> (2 * BITS))),
    )
    return found.take(rows != others)


def _sums(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.add.reduceat(values, starts) if len(starts) else values


TABLE = "lexicon.parquet"


def pmi(together: np.ndarray, counts: PairCounts, events_of: np.ndarray, events: int) -> np.ndarray:
    """Pointwise mutual information: log(together * events / (#(word) #(other))) [entry], 0 if `together` is 0.

    `together` are the events with both words [entry], `events_of` those with a word [word], `events` all of them.
    """
    # A sum of logarithms, because a product of counts would leave the range in which integers are exact.
    logarithms = np.log(np.maximum(events_of, 1)) - np.log(events) / 2
    values = np.log(np.maximum(together, 1)) - logarithms[counts.words] - logarithms[counts.others]
    values[together == 0] = 0
    return values


GROUP_ROWS = 250_000  # A row group is what is read to find the paraphrases of a word
SCHEMA = pa.schema(
    [
        pa.field("word", pa.string(), nullable=False),
        pa.field("paraphrase", pa.string(), nullable=False),
        pa.field("count", pa.int64(), nullable=False),
        pa.field("count_in_references", pa.int64(), nullable=False),
        pa.field("count_in_translations", pa.int64(), nullable=False),
        pa.field("pmi", pa.float32(), nullable=False),
        pa.field("adjusted_pmi", pa.float32(), nullable=False),
    ]
)

# Columns with repeating values; for the others a dictionary takes time and space.
REPEATING = [field.name for field in SCHEMA if not pa.types.is_floating(field.type)]


def word_pair_table(counts: PairCounts, words: LexiconWords, vocabulary: pa.Array) -> pa.Table:
    """Convert counts to rows of a lexicon; `vocabulary` is the column of its words."""
    across = pmi(counts.across, counts, words.references + words.translations, 2 * words.pairs)
    within = pmi(counts.references, counts, words.references, words.pairs)
    within = (within + pmi(counts.translations, counts, words.translations, words.pairs)) / 2
    columns = [
        vocabulary.take(pa.array(counts.words)),
        vocabulary.take(pa.array(counts.others)),
        *map(pa.array, (counts.across, counts.references, counts.translations)),
        pa.array(across.astype("float32")),
        pa.array((across - within).astype("float32")),
    ]
    return pa.table(columns, schema=SCHEMA)


def write_word_pairs(
    folder: Path, ranges: Iterable[PairCounts], words: LexiconWords, min_count: int, report: Callable[[int], None]
) -> int:
    """Write the pairs of words that were counted at least `min_count` times across sentences.

    `ranges` are counts sorted by word; `report` is called with the number of rows that are written, which is returned.
    """
    vocabulary, rows = pa.array(words.words, pa.string()), 0
    with (
        replacing(folder / TABLE) as aside,
        pq.ParquetWriter(aside, SCHEMA, use_dictionary=REPEATING, compression="zstd", store_schema=False) as writer,
    ):
        chosen = (counts.take(counts.across >= min_count) for counts in ranges)
        for table in _groups(word_pair_table(kept, words, vocabulary) for kept in chosen):
            writer.write_table(table, row_group_size=GROUP_ROWS)
            rows += table.num_rows
            report(rows)
    return rows


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Split rows into row groups, independently of the number of runs."""
    left = SCHEMA.empty_table()
    for table in tables:
        left = pa.concat_tables([left, table])
        while left.num_rows >= GROUP_ROWS:
            yield left.slice(0, GROUP_ROWS).combine_chunks()
            left = left.slice(GROUP_ROWS)
    if left.num_rows:
        yield left.combine_chunks()
