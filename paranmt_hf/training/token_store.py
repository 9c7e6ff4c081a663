"""The word tokens of a corpus of pairs on disk: text is cut once, and counts, rows and keys all start from here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.errors import InputError
from paranmt_hf.text.tokens import TokenHashes, TokenTable, WordTokenizer, sentence_keys
from paranmt_hf.util.files import ChecksummedFile, checksum, write_bytes, writing

KEYS, IDS, LENGTHS, CHECKSUM = "keys", "ids", "lengths", "keys.sha256"


class _CorpusIds:
    """Ids of tokens that hold for a whole corpus, where a tokenizer's hold until it forgets."""

    def __init__(self) -> None:
        self.index_of: dict[str, int] = {}
        self._tokens: Iterable[str] = ()
        self._ids = np.empty(0, np.int32)

    def of(self, table: TokenTable) -> np.ndarray:
        """Ids of a table's tokens [token], int32."""
        if table.vocabulary is not self._tokens:
            self._tokens, self._ids = table.vocabulary, np.empty(0, np.int32)
        index_of = self.index_of
        new = [index_of.setdefault(token, len(index_of)) for token in table.vocabulary[len(self._ids) :]]
        self._ids = np.concatenate([self._ids, np.array(new, np.int32)])
        return self._ids[table.ids]


class TokenStore:
    """The tokens of pairs, batch by batch as they were read.

    Args:
        folder: What `write_tokens` wrote.
        vocabulary: The token of each id.
        batches: Pairs of each batch.
    """

    def __init__(self, folder: Path, vocabulary: list[str], batches: list[int]) -> None:
        self._folder, self._vocabulary, self._batches = folder, vocabulary, batches

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return sum(self._batches)

    def tables(self) -> Iterator[tuple[TokenTable, TokenTable]]:
        """Read the tokens of references and translations, batch by batch; all tables have one vocabulary.

        Raises:
            InputError: A file is shorter than it was written.
        """
        with (self._folder / IDS).open("rb") as ids, (self._folder / LENGTHS).open("rb") as lengths:
            for pairs in self._batches:
                sides = []
                for _ in range(2):
                    counts = np.fromfile(lengths, np.int32, pairs)
                    offsets = np.zeros(len(counts) + 1, np.int64)
                    np.cumsum(counts, out=offsets[1:])
                    sides.append(TokenTable(np.fromfile(ids, np.int32, int(offsets[-1])), offsets, self._vocabulary))
                if any(len(side) != pairs or len(side.ids) != side.offsets[-1] for side in sides):
                    raise InputError(f"{self._folder} is cut off; remove that folder and run again")
                yield sides[0], sides[1]

    def drop_tokens(self) -> None:
        """Delete the tokens, of which nothing more is needed; the keys stay."""
        for name in (IDS, LENGTHS):
            (self._folder / name).unlink(missing_ok=True)


def write_tokens(
    batches: Iterable[tuple[pa.Array, pa.Array]],
    folder: Path,
    count: Callable[[TokenTable], None] | None = None,
) -> TokenStore:
    """Cut the text of pairs into word tokens and write these, and a key for each sentence.

    Args:
        batches: References and translations [pair], batch by batch.
        folder: Where to.
        count: Sees each table as it passes, to count its units; None if nobody needs them.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CHECKSUM).unlink(missing_ok=True)
    tokenizer, hashes, corpus_ids = WordTokenizer(), TokenHashes(), _CorpusIds()
    sizes: list[int] = []
    ids, lengths, keys = (ChecksummedFile(folder / name) for name in (IDS, LENGTHS, KEYS))
    for batch in batches:
        tables = tokenizer.tables(*batch)
        for table in tables:
            if count is not None:
                count(table)
            ids.write(corpus_ids.of(table).tobytes())
            lengths.write(table.lengths.tobytes())
        keys.write(np.stack([sentence_keys(table, hashes.of(table)) for table in tables], axis=1).tobytes())
        sizes.append(len(tables[0]))
    for file in (ids, lengths):
        file.close()
    # Of the three only the keys are read again by a run that goes on.
    write_bytes(folder / CHECKSUM, keys.close().encode())
    return TokenStore(folder, list(corpus_ids.index_of), sizes)


def keys_are_whole(folder: Path) -> bool:
    """Tell whether the keys in a folder are those that `write_tokens` wrote."""
    try:
        return (folder / CHECKSUM).read_text(encoding="utf8") == checksum(folder / KEYS)
    except (OSError, UnicodeDecodeError):
        return False


def read_keys(folder: Path) -> np.ndarray:
    """Read the keys that `write_tokens` wrote: [pair, side], uint64, in the order of the pairs."""
    return np.fromfile(folder / KEYS, np.uint64).reshape(-1, 2)
