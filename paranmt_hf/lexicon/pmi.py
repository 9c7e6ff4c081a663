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
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import scipy.sparse as sparse

from paranmt_hf.lexicon.word_sets import LexiconWords, WordSets
from paranmt_hf.util.files import replacing, writing

BITS = 21  # Bits of each of the three counts; a pair of sentences adds at most 2 to the middle one
# What a word adds to S, by the sides that it is on: none, reference, translation, both.
WEIGHTS = np.array([0, 1, 2**BITS, 2**BITS + 1], np.int64)
GROUP_ROWS = 250_000  # A row group is what is read to find the paraphrases of a word
FOLDER, TABLE = "runs", "lexicon.parquet"


def runs_of(folder: Path) -> list[Path]:
    """Find the complete runs, the counts of consecutive pairs of sentences, in order.

    The name of a run has the number of its first pair and that of the last one plus 1. It holds `bounds` [word + 1],
    where the entries of each word begin and end; `others`, the other word of each entry, ascending; and its `counts`.
    """
    return sorted(folder.glob("*-*.run"))


def pairs_in(runs: Sequence[Path]) -> int:
    """Number of pairs of sentences that are counted in runs."""
    return int(runs[-1].stem.partition("-")[2]) if runs else 0


def count_word_pairs(
    sets: WordSets,
    folder: Path,
    memory: int,
    report: Callable[[int], None],
    *,
    run_pairs: int = 2 ** (BITS - 1) - 1,
    products: int = 8_000_000,
) -> list[Path]:
    """Count the pairs of words of a corpus, continuing after existing runs.

    `memory` is the number of bytes that the counts may take, which decides the number of runs and nothing else, like
    `run_pairs`, the maximum number of pairs of sentences of a run, and `products`, the multiplications of a block and
    the maximum number of entries of its product, of 12 bytes each; `report` is called with the number of pairs of
    sentences that are counted.
    """
    with writing(folder):
        folder.mkdir(exist_ok=True)
    first = last = pairs_in(runs_of(folder))
    report(last)
    sums = _Sums()
    # Frequent words first, so that most additions of a product are close in memory, which takes a third less time.
    by_frequency = np.argsort(-(sets.words.references + sets.words.translations), kind="stable").astype(np.int32)
    for matrix in _matrices(sets, first, by_frequency, min(products, run_pairs)):
        # What is kept is the sum, and while two are added these and the sum, 12 bytes each for an entry.
        if sums.entries * 36 >= memory or last + matrix.shape[0] - first > run_pairs:
            _write_run(folder, first, last, sums.total(), by_frequency)
            first, sums = last, _Sums()
        product = matrix.T.tocsr() @ matrix
        # It equals its transpose, and transposing sorts its entries, in linear time.
        sums.add(product.T.tocsr())
        last += matrix.shape[0]
        report(last)
    if last > first:
        _write_run(folder, first, last, sums.total(), by_frequency)
    return runs_of(folder)


