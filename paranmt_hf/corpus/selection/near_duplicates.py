"""Near-duplicates: the filter, the search for similar sentences, and which of them stay."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.draws import mix, salt
from paranmt_hf.corpus.selection.copies import SIDES, Copied
from paranmt_hf.corpus.selection.filters import Rows, TwoPassFilter, Verdict, joined
from paranmt_hf.corpus.selection.minhash import (
    BATCH,
    BLOCK,
    FIRST,
    ColumnFile,
    DocumentStore,
    MinHash,
    PairFiles,
    Shingler,
    Unit,
    jaccard,
    sharing,
)
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import writing
from paranmt_hf.util.progress import Progress

# Pairs that are compared at once.
_COMPARED = 2**15
# Documents whose cosines are computed at once.
_ROWS = 2_048


@dataclass(frozen=True)
class Likeness:
    """When two documents are alike, and how candidates are found.

    Attributes:
        unit: What a shingle is a run of.
        size: How many words or characters a shingle has.
        similarity: Smallest Jaccard similarity of the two sets of shingles.
        cosine: With an encoder: smallest cosine of the two vectors, in place of the Jaccard similarity.
        exhaustive: With an encoder: compare every document with every earlier one that stays.
        bands: Number of bands of MinHash.
        rows: Number of minima in a band.
        seed: Decides the permutations of MinHash.
        language: ISO 639-1 code of that of the documents, which decides what a word is.
    """

    unit: Unit = "word"
    size: int = 2
    similarity: float = 0.7
    cosine: float = 0.95
    exhaustive: bool = False
    bands: int = 20
    rows: int = 4
    seed: int = 1
    language: str = ENGLISH


class NearDuplicateSearch:
    """Takes documents in batches, then says which of them repeat an earlier one.

    A document is one sentence, or a pair of sentences. Two are alike if their Jaccard similarity reaches the
    threshold; with an encoder, if their cosine does (vectors are kept with 16 bits a number, so its third digit is the
    last).
    Documents without any shingle, or with a vector of zeros, are like none. What is found depends on the documents and
    their order alone, not on the batches.

    Memory: a sort of 2**25 keys, and 18 bytes for each document. Disk: 8 bytes for each band and each shingle of a
    document, and 2 for each dimension with an encoder.

    Args:
        folder: An empty folder for what does not fit into memory; the caller removes it.
        likeness: When two documents are alike.
        encoder: Gives the vectors, if cosines are to decide; a document of two sentences has the two vectors behind
            each other.
    """

    def __init__(self, folder: Path, likeness: Likeness, encoder: Encoder | None = None) -> None:
        self.likeness, self._encoder, self._folder = likeness, encoder, folder
        self._shingler = Shingler(likeness.unit, likeness.size, likeness.language)
        self._minhash = MinHash(likeness.bands, likeness.rows, likeness.seed)
        # The last key is that of the whole set, which finds equal ones.
        self._store = DocumentStore(folder, likeness.bands + 1)

    def __len__(self) -> int:
        return len(self._store)

    def add(self, columns: Sequence[pa.Array]) -> None:
        """Take the next documents.

        Args:
            columns: One or two columns of sentences [document], strings without nulls.
        """
        for start in range(0, len(columns[0]), BATCH):
            self._add([column.slice(start, BATCH) for column in columns])

    def _add(self, columns: Sequence[pa.Array]) -> None:
        sets = self._shingler.sets(columns)
        lengths = np.diff(sets.offsets)
        filled = np.flatnonzero(lengths)
        keys = np.empty((self.likeness.bands + 1, len(sets)), np.uint64)
        # Documents without shingles get keys of their own.
        keys[:] = mix(np.arange(len(self), len(self) + len(sets), dtype=np.uint64) ^ salt(7))
        if len(filled):
            starts = sets.offsets[:-1][filled]
            bounded = type(sets)(sets.values, np.append(starts, len(sets.values)))
            keys[:-1, filled] = self._minhash.keys(bounded)
            keys[-1, filled] = mix(np.add.reduceat(mix(sets.values), starts))
        self._store.append(sets, keys, self._vectors(columns))

    def _vectors(self, columns: Sequence[pa.Array]) -> np.ndarray | None:
        if self._encoder is None:
            return None
        parts = []
        for column in columns:
            encoded = column.dictionary_encode()
            vectors = np.asarray(self._encoder.encode(encoded.dictionary.to_pylist()), np.float32)
            parts.append(unit_vectors(vectors)[encoded.indices.to_numpy()])
        return unit_vectors(np.concatenate(parts, axis=1))

    def repeats(self, progress: Callable[[int, int], None] | None = None) -> np.ndarray:
        """Find the near-duplicates among the documents taken; call it once.

        Args:
            progress: Called with the number of steps done and their total.

        Returns:
            For each document the first earlier one that stays and that it is like; -1 where it stays [document].
        """
        blocks = -(-len(self) // (_ROWS if self._compares_all else BLOCK))
        total = blocks + (0 if self._compares_all else len(self._store.keys))
        steps = itertools.count(1)

        def tell() -> None:
            if progress is not None:
                progress(next(steps), total)

        repeats = np.full(len(self), -1, np.int64)
        if not len(self):
            self._close()
            return repeats
        copies = np.full(len(self), -1, np.int64)
        if self._encoder is None:
            for earlier, later in sharing(self._store.keys[-1], 1, copies >= 0):
                for pairs in _cut(earlier, later):
                    equal = self._jaccard(*pairs) == 1
                    copies[pairs[1][equal]] = pairs[0][equal]
        if self._compares_all:
            self._compare_all(repeats, tell)
        else:
            self._compare_candidates(repeats, copies >= 0, tell)
        # A copy goes the way of the first of its kind.
        copied = np.flatnonzero(copies >= 0)
        origin = copies[copied]
        repeats[copied] = np.where(repeats[origin] >= 0, repeats[origin], origin)
        self._close()
        return repeats

    def _compare_candidates(self, repeats: np.ndarray, leave_out: np.ndarray, tell: Callable[[], None]) -> None:
        pairs = PairFiles(self._folder, len(self))
        for keys in self._store.keys:
            for earlier, later in sharing(keys, FIRST, leave_out):
                pairs.append(earlier, later)
            tell()
        for block in pairs.blocks():
            for earlier, later in _cut_between(*block):
                # Documents that are decided and were dropped need no comparison.
                open_ = repeats[earlier] < 0
                near = earlier[open_], later[open_]
                alike = self._alike(*near)
                resolve(near[0][alike], near[1][alike], repeats)
            tell()

    def _alike(self, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        if self._encoder is None:
            counts = self._store.counts(earlier), self._store.counts(later)
            # No two sets are more alike than their sizes are.
            alike = np.minimum(*counts) >= self.likeness.similarity * np.maximum(*counts)
            alike[alike] = self._jaccard(earlier[alike], later[alike]) >= self.likeness.similarity
            return alike
        products = np.einsum("pd,pd->p", self._store.vectors(earlier), self._store.vectors(later))
        return products >= self.likeness.cosine

    def _jaccard(self, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        return jaccard(self._store.sets(earlier), self._store.sets(later))

    @property
    def _compares_all(self) -> bool:
        return self._encoder is not None and self.likeness.exhaustive

    def _compare_all(self, repeats: np.ndarray, tell: Callable[[], None]) -> None:
        """Compare each document with all earlier ones that stay, block by block."""
        stay = np.empty(0, np.int64)
        for start in range(0, len(self), _ROWS):
            block = np.arange(start, min(start + _ROWS, len(self)))
            vectors = self._store.vectors(block)
            near: list[tuple[np.ndarray, np.ndarray]] = []
            for first in range(0, len(stay), _ROWS):
                others = stay[first : first + _ROWS]
                rows, columns = np.nonzero(vectors @ self._store.vectors(others).T >= self.likeness.cosine)
                near.append((others[columns], block[rows]))
            rows, columns = np.nonzero(np.tril(vectors @ vectors.T, -1) >= self.likeness.cosine)
            near.append((block[columns], block[rows]))
            earlier, later = (np.concatenate(side) for side in zip(*near, strict=True))
            resolve(earlier, later, repeats)
            stay = np.concatenate([stay, block[repeats[block] < 0]])
            tell()

    def _close(self) -> None:
        self._store.__exit__(None, None, None)


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Bring vectors [document, dimension] to length 1; those of zeros stay, and are like none."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def _cut(earlier: np.ndarray, later: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for start in range(0, len(later), _COMPARED):
        yield earlier[start : start + _COMPARED], later[start : start + _COMPARED]


def _cut_between(earlier: np.ndarray, later: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Cut pairs that are in the order of their later documents, and never between two of the same one."""
    start = 0
    while start < len(later):
        stop = int(np.searchsorted(later, later[min(start + _COMPARED, len(later)) - 1], "right"))
        yield earlier[start:stop], later[start:stop]
        start = stop


