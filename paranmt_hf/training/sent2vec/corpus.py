"""The text of Sent2Vec on disk: cut once, then words as rows and sentences as bounds, whatever its size."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.errors import InputError
from paranmt_hf.training.sent2vec.config import Sent2VecConfig
from paranmt_hf.training.sent2vec.counts import WordCounter, Words
from paranmt_hf.util.files import ChecksummedFile, checksum, write_bytes
from paranmt_hf.util.progress import Progress

logger = logging.getLogger(__name__)
# Written last: says that the rest is there.
ABOUT = "corpus.json"
NUMBERS, LENGTHS = "numbers", "lengths"
ROWS, ENDS, NAMES, COUNTS, HASHES = "rows", "ends", "names", "counts", "hashes"
# Words, or sentences, that are read at once.
CHUNK = 2_000_000
# Sentences that are trained on between two looks at clock and loss.
BLOCK = 10_000


@dataclass(frozen=True)
class Block:
    """Sentences that lie one behind the other.

    Attributes:
        words: Rows of their words [word], int32.
        bounds: Their bounds [sentence + 1], int64, from 0.
        first: Words of the corpus before them.
    """

    words: np.ndarray
    bounds: np.ndarray
    first: int


@dataclass(frozen=True)
class TextOnDisk:
    """Sentences of two and more known words, as rows of the words.

    Attributes:
        folder: Where they lie.
        words: The words.
        sentences: How many sentences.
        known: Words in them.
        hashes: The buckets that get a row [n-gram row], int64, ascending.
    """

    folder: Path
    words: Words
    sentences: int
    known: int
    hashes: np.ndarray

    def blocks(self, start: int = 0, size: int = BLOCK) -> Iterator[Block]:
        """Read the sentences in order.

        Args:
            start: The first one.
            size: Sentences of a block.
        """
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
    """Cut sentences into words, count these and their n-grams, and write the rows of the words.

    Args:
        batches: Sentences [sentence], batch by batch.
        folder: Where to; what was there goes.
        config: The settings, resolved.
    """
    (folder / ABOUT).unlink(missing_ok=True)
    counter = WordCounter(config.cut)
    numbers, lengths, lines = ChecksummedFile(folder / NUMBERS), ChecksummedFile(folder / LENGTHS), 0
    with Progress("read", least=5.0) as progress:
        for column in batches:
            found, sizes = counter.add(column)
            numbers.write(found.data)
            lengths.write(sizes.data)
            progress.advance_to(lines := lines + len(sizes))
    numbers.close()
    lengths.close()
    if counter.forgotten:
        logger.info(f"{counter.forgotten:,} rare words were forgotten on the way, to bound the memory")
    words, row_of = counter.choose(config, lines)
    del counter
    text, checksums = _write_rows(folder, words, row_of)
    for name in (NUMBERS, LENGTHS):
        (folder / name).unlink()
    hashes = _occurring_buckets(text, config)
    for name, content in (
        (NAMES, "\n".join(words.names).encode()),
        (COUNTS, words.counts.data),
        (HASHES, hashes.data),
    ):
        file = ChecksummedFile(folder / name)
        file.write(content)
        checksums[name] = file.close()
    about = {"lines": lines, "tokens": words.tokens, "sentences": text.sentences, "known": text.known}
    write_bytes(folder / ABOUT, json.dumps({**about, "checksums": checksums}).encode())
    return TextOnDisk(folder, words, text.sentences, text.known, hashes)


def _write_rows(folder: Path, words: Words, row_of: np.ndarray) -> tuple[TextOnDisk, dict[str, str]]:
    """Turn numbers of words into rows; unknown words go, and so do sentences of fewer than two known words."""
    rows, ends = ChecksummedFile(folder / ROWS), ChecksummedFile(folder / ENDS)
    sentences = known = 0
    with (folder / NUMBERS).open("rb") as numbers, (folder / LENGTHS).open("rb") as lengths:
        while len(sizes := np.fromfile(lengths, np.int32, CHUNK // 20)):
            bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
            found = row_of[np.fromfile(numbers, np.int32, int(bounds[-1]))]
            left = np.concatenate([[0], np.cumsum(found > 0)])[bounds]
            kept = np.repeat(np.diff(left) > 1, sizes) & (found > 0)
            lasting = np.diff(left)[np.diff(left) > 1]
            rows.write(found[kept].data)
            ends.write((known + np.cumsum(lasting)).data)
            sentences, known = sentences + len(lasting), known + int(lasting.sum())
    checksums = {ROWS: rows.close(), ENDS: ends.close()}
    if sentences < 2:
        raise InputError(
            f"of {words.lines:,} sentences {sentences} have two words that occur often enough; expected many: lower "
            "--min-count, or give more text, one sentence on a line"
        )
    return TextOnDisk(folder, words, sentences, known, np.empty(0, np.int64)), checksums


def _occurring_buckets(text: TextOnDisk, config: Sent2VecConfig) -> np.ndarray:
    """Find the buckets of n-grams that occur often enough [n-gram row], int64."""
    if config.ngrams == 1:
        return np.empty(0, np.int64)
    from paranmt_hf.training.sent2vec.kernels import count_buckets

    counts, done = np.zeros(config.buckets, np.uint8), 0
    with Progress("count n-grams", text.sentences, least=5.0) as progress:
        for block in text.blocks():
            count_buckets(block.words, block.bounds, config.ngrams, config.with_placeholder, counts)
            progress.advance_to(done := done + len(block.bounds) - 1)
    return np.flatnonzero(counts >= config.min_ngram_count)


def read_corpus(folder: Path) -> TextOnDisk | None:
    """Find what `write_corpus` wrote; None where it did not come to its end, or a file is damaged."""
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf8"))
        if any(checksum(folder / name) != expected for name, expected in about["checksums"].items()):
            return None
        names = (folder / NAMES).read_bytes().decode().split("\n")
    except (OSError, ValueError):
        return None
    words = Words(names, np.fromfile(folder / COUNTS, np.int64), about["lines"], about["tokens"])
    hashes = np.fromfile(folder / HASHES, np.int64)
    return TextOnDisk(folder, words, about["sentences"], about["known"], hashes)
