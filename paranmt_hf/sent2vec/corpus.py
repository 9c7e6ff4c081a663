"""The training text of Sent2Vec on disk: word rows with sentence bounds; and the vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.encoders.vocabulary import CUTTERS, UNKNOWN
from paranmt_hf.errors import InputError
from paranmt_hf.sent2vec.config import Sent2VecConfig
from paranmt_hf.text.tokens import CorpusIds, WordTokenizer
from paranmt_hf.training.checkpoint import read_sealed, seal
from paranmt_hf.util.progress import Progress
from paranmt_hf.util.wording import counted

NUMBERS, LENGTHS, ROWS, ENDS, HASHES = "numbers", "lengths", "rows", "ends", "hashes"
# Sentences that are trained on between two looks at clock and loss; with one thread the result does not depend on it.
BLOCK = 10_000


@dataclass(frozen=True)
class KnownWords:
    """The words with a row.

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
        """Probability that a word is used as a target [word]: section 2.1, q_p; may be above 1.

        The paper leaves open what the frequency is a share of. The authors' program counts all words, rare ones and
        ends of lines too (`initTableDiscard` in its `dictionary.cc`).
        """
        share = np.maximum(self.counts, 1) / self.tokens
        ratio = config.threshold_for(self.tokens) / share
        chosen = self.counts >= max(config.min_target_count or 0, 1)
        return np.where(chosen, np.sqrt(ratio) + ratio, 0.0)


@dataclass(frozen=True)
class Block:
    """Consecutive sentences: rows of their words [word], int32, and their bounds [sentence + 1], int64, from 0.

    `first` is the number of words of the corpus before them.
    """

    words: np.ndarray
    bounds: np.ndarray
    first: int


@dataclass(frozen=True)
class TextOnDisk:
    """Sentences of two or more known words, as rows of the words.

    `known` is the number of words in them, and `hashes` are the buckets that get a row [n-gram row], int64, ascending.
    """

    folder: Path
    words: KnownWords
    sentences: int
    known: int
    hashes: np.ndarray

    def blocks(self, start: int = 0, size: int = BLOCK) -> Iterator[Block]:
        """Read the sentences in order, from `start` on, in blocks of `size`."""
        with (self.folder / ENDS).open("rb") as ends, (self.folder / ROWS).open("rb") as rows:
            first = 0
            if start:
                ends.seek(8 * (start - 1))
                (first,) = np.fromfile(ends, np.int64, 1).tolist()
                rows.seek(4 * first)
            for sentence in range(start, self.sentences, size):
                bounds = np.fromfile(ends, np.int64, min(size, self.sentences - sentence))
                words = np.fromfile(rows, np.int32, int(bounds[-1]) - first)
                yield Block(words, np.concatenate([[0], bounds - first]), first)
                first = int(bounds[-1])


def write_corpus(batches: Iterable[pa.Array], folder: Path, config: Sent2VecConfig) -> TextOnDisk:
    """Cut sentences into words, count these and their n-grams, and write the rows into an empty folder."""
    number_of, counts, lines = _write_numbers(batches, folder, config)
    words, row_of = _choose(number_of, counts, lines, config)
    del number_of
    sentences, known = _write_rows(folder, lines, row_of)
    for name in (NUMBERS, LENGTHS):
        (folder / name).unlink()
    text = TextOnDisk(folder, words, sentences, known, np.empty(0, np.int64))
    if config.ngrams > 1:
        text = replace(text, hashes=_occurring_buckets(text, config))
    text.hashes.tofile(folder / HASHES)
    about = {"lines": lines, "tokens": words.tokens, "sentences": sentences, "known": known}
    seal(folder, {**about, "names": words.names, "counts": words.counts.tolist()})
    return text


def _write_numbers(
    batches: Iterable[pa.Array], folder: Path, config: Sent2VecConfig
) -> tuple[dict[str, int], np.ndarray, int]:
    """Number the words in the order of their first occurrence, and write the numbers of all sentences.

    Returns the number of each word, the count of each number [number], int64, and the number of sentences.
    """
    tokenizer, ids = WordTokenizer(cut=CUTTERS[config.cut]), CorpusIds()
    counts = np.zeros(1024, np.int64)
    lines = 0
    with (
        (folder / NUMBERS).open("wb") as numbers,
        (folder / LENGTHS).open("wb") as lengths,
        Progress("read", least=5.0) as progress,
    ):
        for column in batches:
            (table,) = tokenizer.tables(column)
            found = ids.of(table)[table.ids]
            if len(ids.id_of) > len(counts):
                counts = np.concatenate([counts, np.zeros(len(ids.id_of), np.int64)])
            np.add.at(counts, found, 1)
            numbers.write(found.data)
            lengths.write(table.lengths.data)
            lines += len(table.lengths)
            progress.advance_to(lines)
    return ids.id_of, counts[: len(ids.id_of)], lines