def _matrices(sets: WordSets, start: int, order: np.ndarray, products: int) -> Iterator[sparse.csr_array]:
    """Split the sets of words into blocks S [pair, word] of bounded work, with reordered words."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=order.dtype)
    for words, sides, bounds in sets.blocks(start):
        # A pair takes some work even without words, so that no block has more pairs than products.
        work = np.cumsum(np.maximum(np.diff(bounds) ** 2, 1))
        first = 0
        while first < len(work):
            before = work[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(work, before + products, side="right")))
            part = slice(bounds[first], bounds[last])
            inner = (bounds[first : last + 1] - bounds[first]).astype(np.int32)
            content = WEIGHTS[sides[part]], place[words[part]], inner
            yield sparse.csr_array(content, shape=(last - first, len(order)), copy=False)
            first = last


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
    from safetensors.numpy import save_file

    for _ in ("columns", "rows"):
        total = sparse.csr_array((total.data, order[total.indices], total.indptr), shape=total.shape).T.tocsr()
    with replacing(folder / f"{first:012d}-{last:012d}.run") as aside:
        others = total.indices.astype(np.int32)
        save_file({"bounds": total.indptr.astype(np.int64), "others": others, "counts": total.data}, aside)


def merged(runs: Sequence[Path], words: int, *, range_entries: int = 500_000) -> Iterator[pa.Table]:
    """Merge runs: the counts of pairs of different words, one range of words after the other.

    A table has a row for each pair, sorted by `word` and then by `other`, rows of words; `across` is the number of
    pairs of sentences with the one word on a side and the other on the other, where a pair counts twice if both words
    are on both sides; `references` and `translations` are the numbers of such sentences with both.
    About `range_entries` of all runs are added up at once, at about 100 bytes each; a word's entries stay together.
    """
    from safetensors import safe_open

    with ExitStack() as stack:
        files = [stack.enter_context(safe_open(run, "np")) for run in runs]
        bounds = [file.get_tensor("bounds") for file in files]
        ends = np.sum(bounds, axis=0)
        first = 0
        while first < words:
            last = int(np.searchsorted(ends, ends[first] + range_entries, side="right")) - 1
            last = min(max(last, first + 1), words)
            keys, packed = [], []
            for file, own in zip(files, bounds, strict=True):
                part = slice(int(own[first]), int(own[last]))
                if part.start == part.stop:
                    continue
                rows = np.repeat(np.arange(first, last), np.diff(own[first : last + 1]))
                keys.append(rows * words + file.get_slice("others")[part])
                packed.append(file.get_slice("counts")[part])
            yield _summed(np.concatenate(keys), np.concatenate(packed), words)
            first = last


def _summed(keys: np.ndarray, packed: np.ndarray, words: int) -> pa.Table:
    """Sum the packed counts of equal keys, of which each is a word times `words` plus the other word."""
    steps = np.diff(keys, prepend=-1)
    if (steps < 0).any():
        # Each run is sorted, which a stable sort exploits.
        order = np.argsort(keys, kind="stable")
        keys, packed = keys[order], packed[order]
        steps = np.diff(keys, prepend=-1)
    starts = np.flatnonzero(steps)
    word, other = np.divmod(keys[starts], words)
    columns = {"word": word, "other": other}
    for name, shift in (("references", 0), ("across", BITS), ("translations", 2 * BITS)):
        columns[name] = np.add.reduceat((packed >> shift) & (2**BITS - 1), starts) if len(starts) else packed
    return pa.table(columns).filter(pa.array(word != other))


def pmi(together: np.ndarray, counts: pa.Table, events_of: np.ndarray, events: int) -> np.ndarray:
    """Pointwise mutual information: log(together * events / (#(word) #(other))) [pair], 0 if `together` is 0.

    `together` are the events with both words [pair], `events_of` those with a word [word], `events` all of them.
    """
    # A sum of logarithms, because a product of counts would leave the range in which integers are exact.
    logarithms = np.log(np.maximum(events_of, 1)) - np.log(events) / 2
    words, others = (logarithms[counts[name].to_numpy()] for name in ("word", "other"))
    values = np.log(np.maximum(together, 1)) - words - others
    values[together == 0] = 0
    return values


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


def word_pair_table(counts: pa.Table, words: LexiconWords, vocabulary: pa.Array) -> pa.Table:
    """Convert counts to rows of a lexicon; `vocabulary` is the column of its words."""
    across, references, translations = (counts[name].to_numpy() for name in ("across", "references", "translations"))
    scores = pmi(across, counts, words.references + words.translations, 2 * words.pairs)
    within = pmi(references, counts, words.references, words.pairs)
    within = (within + pmi(translations, counts, words.translations, words.pairs)) / 2
    columns = {
        "word": vocabulary.take(counts["word"].combine_chunks()),
        "paraphrase": vocabulary.take(counts["other"].combine_chunks()),
        "count": across,
        "count_in_references": references,
        "count_in_translations": translations,
        "pmi": scores.astype(np.float32),
        "adjusted_pmi": (scores - within).astype(np.float32),
    }
    return pa.table(columns, schema=SCHEMA)


def write_word_pairs(
    folder: Path, ranges: Iterable[pa.Table], words: LexiconWords, min_count: int, report: Callable[[int], None]
) -> int:
    """Write the pairs of words that were counted at least `min_count` times across sentences.

    `ranges` are the tables of `merged`; `report` is called with the number of rows that are written, which is
    returned.
    """
    vocabulary = pa.array(words.words, pa.string())
    # For values that do not repeat a dictionary takes time and space.
    repeating = [field.name for field in SCHEMA if not pa.types.is_floating(field.type)]
    rows = 0
    with (
        replacing(folder / TABLE) as aside,
        pq.ParquetWriter(aside, SCHEMA, use_dictionary=repeating, compression="zstd", store_schema=False) as writer,
    ):
        kept = (counts.filter(pc.greater_equal(counts["across"], min_count)) for counts in ranges)
        for table in row_groups(word_pair_table(counts, words, vocabulary) for counts in kept):
            writer.write_table(table, row_group_size=GROUP_ROWS)
            rows += table.num_rows
            report(rows)
    return rows


def row_groups(tables: Iterable[pa.Table], size: int = GROUP_ROWS) -> Iterator[pa.Table]:
    """Split rows into row groups, independently of the number of runs."""
    left = SCHEMA.empty_table()
    for table in tables:
        left = pa.concat_tables([left, table])
        while left.num_rows >= size:
            yield left.slice(0, size).combine_chunks()
            left = left.slice(size)
    if left.num_rows:
        yield left.combine_chunks()
