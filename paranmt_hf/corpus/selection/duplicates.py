"""Filters of rows that repeat an earlier one, exactly or nearly; the first row by id is kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.scoring.differences import Differences
from paranmt_hf.corpus.scoring.mismatch_columns import DEFINITION
from paranmt_hf.corpus.scoring.scores import encode_distinct
from paranmt_hf.corpus.selection.filters import Rows, TwoPassFilter, Verdict
from paranmt_hf.corpus.selection.minhash import (
    BATCH,
    BLOCK,
    FIRST,
    CandidateFiles,
    DocumentStore,
    MinHash,
    Sets,
    Shingler,
    bands_and_rows,
    jaccard,
    sharing,
)
from paranmt_hf.corpus.selection.text_file import TextFile
from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.text.identity import mix, salt
from paranmt_hf.text.normal_form import normal_form
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.util.files import writing
from paranmt_hf.util.parquet import database
from paranmt_hf.util.progress import QUIET_SECONDS, Progress

JACCARD, COSINE = 0.7, 0.95  # Thresholds of near-duplicates by shingles and by vectors
_COMPARED = 2**15  # Pairs that are compared at once
_ROWS = 2_048  # Documents whose cosines are computed at once


@dataclass(frozen=True)
class Likeness:
    """When two documents are near-duplicates."""

    # Smallest Jaccard similarity of the sets of shingles (default: 0.7), or with an encoder smallest cosine of the
    # vectors (default: 0.95)
    similarity: float | None = None
    exhaustive: bool = False  # With an encoder: compare every document with every earlier one that is kept

    def least(self, encoder: bool) -> float:
        """Smallest similarity of two near-duplicates, with or without an encoder."""
        return self.similarity or (COSINE if encoder else JACCARD)


class NearDuplicateSearch:
    """Collects documents in batches, then finds which of them are near-duplicates of an earlier one.

    A document is one sentence or a pair of sentences. Two are alike if their Jaccard similarity reaches the threshold;
    with an encoder, if the cosine of their vectors (two are concatenated) does, which are stored as float16, so only
    three digits of it are exact. Documents without any shingle, or with a vector of zeros, are like none. The result
    depends on the documents and their order alone, not on the batches. With `differences` no two documents that differ
    in a number, a negation and so on are alike.

    Memory: a sort of 2**25 keys, and 18 bytes for each document. Disk, in the empty `folder`: 8 bytes for each band
    and each shingle of a document, and 2 for each dimension with an encoder.
    """

    def __init__(
        self,
        folder: Path,
        likeness: Likeness,
        language: str = ENGLISH,
        encoder: Encoder | None = None,
        *,
        differences: Differences | None = None,
    ) -> None:
        self._encoder, self._folder, self._differences = encoder, folder, differences
        self._least = likeness.least(encoder is not None)
        self._compares_all = encoder is not None and likeness.exhaustive
        self._shingler = Shingler(language)
        # An encoder decides about the candidates that the default finds: a cosine is no Jaccard similarity.
        self._minhash = MinHash(*bands_and_rows(JACCARD if encoder else self._least))
        # The last key is that of the whole set, which finds equal ones.
        self._store = DocumentStore(folder, self._minhash.bands + 1)

    def __len__(self) -> int:
        return len(self._store)

    def add(self, columns: Sequence[pa.Array]) -> None:
        for start in range(0, len(columns[0]), BATCH):
            self._add([column.slice(start, BATCH) for column in columns])

    def _add(self, columns: Sequence[pa.Array]) -> None:
        sets = self._shingler.sets(columns)
        lengths = np.diff(sets.offsets)
        filled = np.flatnonzero(lengths)
        keys = np.empty((len(self._store.keys), len(sets)), np.uint64)
        # Documents without shingles get keys of their own.
        keys[:] = mix(np.arange(len(self), len(self) + len(sets), dtype=np.uint64) ^ salt(7))
        if len(filled):
            starts = sets.offsets[:-1][filled]
            keys[:-1, filled] = self._minhash.keys(Sets(sets.values, np.append(starts, len(sets.values))))
            keys[-1, filled] = mix(np.add.reduceat(mix(sets.values), starts))
        self._store.append(sets, keys, self._vectors(columns))

    def _vectors(self, columns: Sequence[pa.Array]) -> np.ndarray | None:
        if self._encoder is None:
            return None
        parts = [unit_vectors(encode_distinct(column, self._encoder)) for column in columns]
        return unit_vectors(np.concatenate(parts, axis=1))

    def repeats(self, progress: Progress) -> np.ndarray:
        """For each document the first earlier kept one that is like it, -1 if it is kept [document]; call it once."""
        blocks = -(-len(self) // (_ROWS if self._compares_all else BLOCK))
        progress.total = blocks + (0 if self._compares_all else len(self._store.keys))

        def report() -> None:
            progress.advance_to(progress.rows + 1)

        repeats = np.full(len(self), -1, np.int64)
        copies = np.full(len(self), -1, np.int64)
        # Equal sets may differ by the order of their numbers.
        if len(self) and self._encoder is None and self._differences is None:
            for earlier, later in sharing(self._store.keys[-1], 1, copies >= 0):
                for pairs in _cut(earlier, later):
                    equal = self._jaccard(*pairs) == 1
                    copies[pairs[1][equal]] = pairs[0][equal]
        if self._compares_all:
            self._compare_all(repeats, report)
        elif len(self):
            self._compare_candidates(repeats, copies >= 0, report)
        # A copy is like what the first of its kind is like.
        copied = np.flatnonzero(copies >= 0)
        origin = copies[copied]
        repeats[copied] = np.where(repeats[origin] >= 0, repeats[origin], origin)
        return repeats

    def similarities(self, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        """Jaccard similarities, or cosines with an encoder, of pairs of documents [pair]."""
        return np.concatenate([np.empty(0), *(self._similarities(*pairs) for pairs in _cut(earlier, later))])

    def close(self) -> None:
        self._store.close()

    def _compare_candidates(self, repeats: np.ndarray, leave_out: np.ndarray, report: Callable[[], None]) -> None:
        pairs = CandidateFiles(self._folder, len(self))
        signatures = self._differences.signatures(len(self)) if self._differences else None
        for keys in self._store.keys:
            for earlier, later in sharing(keys, FIRST, leave_out):
                pairs.append(earlier, later)
            if signatures is not None:
                # Many texts of one template share a key; those of equal claims are found among them.
                narrower = keys.salted(signatures)
                for earlier, later in sharing(narrower, FIRST, leave_out):
                    pairs.append(earlier, later)
                narrower.remove()
            report()
        for block in pairs.blocks():
            for earlier, later in cut_between(*block):
                # Documents that are decided and were dropped need no comparison.
                open_ = repeats[earlier] < 0
                near = earlier[open_], later[open_]
                alike = self._alike(*near)
                if self._differences:
                    alike[alike] = ~self._differences.between(near[0][alike], near[1][alike])
                decide_pairs(near[0][alike], near[1][alike], repeats)
            report()

    def _alike(self, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        if self._encoder is None:
            counts = self._store.counts(earlier), self._store.counts(later)
            # No two sets are more alike than their sizes are.
            alike = np.minimum(*counts) >= self._least * np.maximum(*counts)
            alike[alike] = self._jaccard(earlier[alike], later[alike]) >= self._least
            return alike
        return self._similarities(earlier, later) >= self._least

    def _similarities(self, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        if self._encoder is None:
            return self._jaccard(earlier, later)
        return np.einsum("pd,pd->p", self._store.vectors(earlier), self._store.vectors(later))

    def _jaccard(self, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        return jaccard(self._store.sets(earlier), self._store.sets(later))

    def _compare_all(self, repeats: np.ndarray, report: Callable[[], None]) -> None:
        """Compare each document with all earlier ones that are kept, block by block."""
        stay = np.empty(0, np.int64)
        for start in range(0, len(self), _ROWS):
            block = np.arange(start, min(start + _ROWS, len(self)))
            vectors = self._store.vectors(block)
            near: list[tuple[np.ndarray, np.ndarray]] = []
            for first in range(0, len(stay), _ROWS):
                others = stay[first : first + _ROWS]
                rows, columns = np.nonzero(vectors @ self._store.vectors(others).T >= self._least)
                near.append((others[columns], block[rows]))
            rows, columns = np.nonzero(np.tril(vectors @ vectors.T, -1) >= self._least)
            near.append((block[columns], block[rows]))
            earlier, later = (np.concatenate(side) for side in zip(*near, strict=True))
            if self._differences:
                same = ~self._differences.between(earlier, later)
                earlier, later = earlier[same], later[same]
            decide_pairs(earlier, later, repeats)
            stay = np.concatenate([stay, block[repeats[block] < 0]])
            report()


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Normalise vectors [document, dimension] to length 1; vectors of zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def _cut(earlier: np.ndarray, later: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for start in range(0, len(later), _COMPARED):
        yield earlier[start : start + _COMPARED], later[start : start + _COMPARED]


def cut_between(earlier: np.ndarray, later: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Split pairs that are sorted by their later documents, never between two of the same one."""
    start = 0
    while start < len(later):
        stop = int(np.searchsorted(later, later[min(start + _COMPARED, len(later)) - 1], "right"))
        yield earlier[start:stop], later[start:stop]
        start = stop