def resolve(earlier: np.ndarray, later: np.ndarray, repeats: np.ndarray) -> None:
    """Decide about the later documents of some pairs of like documents, in the order of the documents.

    A document is dropped if and only if it is like an earlier one that stays. So each dropped one has one like it that
    stays, and no two that stay are a pair.

    Args:
        earlier: Earlier document of each pair [pair]: decided by a call before, or a later one of this call's pairs.
        later: Later document of each pair [pair]; none was decided before.
        repeats: For each document the first one that stays and that it is like, or -1 where it stays [document];
            filled in for the later documents.
    """
    undecided = np.zeros(len(repeats), bool)
    undecided[later] = True
    first, second = earlier, later
    while len(second):
        waits = undecided[first]
        hit = second[~waits & (repeats[first] < 0)]
        repeats[hit] = 0
        undecided[hit] = False
        still = waits & undecided[second]
        undecided[second] = False
        first, second = first[still], second[still]
        undecided[second] = True
    stays = repeats[earlier] < 0
    order = np.lexsort((earlier[stays], later[stays]))
    dropped, at = np.unique(later[stays][order], return_index=True)
    repeats[dropped] = earlier[stays][order][at]


_BLOCK = 2**20
# Work that takes less is not worth a line.
QUIET_SECONDS = 5.0


