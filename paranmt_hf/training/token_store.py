"""Pairs on disk as word tokens, until the encoder's vocabulary is chosen, and the keys of their sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from paranmt_hf.text.identity import TokenHashes, sentence_keys
from paranmt_hf.text.tokens import CorpusIds, TokenTable, WordTokenizer
from paranmt_hf.util.files import ChecksummedFile, checksum, write_bytes, writing

# Files: the key of each sentence, the id of each token, the number of tokens of each sentence, and the checksum of
# keys.
KEYS, IDS, LENGTHS, CHECKSUM = "keys", "ids", "lengths", "keys.sha256"


@dataclass(frozen=True)
class TokenBatch:
    """Some pairs as word tokens."""

    sides: tuple[TokenTable, TokenTable]  # References and translations
    keys: np.ndarray  # Key of each sentence [pair, side], uint64; equal for equal sentences


class TokenStore:
    """The tokens of pairs, which `write_tokens` wrote.

    Args:
        folder: Folder of the files.
        vocabulary: The token of each id.
        batches: Number of pairs of each batch.
    """

    def __init__(self, folder: Path, vocabulary: list[str], batches: list[int]) -> None:
        self._folder, self._vocabulary, self._batches = folder, vocabulary, batches

    def batches(self) -> Iterator[TokenBatch]:
        """Read the pairs, batch by batch; all tables have the same vocabulary."""
        files = (self._folder / name for name in (IDS, LENGTHS, KEYS))
        with ExitStack() as stack:
            ids, lengths, keys = (stack.enter_context(file.open("rb")) for file in files)
            for pairs in self._batches:
                sides = []
                for _ in range(2):
                    offsets = np.zeros(pairs + 1, np.int64)
                    np.cumsum(np.fromfile(lengths, np.int32, pairs), out=offsets[1:])
                    rows = np.fromfile(ids, np.int32, int(offsets[-1]))
                    sides.append(TokenTable(rows, offsets, self._vocabulary))
                yield TokenBatch((sides[0], sides[1]), np.fromfile(keys, np.uint64, 2 * pairs).reshape(-1, 2))

    def drop_tokens(self) -> None:
        """Delete the tokens; the keys are kept."""
        for name in (IDS, LENGTHS):
            (self._folder / name).unlink(missing_ok=True)


def write_tokens(
    batches: Iterable[tuple[pa.Array, pa.Array]], folder: Path, count: Callable[[TokenTable], None] | None = None
) -> TokenStore:
    """Split the text of pairs into word tokens, and write the tokens and a key for each sentence.

    Args:
        batches: References and translations [pair], batch by batch.
        folder: The folder.
        count: Called with each table of tokens, to count its units.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CHECKSUM).unlink(missing_ok=True)
    tokenizer, hashes, corpus_ids = WordTokenizer(), TokenHashes(), CorpusIds()
    sizes: list[int] = []
    ids, lengths, keys = (ChecksummedFile(folder / name) for name in (IDS, LENGTHS, KEYS))
    for batch in batches:
        tables = tokenizer.tables(*batch)
        for table in tables:
            if count is not None:
                count(table)
            ids.write(corpus_ids.of(table)[table.ids].tobytes())
            lengths.write(table.lengths.tobytes())
        keys.write(np.stack([sentence_keys(table, hashes) for table in tables], axis=1).tobytes())
        sizes.append(len(tables[0]))
    ids.close()
    lengths.close()
    # Only the keys have a checksum, because a resumed run reads only them again.
    write_bytes(folder / CHECKSUM, keys.close().encode())
    return TokenStore(folder, list(corpus_ids.id_of), sizes)


def keys_are_whole(folder: Path) -> bool:
    """Whether the keys in a folder are as `write_tokens` wrote them."""
    try:
        return (folder / CHECKSUM).read_text(encoding="utf8") == checksum(folder / KEYS)
    except (OSError, UnicodeDecodeError):
        return False


def read_keys(folder: Path) -> np.ndarray:
    """Read the keys that `write_tokens` wrote [pair, side], uint64, in the order of the pairs."""
    return np.fromfile(folder / KEYS, np.uint64).reshape(-1, 2)