def decide_pairs(earlier: np.ndarray, later: np.ndarray, repeats: np.ndarray) -> None:
    """Decide which later documents of similar pairs are dropped, in the order of the documents, in `repeats`.

    A document is dropped if and only if it is like an earlier one that is kept. So each dropped one is like a kept
    one, and no two that are kept are a pair. The earlier ones [pair] were decided by a call before, or are later ones
    of this call, of which [pair] none was decided. `repeats` [document] gets the first one that is kept and like each,
    or stays -1.
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


Compared = Literal["pair", "reference", "translation"]
SIDES: dict[Compared, tuple[str, ...]] = {
    "pair": ("reference", "translation"),
    "reference": ("reference",),
    "translation": ("translation",),
}


class FirstIsKept(TwoPassFilter):
    """Drops rows that repeat an earlier row; a subclass finds them."""

    task = "drop repeated rows"

    @abstractmethod
    def find_repeats(self, rows: Rows, work: Path) -> tuple[np.ndarray, np.ndarray]:
        """Places of the rows that repeat another, ascending [repeat], and ids of the repeated rows [repeat]."""

    def prepare(self, rows: Rows, work: Path) -> None:
        with writing(work):
            self._places, self._firsts = self.find_repeats(rows, work)
        # From here on, rows are recognised by their place.
        self.columns = ()

    def judge(self, table: pa.Table) -> Verdict:
        here = self.next_rows(table)
        start, stop = np.searchsorted(self._places, [here.start, here.stop])
        firsts = np.full(table.num_rows, -1, np.int64)
        firsts[self._places[start:stop] - here.start] = self._firsts[start:stop]
        return Verdict(firsts < 0, firsts.astype(np.float64))


class FirstCopies(FirstIsKept):
    """Drops a row with the pair, reference or translation of an earlier one, in the same normal form.

    Two independent hashes of 64 bits represent the sentences; DuckDB finds those that repeat, out of core.
    """

    def __init__(self, compared: Compared) -> None:
        self.compared = compared
        reason = f"with the {compared} of an earlier row"
        super().__init__("copies", reason, SIDES[compared], "id of the first", of=compared)

    def find_repeats(self, rows: Rows, work: Path) -> tuple[np.ndarray, np.ndarray]:
        names, shifted = ", ".join(self.columns), ", ".join(f"'|' || {name}" for name in self.columns)
        seen = 0
        with database(spill=work) as connection:
            connection.execute("CREATE TABLE hashed (one UBIGINT, other UBIGINT, place BIGINT, id BIGINT)")
            for table in rows():
                places = pa.array(np.arange(seen, seen + table.num_rows))
                sides = {name: normal_form(table[name]) for name in self.columns}
                connection.register("block", pa.table({**sides, "id": table["id"], "place": places}))
                connection.execute(f"INSERT INTO hashed SELECT hash({names}), hash({shifted}), place, id FROM block")
                seen += table.num_rows
            found = connection.execute(
                "SELECT place, first FROM hashed JOIN "
                "(SELECT one, other, min(place) AS first_place, min_by(id, place) AS first FROM hashed "
                "GROUP BY one, other HAVING count(*) > 1) USING (one, other) WHERE place > first_place ORDER BY place"
            ).fetchnumpy()
        return found["place"], found["first"]


class FirstOfLike(FirstIsKept):
    """Drops a row whose pair, reference or translation is similar to that of an earlier row that is kept.

    With `keep_differing`, sentences that differ in a number, a unit, a negation, a name or an address are not similar.
    """

    def __init__(
        self,
        compared: Compared,
        likeness: Likeness,
        language: str = ENGLISH,
        encoder: NamedEncoder | None = None,
        *,
        keep_differing: bool = False,
    ) -> None:
        self._likeness, self._language, self._encoder = likeness, language, encoder
        self._keep_differing = keep_differing
        reason = f"with the {compared} nearly that of an earlier row"
        settings = {"of": compared, **vars(likeness), "language": language}
        if encoder is not None:
            settings["encoder"] = encoder.identity
        if keep_differing:
            settings["mismatches"] = DEFINITION
        super().__init__("near-duplicates", reason, SIDES[compared], "id of the kept row", **settings)

    def find_repeats(self, rows: Rows, work: Path) -> tuple[np.ndarray, np.ndarray]:
        encoder = self._encoder.load() if self._encoder else None
        ids = [np.empty(0, np.int64)]
        with ExitStack() as stack:
            texts = [stack.enter_context(closing(TextFile(work / name))) for name in self.columns]
            differences = Differences(*(text.take for text in texts), language=self._language)
            search = NearDuplicateSearch(
                work,
                self._likeness,
                self._language,
                encoder,
                differences=differences if self._keep_differing else None,
            )
            stack.enter_context(closing(search))
            for table in rows():
                columns = [table[name].combine_chunks() for name in self.columns]
                search.add(columns)
                if self._keep_differing:
                    for text, column in zip(texts, columns, strict=True):
                        text.append(column)
                ids.append(table["id"].to_numpy())
            with Progress(f"compare: {self.reason}", unit="steps", least=QUIET_SECONDS) as progress:
                repeats = search.repeats(progress)
        places = np.flatnonzero(repeats >= 0)
        return places, np.concatenate(ids)[repeats[places]]