def _choose(
    number_of: dict[str, int], counts: np.ndarray, lines: int, config: Sent2VecConfig
) -> tuple[KnownWords, np.ndarray]:
    """Choose the words with a row by resolved settings; other arguments as `_write_numbers` returns them.

    Returns the words, and the row of each number [number], int32, 0 for words without one.
    """
    least = config.min_count or 1
    # The placeholder's row has the name that unknown words have when sentences are encoded.
    names = [word for word, number in number_of.items() if counts[number] >= least and word != UNKNOWN]
    names.sort(key=lambda word: (-counts[number_of[word]], word))
    if not names:
        raise InputError(
            f"no word occurs {counted(least, 'time')} in the {counted(lines, 'sentence')}, the most frequent one "
            f"{counted(int(counts.max(initial=0)), 'time')}; lower `min_count`, or give more text"
        )
    numbers = np.array([number_of[word] for word in names])
    rows = np.zeros(len(counts), np.int32)
    rows[numbers] = np.arange(1, len(names) + 1)
    most = int(counts[numbers[0]])
    if most < (config.min_target_count or 1):
        raise InputError(
            f"no word can be a target: {names[0]!r}, the most frequent one, occurs {most:,} times, and "
            f"`min_target_count` is {config.min_target_count:,}; lower it, or give more text"
        )
    known = np.concatenate([[0], counts[numbers]])
    return KnownWords([UNKNOWN, *names], known, lines, int(counts.sum()) + lines), rows


def _write_rows(folder: Path, lines: int, row_of: np.ndarray) -> tuple[int, int]:
    """Convert word numbers to rows, without unknown words and sentences of fewer than two known words.

    Returns the number of sentences, and that of their words.
    """
    sentences = known = 0
    with (
        (folder / NUMBERS).open("rb") as numbers,
        (folder / LENGTHS).open("rb") as lengths,
        (folder / ROWS).open("wb") as rows,
        (folder / ENDS).open("wb") as ends,
    ):
        while len(sizes := np.fromfile(lengths, np.int32, 100_000)):
            bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
            found = row_of[np.fromfile(numbers, np.int32, int(bounds[-1]))]
            left = np.diff(np.concatenate([[0], np.cumsum(found > 0)])[bounds])
            rows.write(found[np.repeat(left > 1, sizes) & (found > 0)].data)
            lasting = left[left > 1]
            ends.write((known + np.cumsum(lasting)).data)
            sentences += len(lasting)
            known += int(lasting.sum())
    if sentences < 2:
        raise InputError(
            f"of {counted(lines, 'sentence')} only {sentences} with two words that occur often enough; expected many: "
            "lower `min_count`, or give more text, one sentence on a line"
        )
    return sentences, known


def _occurring_buckets(text: TextOnDisk, config: Sent2VecConfig) -> np.ndarray:
    """Find the buckets of sufficiently frequent n-grams [n-gram row], int64."""
    from paranmt_hf.sent2vec.kernels import count_buckets

    counts, done = np.zeros(config.buckets, np.uint8), 0
    with Progress("count n-grams", text.sentences, least=5.0) as progress:
        for block in text.blocks():
            count_buckets(block.words, block.bounds, config.ngrams, config.context == "program", counts)
            done += len(block.bounds) - 1
            progress.advance_to(done)
    return np.flatnonzero(counts >= config.min_ngram_count)


def read_corpus(folder: Path) -> TextOnDisk | None:
    """Find what `write_corpus` wrote; None if it is incomplete, or a file is damaged."""
    try:
        about = read_sealed(folder)
    except InputError:
        return None
    words = KnownWords(about["names"], np.array(about["counts"], np.int64), about["lines"], about["tokens"])
    hashes = np.fromfile(folder / HASHES, np.int64)
    return TextOnDisk(folder, words, about["sentences"], about["known"], hashes)