class FirstOfLike(TwoPassFilter):
    """Drops a row whose pair, reference or translation is like that of an earlier row that stays.

    Args:
        compared: What is compared.
        likeness: When two are alike.
        load_encoder: Loads what gives the vectors, if cosines are to decide.
        encoder_identity: What tells the encoder from others, as JSON values.
    """

    number = "id of the row that stays"

    def __init__(
        self,
        compared: Copied,
        likeness: Likeness,
        load_encoder: Callable[[], Encoder] | None = None,
        encoder_identity: Mapping[str, Any] | None = None,
    ) -> None:
        self.compared, self.likeness = compared, likeness
        self._load_encoder, self._encoder_identity = load_encoder, encoder_identity
        self.columns = SIDES[compared]
        self.reason = f"with the {compared} nearly that of an earlier row"

    @property
    def identity(self) -> Mapping[str, Any]:
        """Its settings. English is not named: what was selected before there were other languages is known again."""
        settings = {"filter": "near-duplicates", "of": self.compared, **asdict(self.likeness)}
        if self.likeness.language == ENGLISH:
            del settings["language"]
        return settings | ({"encoder": dict(self._encoder_identity)} if self._encoder_identity else {})

    def prepare(self, rows: Rows, work: Path) -> None:
        """Find what is like an earlier row, and write down the id of that one."""
        encoder = self._load_encoder() if self._load_encoder else None
        with writing(work):
            search = NearDuplicateSearch(work, self.likeness, encoder)
            ids = ColumnFile(work / "ids", np.int64)
            for table in rows():
                search.add([joined(table[name]) for name in self.columns])
                ids.append(table["id"].to_numpy())
            with Progress(f"compare: {self.reason}", unit="steps", least=QUIET_SECONDS) as progress:
                repeats = search.repeats(partial(_show, progress))
            self._first = ColumnFile(work / "first", np.int64)
            for start in range(0, len(repeats), _BLOCK):
                block = repeats[start : start + _BLOCK]
                firsts = np.full(len(block), -1, np.int64)
                firsts[block >= 0] = ids.take(block[block >= 0])
                self._first.append(firsts)
            ids.close()
        # The rows are known by their place from here on.
        self.columns, self._seen = (), 0

    def judge(self, table: pa.Table) -> Verdict:
        """Judge the next rows."""
        first = self._first.read(self._seen, self._seen + table.num_rows)
        self._seen += table.num_rows
        return Verdict(first < 0, first.astype(np.float64))


def _show(progress: Progress, done: int, total: int) -> None:
    progress.total = total
    progress.advance_to(done)
