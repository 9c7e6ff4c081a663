"""`TextMemory`: a set of texts on disk that grows, and knows which new texts mean the same as one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import index
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from paranmt_hf.encoders.named_encoder import NamedEncoder
from paranmt_hf.encoders.static_encoder import StaticEncoder
from paranmt_hf.errors import refuse
from paranmt_hf.meaning.judgement import Meaning, judged
from paranmt_hf.search.growing_index import SCALE, GrowingIndex, rounded
from paranmt_hf.search.memory_file import MemoryFile
from paranmt_hf.search.storage import normalised, spans
from paranmt_hf.text.languages import ENGLISH
from paranmt_hf.text.text_lists import list_of_texts
from paranmt_hf.util.records import as_json

COMPARED = 4  # Number of nearest texts, of those in memory, with which each new text is compared
AT_ONCE = 256  # Number of texts that are added at once
LEAST = np.float32(0.3)  # Texts with a smaller cosine are never taken for the same


@dataclass(frozen=True)
class MemoryHit:
    """A text of a memory that is near to another text.

    Attributes:
        id: Its number in the memory, from 1.
        text: The text.
        value: What was stored with it; None if nothing was.
        cosine: Cosine of the two texts, in [-1, 1], of vectors of 8 bits: exact to about 0.01.
        meaning: Whether the two texts mean the same, how probably, and why not.
    """

    id: int
    text: str
    value: str | None
    cosine: float
    meaning: Meaning


@dataclass(frozen=True)
class Remembered:
    """What a memory did with a text.

    Attributes:
        known: Whether the memory had a text of the same meaning, so that this one was not added.
        id: Number of the text, or of the known one.
        nearest: The nearest text of the memory, or the known one; None if the memory was empty or nothing was near.
    """

    known: bool
    id: int
    nearest: MemoryHit | None

    @property
    def reasons(self) -> tuple[str, ...]:
        """How the nearest text differs, in words; empty if it does not, or there is none."""
        return () if self.nearest is None else self.nearest.meaning.reasons


@dataclass(frozen=True)
class Candidate:
    """A text that a new text may repeat."""

    cosine: float  # Cosine of the two
    id: int = 0  # Its number in the memory; 0 for a text of the same call
    row: int = -1  # Its row in the call; -1 for a text of the memory


class TextMemory:
    """A set of texts in a folder that grows, and knows which new texts mean the same as one of them.

    Texts may have a value, such as an answer. All is in one SQLite file. Each call is a transaction, or several for
    more than 256 texts: after a process is killed, the file has what the finished ones added. Several processes and
    threads may use a memory at once. The vectors are in memory, too, with a byte for each dimension and text.

    Args:
        folder: Folder of the memory, which is made if there is none.
        encoder: Calibrated encoder without layers behind its table: folder or Hub id; that of this package for the
            language if left out. A memory keeps its encoder.
        threshold: Smallest probability of texts that mean the same; see `paranmt_hf.same_meaning`.
        prior: Share of paraphrases among the texts that are near; that of the calibration data if left out.
        language: Language of the texts (ISO 639-1).

    Raises:
        InputError: The encoder is not calibrated, or another one than that of the memory.
    """

    def __init__(
        self,
        folder: str | Path,
        encoder: str | Path | None = None,
        *,
        threshold: float = 0.5,
        prior: float | None = None,
        language: str = ENGLISH,
    ) -> None:
        refuse(not 0 < threshold <= 1, f"threshold must be above 0 and at most 1, was {threshold}", option="threshold")
        self.folder = Path(folder).expanduser()
        self._threshold, self._prior, self._language = threshold, prior, language
        named = NamedEncoder.of(encoder, language)
        named.check_language(language)
        self._encoder = StaticEncoder.from_pretrained(named.name)
        # Fails here if the encoder is not calibrated.
        self._encoder.probability("a", "b", prior=prior)
        self._index = GrowingIndex(self._encoder.dimension)
        self._read, self._removals = 0, 0  # The last id, and the last removal, that the index has
        self._file = MemoryFile(self.folder, str(as_json(named.identity)["revision"]), named.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __len__(self) -> int:
        with self._file.guarded():
            self._refresh()
        return len(self._index)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run a block as one transaction, with the changes of other processes in the index."""
        with self._file.guarded():
            try:
                with self._file.transaction():
                    self._refresh()
                    yield
            except BaseException:
                # The index may have what was rolled back, so all is read again.
                self._index = GrowingIndex(self._index.dimension)
                self._read = self._removals = 0
                raise

    def _refresh(self) -> None:
        """Read what this or other processes have added and removed since the index was last refreshed."""
        while rows := self._file.vectors_after(self._read):
            vectors = np.frombuffer(b"".join(row[1] for row in rows), np.int8).reshape(len(rows), -1)
            ids = np.array([row[0] for row in rows], np.int64)
            for start, stop in spans(len(rows), AT_ONCE):
                self._index.add(normalised(vectors[start:stop]), ids[start:stop])
                self._make_lists()
            self._read = rows[-1][0]
        gone = self._file.removed_after(self._removals)
        if gone:
            self._index.remove(np.array([row[1] for row in gone], np.int64))
            self._removals = gone[-1][0]

    def _make_lists(self) -> None:
        """Sort the index into more lists if it has grown much."""
        if self._index.wants_lists:
            self._index = self._index.with_lists(seed=1)

    def add(self, texts: str | Iterable[str], values: str | Iterable[str | None] | None = None) -> list[Remembered]:
        """Add texts, in their order, except those of which the memory has one of the same meaning.

        Args:
            texts: The texts, or a single one.
            values: What is stored with each of them, such as an answer; nothing if left out.

        Returns:
            What was done with each text [text].
        """
        added = list_of_texts([texts] if isinstance(texts, str) else texts, "texts")
        given: list[str | None] = [None] * len(added)
        if values is not None:
            given = [values] if isinstance(values, str) else [*values]
        refuse(
            len(given) != len(added),
            f"expected {len(added)} values, one for each text, got {len(given)}",
            option="values",
        )
        is_text = all(value is None or isinstance(value, str) for value in given)
        refuse(not is_text, "values must be texts, or None", option="values")
        found: list[Remembered] = []
        for start, stop in spans(len(added), AT_ONCE):
            with self._transaction():
                found += self._add(added[start:stop], given[start:stop])
        return found

    def _add(self, texts: list[str], values: list[str | None]) -> list[Remembered]:
        """Add some texts in a transaction."""
        vectors = normalised(self._encoder.encode(texts))
        candidates = self._candidates(vectors)
        stored = self._file.texts_of([each.id for some in candidates for each in some if each.id])
        pairs = [(row, each) for row, some in enumerate(candidates) for each in some]
        meanings = self._meanings(
            [texts[row] for row, _ in pairs],
            [stored[each.id][0] if each.id else texts[each.row] for _, each in pairs],
            [each.cosine for _, each in pairs],
        )
        last = self._file.last_number()
        unread = np.flatnonzero(~vectors.any(axis=1))
        equal = self._file.numbers_of(texts[row] for row in unread.tolist())
        numbers: list[int] = []  # Number of each text that was added, 0 for the others
        found = []
        meaning_of = iter(meanings)
        for row, text in enumerate(texts):
            hits = []
            for each in candidates[row]:
                meaning, number = next(meaning_of), each.id or numbers[each.row]
                if number:
                    seen, value = stored[number] if each.id else (texts[each.row], values[each.row])
                    hits.append(MemoryHit(number, seen, value, min(each.cosine, 1.0), meaning))
            if text in equal and not vectors[row].any():
                # The encoder knows no word of the text, so only the same text is known.
                hits.append(MemoryHit(equal[text][0], text, equal[text][1], 1.0, Meaning(True, 1.0, ())))
            hits.sort(key=lambda hit: (-hit.cosine, hit.id))
            nearest = max(hits[:COMPARED], key=lambda hit: (hit.meaning.same, hit.meaning.probability), default=None)
            if nearest is not None and nearest.meaning.same:
                numbers.append(0)
                found.append(Remembered(True, nearest.id, nearest))
            else:
                last += 1
                numbers.append(last)
                vector = rounded(vectors[row : row + 1]).tobytes()
                self._file.insert(last, text, values[row], vector)
                found.append(Remembered(False, last, nearest))
                equal[text] = last, values[row]
        new = np.flatnonzero(numbers)
        if len(new):
            self._index.add(vectors[new], np.array(numbers, np.int64)[new])
            self._read = last
            self._make_lists()
        return found

    def _candidates(self, vectors: np.ndarray) -> list[list[Candidate]]:
        """Find the texts that each new text may repeat: the nearest of the memory, and the earlier ones of the call.

        Args:
            vectors: Vectors of length 1 of the new texts [text, dimension].
        """
        items, cosines = self._index.nearest(vectors, COMPARED)
        found = [
            [Candidate(cosine, item) for item, cosine in zip(*pair, strict=True) if item >= 0 and cosine >= LEAST]
            for pair in zip(items.tolist(), cosines.tolist(), strict=True)
        ]
        # As the memory would compare them
        among = np.tril(vectors @ (rounded(vectors) / SCALE).T, -1)
        for row, earlier in np.argwhere(among >= LEAST).tolist():
            found[row].append(Candidate(float(among[row, earlier]), row=earlier))
        return found

    def _meanings(self, first: list[str], second: list[str], cosines: Sequence[float]) -> list[Meaning]:
        """Judge pairs of texts; those whose cosine alone is too small are not read."""
        calibration = self._encoder.calibration
        assert calibration is not None
        probabilities = calibration.probability(np.array(cosines, np.float64), prior=self._prior)
        found = [Meaning(False, probability, ()) for probability in probabilities.tolist()]
        near = np.flatnonzero(probabilities >= min(self._threshold, 0.5)).tolist()
        sides = [first[pair] for pair in near], [second[pair] for pair in near]
        meanings = judged(probabilities[near], *sides, self._threshold, self._language)
        for pair, meaning in zip(near, meanings, strict=True):
            found[pair] = meaning
        return found

    def find(self, texts: str | Iterable[str], *, top: int = 1) -> list[list[MemoryHit]]:
        """Find the texts nearest to others, the nearest first.

        Args:
            texts: The texts to look for, or a single one.
            top: Maximum number of hits for each.

        Returns:
            Hits of each text [text]; `hit.meaning.same` says whether it means the same.
        """
        refuse(top < 1, f"top must be at least 1, was {top}", option="top")
        wanted = list_of_texts([texts] if isinstance(texts, str) else texts, "texts")
        if not wanted:
            return []
        vectors = normalised(self._encoder.encode(wanted))
        with self._file.guarded():
            self._refresh()
            items, cosines = self._index.nearest(vectors, top)
            known = self._file.texts_of([item for item in items.ravel().tolist() if item >= 0])
        # Another process may have removed a text in the meantime.
        pairs = [
            (row, item, float(cosines[row, rank]))
            for row, some in enumerate(items.tolist())
            for rank, item in enumerate(some)
            if item in known
        ]
        meanings = self._meanings(
            [wanted[row] for row, _, _ in pairs], [known[item][0] for _, item, _ in pairs], [c for _, _, c in pairs]
        )
        found: list[list[MemoryHit]] = [[] for _ in wanted]
        for (row, item, cosine), meaning in zip(pairs, meanings, strict=True):
            text, value = known[item]
            found[row].append(MemoryHit(item, text, value, min(cosine, 1.0), meaning))
        return found

    def remove(self, ids: int | Iterable[int]) -> int:
        """Remove texts by their numbers, and return how many there were; numbers are not given again."""
        refuse(isinstance(ids, str), "ids are numbers, as `add` and `find` give them", option="ids")
        wanted = [ids] if isinstance(ids, int) else [index(number) for number in ids]
        with self._transaction():
            known = [*self._file.texts_of(wanted)]
            self._file.remove(known)
            self._refresh()
        return len(known)

    def texts(self) -> Iterator[tuple[int, str, str | None]]:
        """Yield the number, the text and the value of each text, in the order in which they were added."""
        last = 0
        while True:
            with self._file.guarded():
                rows = self._file.texts_after(last)
            if not rows:
                return
            yield from rows
            last = rows[-1][0]
