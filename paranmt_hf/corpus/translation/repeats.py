"""Sentences that occur several times in a corpus: they are found, and translated only once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paranmt_hf.corpus.translation.translator import Translations, Translator
from paranmt_hf.text.identity import hash_texts
from paranmt_hf.util.ranges import ranges

# Translating repeated sentences ahead means loading the model once more, so it must save this share of the sentences.
LEAST_SHARE = 0.01
MOST = 500_000  # Number of translations of repeated sentences that a worker holds
HASHES_AT_ONCE = 2**24  # Number of hashes that are sorted in memory at once


def repeated_texts(
    columns: Callable[[], Iterable[pa.Array | pa.ChunkedArray]],
    folder: Path,
    *,
    most: int = MOST,
    least_share: float = LEAST_SHARE,
    hashes_at_once: int = HASHES_AT_ONCE,
) -> Iterator[pa.Array]:
    """Find the texts that occur several times, the most frequent ones if there are too many.

    Texts are counted by hashes in a file, so memory does not grow with their number.

    Args:
        columns: Reads all texts from the start, one column [text] after the other; it is called up to twice.
        folder: Folder for the file of hashes, which vanishes when the function ends.
        most: Largest number of texts that are found.
        least_share: Nothing is found if fewer than this share of all texts repeat one of those that are found.
        hashes_at_once: Number of hashes that are counted at once.

    Yields:
        The texts [text] of a column whose first copy is in it, in their order; columns without any are skipped.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        rows = 0
        for column in columns():
            file.write(hash_texts(column).tobytes())
            rows += len(column)
        hashes, repeats = _most_frequent(file, rows, most, hashes_at_once)
    if not repeats or repeats < least_share * rows:
        return
    waiting = np.ones(len(hashes), bool)
    for column in columns():
        found = hash_texts(column)
        places = np.minimum(np.searchsorted(hashes, found), len(hashes) - 1)
        here = np.flatnonzero((hashes[places] == found) & waiting[places])
        _, firsts = np.unique(places[here], return_index=True)
        taken = here[np.sort(firsts)]
        waiting[places[taken]] = False
        if len(taken):
            yield column.take(pa.array(taken))


def _most_frequent(file: IO[bytes], rows: int, most: int, at_once: int) -> tuple[np.ndarray, int]:
    """Return the `most` most frequent of the hashes that occur several times, and how many of them are repeats.

    Args:
        file: Hashes [row], uint64.
        rows: Number of hashes.
        most: Largest number of hashes that are returned.
        at_once: Number of hashes that are counted at once.

    Returns:
        Hashes [text], uint64, ascending, and the number of rows that repeat an earlier row with one of them.
    """
    hashes, counts = np.empty(0, np.uint64), np.empty(0, np.int64)
    parts = rows // at_once + 1
    for part in range(parts):
        file.seek(0)
        held = [np.empty(0, np.uint64)]
        while content := file.read(8 * at_once):
            block = np.frombuffer(content, np.uint64)
            held.append(block[block % np.uint64(parts) == part])
        values, times = np.unique(np.concatenate(held), return_counts=True)
        hashes = np.concatenate([hashes, values[times > 1]])
        counts = np.concatenate([counts, times[times > 1]])
        # Among equally frequent hashes the smallest are kept, so that the result does not depend on the parts.
        order = np.lexsort((hashes, -counts))[:most]
        hashes, counts = hashes[order], counts[order]
    return np.sort(hashes), int((counts - 1).sum())


class KnownTranslations:
    """A translator that looks up sentences whose translations are known, and passes on the others.

    Args:
        translator: Translates the other sentences, with the same settings.
        known: The known hypotheses: `source`, `translation` (may be null) and `translation_score`. Those of a sentence
            are consecutive, the best first.
    """

    def __init__(self, translator: Translator, known: pa.Table) -> None:
        self.identity = translator.identity
        self._translator = translator
        # All hypotheses of all sentences may have more bytes than a `string` array can hold.
        self._texts: pa.Array = known["translation"].cast(pa.large_string()).combine_chunks()
        self._scores = known["translation_score"].to_numpy()
        sources = known["source"].cast(pa.large_string()).combine_chunks()
        changes = pc.not_equal(sources[1:], sources[:-1]).to_numpy(zero_copy_only=False)
        bounds = np.concatenate([[0], np.flatnonzero(changes) + 1, [len(sources)]])
        hashes = hash_texts(sources.take(pa.array(bounds[:-1])))
        order = np.argsort(hashes)
        # Of each sentence, in the order of the hashes: its hash, its text, its first hypothesis, their number.
        self._hashes = hashes[order]
        self._firsts, self._counts = bounds[:-1][order], np.diff(bounds)[order]
        self._sources = sources.take(pa.array(self._firsts))

    def translate(self, sentences: Sequence[str]) -> Translations:
        """Translate sentences; those that are known are not translated again."""
        places = np.minimum(np.searchsorted(self._hashes, hash_texts(sentences)), len(self._hashes) - 1)
        same = pc.equal(self._sources.take(pa.array(places)), pa.array(sentences, pa.large_string()))
        is_known = same.to_numpy(zero_copy_only=False)
        others, known = np.flatnonzero(~is_known), np.flatnonzero(is_known)
        rest = self._translator.translate([sentences[index] for index in others.tolist()])
        counts = self._counts[places[known]]
        # Row of each known hypothesis: those of a sentence follow its first one.
        rows, _ = ranges(self._firsts[places[known]], counts)
        owners = np.concatenate([others if rest.owners is None else others[rest.owners], np.repeat(known, counts)])
        order = np.argsort(owners, kind="stable")
        texts = [*rest.texts, *self._texts.take(pa.array(rows)).to_pylist()]
        scores = np.concatenate([rest.scores, self._scores[rows]])
        return Translations(
            [texts[index] for index in order], scores[order], None if rest.owners is None else owners[order]
        )
