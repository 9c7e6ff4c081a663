"""Count word pairs in sentence pairs, and compute and write their pointwise mutual information (PMI).

Counting. Let R [pair, word] be 1 if the reference of a pair contains a word, else 0, and T the same for translations.
Three symmetric matrices [word, word] are needed: R'R (references with both words), T'T (translations with both words),
and R'T + T'R (sentence pairs with one word on one side and the other word on the other side). One product of integers
computes all three, as digits of its entries: with S = R + c T for a large number c,

    S'S = R'R + c (R'T + T'R) + c^2 T'T

The product is computed for one block of sentence pairs at a time. The products are added up as long as the sum fits
into memory. The sum is then written as a run. At the end the runs are added up, one range of words at a time.

PMI: ParaNMT-50M (arXiv:1711.05732), appendix A.1. Logarithms are natural. A word counts once in a sentence, however
often it occurs there.

- Across: each sentence of a pair is taken once as the sentence, with the other one as its paraphrase, so n pairs are
  2n events. #(u, v) is the number of events with u in the sentence and v in the paraphrase, which is symmetric. #(u)
  is the number of sentences with u, on either side. PMI = log(#(u, v) 2n / (#(u) #(v))).
- Within: the same in the n references, and in the n translations, with u and v in the same sentence.
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

# Bits of each of the three counts that are packed into one number. A pair of sentences adds at most 2 to the middle
# count, across, and at most 1 to each of the others.
BITS = 21
# The value of a word in S, indexed by the sides that it is on: none, reference, translation, both.
WEIGHTS = np.array([0, 1, 2**BITS, 2**BITS + 1], np.int64)
GROUP_ROWS = 250_000  # Rows of a row group, the least that is read to find the paraphrases of a word
FOLDER, TABLE = "runs", "lexicon.parquet"


def runs_of(folder: Path) -> list[Path]:
    """Find the complete runs in a folder, in order.

    A run is a safetensors file with the counts of consecutive sentence pairs, a sparse matrix [word, word]. The file
    `START-END.run` counts the pairs from number START up to END, END excluded. Its arrays are:

    - `bounds` [word + 1]: the entries of word w are those from `bounds[w]` up to `bounds[w + 1]`;
    - `others` [entry]: the row of the other word, ascending for each word;
    - `counts` [entry]: the three counts, packed into one number.
    """
    return sorted(folder.glob("*-*.run"))


def pairs_in(runs: Sequence[Path]) -> int:
    """Return the number of sentence pairs that are counted in runs, which are in order."""
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
    """Count the word pairs of a corpus, continuing after existing runs.

    The lexicon does not depend on `memory`, `run_pairs` and `products`; they only decide how the work is split.

    Args:
        sets: The words of each sentence pair.
        folder: Folder of the runs.
        memory: Bytes that the counts may take.
        report: Called with the number of sentence pairs that are counted so far.
        run_pairs: Maximum number of sentence pairs in a run; more could exceed the bits of a count.
        products: Maximum number of multiplications for a block of several sentence pairs. This also bounds the entries
            of its product, of 12 bytes each.

    Returns:
        All runs, in order.
    """
    with writing(folder):
        folder.mkdir(exist_ok=True)
    run_start = end = pairs_in(runs_of(folder))
    report(end)
    sums = _Sums()
    # With frequent words first, most additions of a product are close to each other in memory. This takes a third less
    # time.
    by_frequency = np.argsort(-(sets.words.references + sets.words.translations), kind="stable").astype(np.int32)
    for matrix in _matrices(sets, run_start, by_frequency, min(products, run_pairs)):
        # An entry takes 12 bytes, and an addition holds both matrices and their sum: up to 3 x 12 bytes for an entry.
        if sums.entries * 36 >= memory or end + matrix.shape[0] - run_start > run_pairs:
            _write_run(folder, run_start, end, sums.total(), by_frequency)
            run_start, sums = end, _Sums()
        product = matrix.T.tocsr() @ matrix
        # The product equals its transpose, and transposing sorts the entries in linear time.
        sums.add(product.T.tocsr())
        end += matrix.shape[0]
        report(end)
    if end > run_start:
        _write_run(folder, run_start, end, sums.total(), by_frequency)
    return runs_of(folder)


def _matrices(sets: WordSets, start: int, order: np.ndarray, products: int) -> Iterator[sparse.csr_array]:
    """Yield the matrix S [pair, word] of one block of sentence pairs after the other, from the pair `start` on.

    Column c of a matrix is the word of row `order[c]`. The product S'S of a block takes at most `products`
    multiplications, unless the block is a single pair; no block has more than `products` pairs.
    """
    column_of_word = np.empty_like(order)
    column_of_word[order] = np.arange(len(order), dtype=order.dtype)
    for words, sides, bounds in sets.blocks(start):
        # A pair without words counts as one multiplication, so that no block has more pairs than `products`.
        work = np.cumsum(np.maximum(np.diff(bounds) ** 2, 1))
        first = 0
        while first < len(work):
            before = work[first - 1] if first else 0
            end = max(first + 1, int(np.searchsorted(work, before + products, side="right")))
            entries = slice(bounds[first], bounds[end])
            block_bounds = (bounds[first : end + 1] - bounds[first]).astype(np.int32)
            content = WEIGHTS[sides[entries]], column_of_word[words[entries]], block_bounds
            yield sparse.csr_array(content, shape=(end - first, len(order)), copy=False)
            first = end


class _Sums:
    """A running sum of sparse matrices.

    As in merge sort, only matrices of similar size are added to each other, so that no matrix is copied often. The sum
    is therefore kept as a few parts.
    """

    def __init__(self) -> None:
        self._parts: list[sparse.csr_array] = []

    @property
    def entries(self) -> int:
        """Number of stored entries of all parts."""
        return sum(part.nnz for part in self._parts)

    def add(self, matrix: sparse.csr_array) -> None:
        """Add a matrix to the sum."""
        self._parts.append(matrix)
        while len(self._parts) > 1 and self._parts[-2].nnz < 2 * self._parts[-1].nnz:
            self._add_last()

    def total(self) -> sparse.csr_array:
        """Add up all parts, and return the sum; at least one matrix must have been added."""
        while len(self._parts) > 1:
            self._add_last()
        return self._parts[0]

    def _add_last(self) -> None:
        """Replace the last two parts by their sum."""
        newest = self._parts.pop()
        self._parts[-1] = self._parts[-1] + newest


def _write_run(folder: Path, first: int, end: int, total: sparse.csr_array, order: np.ndarray) -> None:
    """Write the counts of the sentence pairs from `first` up to `end`, with the words in their original order."""
    from safetensors.numpy import save_file

    # Each round puts the columns into their original order and transposes, so two rounds restore rows and columns.
    for _ in ("columns", "rows"):
        total = sparse.csr_array((total.data, order[total.indices], total.indptr), shape=total.shape).T.tocsr()
    with replacing(folder / f"{first:012d}-{end:012d}.run") as aside:
        others = total.indices.astype(np.int32)
        save_file({"bounds": total.indptr.astype(np.int64), "others": others, "counts": total.data}, aside)


def merge_runs(runs: Sequence[Path], words: int, *, range_entries: int = 500_000) -> Iterator[pa.Table]:
    """Add up runs, and yield a table of the counts of each range of words.

    The tables have a row for each pair of different words in each order, sorted by `word` and then by `other`. Their
    columns are:

    - `word`, `other`: rows of the two words in `LexiconWords`;
    - `across`: number of sentence pairs with one word on one side and the other word on the other side; a sentence
      pair counts twice if both words are on both sides;
    - `references`, `translations`: number of references, and of translations, with both words.

    Args:
        runs: Runs of consecutive sentence pairs, as `runs_of` finds them.
        words: Number of words.
        range_entries: About how many entries of all runs are added up at once, at about 100 bytes each. The entries of
            a word stay together, so a range may have more.
    """
    from safetensors import safe_open

    with ExitStack() as stack:
        files = [stack.enter_context(safe_open(run, "np")) for run in runs]
        bounds = [file.get_tensor("bounds") for file in files]
        ends = np.sum(bounds, axis=0)
        first = 0
        while first < words:
            end = int(np.searchsorted(ends, ends[first] + range_entries, side="right")) - 1
            end = min(max(end, first + 1), words)
            keys, packed = [], []
            for file, run_bounds in zip(files, bounds, strict=True):
                entries = slice(int(run_bounds[first]), int(run_bounds[end]))
                if entries.start == entries.stop:
                    continue
                rows = np.repeat(np.arange(first, end), np.diff(run_bounds[first : end + 1]))
                keys.append(rows * words + file.get_slice("others")[entries])
                packed.append(file.get_slice("counts")[entries])
            yield _summed(np.concatenate(keys), np.concatenate(packed), words)
            first = end


def _summed(keys: np.ndarray, packed: np.ndarray, words: int) -> pa.Table:
    """Add up the packed counts of equal keys, and return the table of `merge_runs`.

    The key of an entry is the row of the word times `words`, plus the row of the other word.
    """
    steps = np.diff(keys, prepend=-1)
    if (steps < 0).any():
        # A stable sort is fast here, because the keys of each run are sorted.
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
    """Compute the PMI of word pairs, log(together * events / (events_of[word] * events_of[other])).

    Args:
        together: Number of events with both words [pair].
        counts: Table with the rows of the two words in its columns `word` and `other` [pair].
        events_of: Number of events with a word [word].
        events: Number of all events.

    Returns:
        The PMI [pair], with the natural logarithm; 0 where `together` is 0.
    """
    # Logarithms are added, because products of counts would exceed the range in which numbers are exact.
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
    """Convert a table of `merge_runs` to rows of a lexicon.

    Args:
        counts: Counts of word pairs.
        words: The words with their document frequencies.
        vocabulary: The same words as a column.

    Returns:
        A table with the columns of `SCHEMA`, one row for each row of `counts`.
    """
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
    """Write the table of a lexicon, with the word pairs that were counted often enough across sentences.

    Args:
        folder: Folder of the table.
        ranges: Tables of `merge_runs`.
        words: The words with their document frequencies.
        min_count: Smallest count across sentences of a word pair that is written.
        report: Called with the number of rows that are written so far.

    Returns:
        Number of rows of the table.
    """
    vocabulary = pa.array(words.words, pa.string())
    # A dictionary of the scores would take time and space for nothing, because few of them are equal.
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
    """Regroup the rows of tables into tables of `size` rows, so that row groups do not depend on the ranges.

    Only the last table may have fewer rows.
    """
    pending = SCHEMA.empty_table()
    for table in tables:
        pending = pa.concat_tables([pending, table])
        while pending.num_rows >= size:
            yield pending.slice(0, size).combine_chunks()
            pending = pending.slice(size)
    if pending.num_rows:
        yield pending.combine_chunks()
