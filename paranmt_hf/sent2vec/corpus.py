"""The training text of Sent2Vec on disk, as rows of words with the bounds of sentences, and its vocabulary."""

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

# Files of the text. While it is read: the number of each word, int32, and the number of words of each sentence, int32.
# Then: the row of each known word, int32, the end of each sentence in them, int64, and the buckets of n-grams, int64.
NUMBERS, LENGTHS, ROWS, ENDS, HASHES = "numbers", "lengths", "rows", "ends", "hashes"
# Number of sentences for each thread after which time and loss are looked at. With one thread the result does not
# depend on it.
BLOCK = 10_000


@dataclass(frozen=True)
class KnownWords:
    """The words that have a row.

    Attributes:
        names: The word of each row [word], by falling count; row 0 is `[UNK]`, which is the placeholder while
            training.
        counts: How often each word occurs [word], int64; 0 for row 0.
        lines: Number of sentences of the corpus, each of which ends with `</s>`, also those without known words.
        tokens: Number of words and ends of sentences of the corpus, known or not.
    """

    names: list[str]
    counts: np.ndarray
    lines: int
    tokens: int

    def keep(self, config: Sent2VecConfig) -> np.ndarray:
        """Compute the probability that a word is used as a target [word], q_p of section 2.1; it may be above 1.

        The paper does not say which total the frequency of a word refers to. The authors' program counts all words,
        rare ones and ends of lines too (`initTableDiscard` in its `dictionary.cc`).
        """
        share = np.maximum(self.counts, 1) / self.tokens
        ratio = config.threshold_for(self.tokens) / share
        chosen = self.counts >= max(config.min_target_count or 0, 1)
        return np.where(chosen, np.sqrt(ratio) + ratio, 0.0)


@dataclass(frozen=True)
class Block:
    """Consecutive sentences of a corpus.

    Attributes:
        words: Rows of their words [word], int32.
        bounds: Bounds of the sentences in `words` [sentence + 1], int64, from 0.
        first: Number of words of the corpus before them.
    """

    words: np.ndarray
    bounds: np.ndarray
    first: int


@dataclass(frozen=True)
class TextOnDisk:
    """The sentences of two or more known words in a folder, as rows of their words.

    Attributes:
        folder: The folder of its files.
        words: The known words.
        sentences: Number of sentences.
        known: Number of words in them.
        hashes: The n-gram buckets that get a row [n-gram row], int64, ascending.
    """

    folder: Path
    words: KnownWords
    sentences: int
    known: int
    hashes: np.ndarray

    def blocks(self, start: int = 0, size: int = BLOCK) -> Iterator[Block]:
        """Read the sentences in order, from sentence `start` on, in blocks of `size` sentences."""
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
    """Cut sentences into words, count words and n-grams, and write the rows of the words into an empty folder.

    Args:
        batches: The sentences.
        folder: The folder.
        config: The settings, resolved.

    Raises:
        InputError: There are too few sentences or no word that occurs often enough.
    """
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

    Returns:
        The number of each word, how often each number occurs [number], int64, and the number of sentences.
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
            numbered = ids.of(table)[table.ids]
            if len(ids.id_of) > len(counts):
                counts = np.concatenate([counts, np.zeros(len(ids.id_of), np.int64)])
            np.add.at(counts, numbered, 1)
            numbers.write(numbered.data)
            lengths.write(table.lengths.data)
            lines += len(table.lengths)
            progress.advance_to(lines)
    return ids.id_of, counts[: len(ids.id_of)], lines


def _choose(
    number_of: dict[str, int], counts: np.ndarray, lines: int, config: Sent2VecConfig
) -> tuple[KnownWords, np.ndarray]:
    """Choose the words that get a row.

    Args:
        number_of: The number of each word.
        counts: How often each number occurs [number].
        lines: Number of sentences.
        config: The settings, resolved.

    Returns:
        The words, and the row of each number [number], int32; 0 for words without one.

    Raises:
        InputError: No word occurs often enough to get a row, or to be predicted.
    """
    least = config.min_count or 1
    # A word with this name is left out, because row 0 has it.
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
    """Convert the numbers of words to rows, without unknown words and sentences of fewer than two known words.

    Args:
        folder: Folder of the files.
        lines: Number of sentences, for the error.
        row_of: The row of each number [number]; 0 for words without one.

    Returns:
        The number of sentences, and the number of their words.
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
            word_rows = row_of[np.fromfile(numbers, np.int32, int(bounds[-1]))]
            known_words = np.diff(np.concatenate([[0], np.cumsum(word_rows > 0)])[bounds])
            rows.write(word_rows[np.repeat(known_words > 1, sizes) & (word_rows > 0)].data)
            kept = known_words[known_words > 1]
            ends.write((known + np.cumsum(kept)).data)
            sentences += len(kept)
            known += int(kept.sum())
    if sentences < 2:
        raise InputError(
            f"of {counted(lines, 'sentence')} only {sentences} with two words that occur often enough; expected many: "
            "lower `min_count`, or give more text, one sentence on a line"
        )
    return sentences, known


def _occurring_buckets(text: TextOnDisk, config: Sent2VecConfig) -> np.ndarray:
    """Find the buckets of n-grams that occur often enough to get a row [n-gram row], int64, ascending."""
    from paranmt_hf.sent2vec.kernels import count_buckets

    counts, done = np.zeros(config.buckets, np.uint8), 0
    with Progress("count n-grams", text.sentences, least=5.0) as progress:
        for block in text.blocks():
            count_buckets(block.words, block.bounds, config.ngrams, config.context == "program", counts)
            done += len(block.bounds) - 1
            progress.advance_to(done)
    return np.flatnonzero(counts >= config.min_ngram_count)


def read_corpus(folder: Path) -> TextOnDisk | None:
    """Open the text that `write_corpus` wrote; None if it is incomplete, or a file is damaged."""
    try:
        about = read_sealed(folder)
    except InputError:
        return None
    words = KnownWords(about["names"], np.array(about["counts"], np.int64), about["lines"], about["tokens"])
    hashes = np.fromfile(folder / HASHES, np.int64)
    return TextOnDisk(folder, words, about["sentences"], about["known"], hashes)
