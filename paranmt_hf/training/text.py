"""Sentences without paraphrases, as data for learning from a teacher, alone or after pairs."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.reading.pairs import SIDES, Pairs
from paranmt_hf.corpus.reading.readers import Report
from paranmt_hf.corpus.reading.sentences import SENTENCE, TRANSLATION, SentenceSources
from paranmt_hf.corpus.selection.decontamination import EvaluationText
from paranmt_hf.errors import InputError
from paranmt_hf.text.identity import distinct_rows, keys_of
from paranmt_hf.util.wording import counted

logger = logging.getLogger(__name__)
# Names of the columns that a teacher reads, the translations of text, by the name of the side that they translate.
TAUGHT = {side: f"taught {side}" for side in SIDES}


class PairsAndText:
    """Pairs, if there are any, followed by rows of two sentences of text, if there is text.

    The sentences of such a row are no paraphrases, so this is for learning from a teacher alone.

    Args:
        pairs: The pairs; None for none.
        text: The sentences of text; None for none.
        unwanted: Sentences of test sets. Text is left out if it, or its translation, is one of them or shares eight
            words in a row with one.

    Attributes:
        unit: Name of a row in messages.
    """

    unit = "pairs of sentences"

    def __init__(self, pairs: Pairs | None, text: SentenceSources | None, unwanted: Collection[str] = ()) -> None:
        self._pairs, self._text = pairs, text
        self._unwanted: EvaluationText | None = None
        self._checksum: str | None = None
        if unwanted:
            self._unwanted = EvaluationText(unwanted)
            lines = "\n".join(sorted(unwanted)).encode("utf8", "surrogatepass")
            self._checksum = hashlib.sha256(lines).hexdigest()
        # Number of sentences of the last reading, and how many of them were left out, by reason.
        self._read = 0
        self._left_out: dict[str, int] = {}

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the sentences, as JSON values."""
        pairs: dict[str, Any] = {"sources": [], "ranges": {}, "unwanted_sentences": 0}
        if self._pairs is not None:
            pairs = self._pairs.identity
        return {**pairs, "text": self._text and self._text.identity, "text_unwanted_checksum": self._checksum}

    @property
    def translated(self) -> bool:
        """Whether a teacher reads translations of some of the text."""
        return self._text is not None and self._text.translated

    @property
    def names(self) -> list[str]:
        """Names of the files and datasets of text, without folders."""
        return self._text.names if self._text is not None else []

    @property
    def left_out_by(self) -> dict[str, int]:
        """Numbers of rows and sentences that the last reading left out, by reason."""
        of_pairs = self._pairs.left_out_by if self._pairs is not None else {}
        return of_pairs | {f"sentences of text {reason}": count for reason, count in self._left_out.items()}

    @property
    def left_out(self) -> str:
        """Text that says what the last reading left out."""
        counts = ", ".join(f"{count:,} left out, {reason}" for reason, count in self._left_out.items())
        of_text = f"of {counted(self._read, 'sentence')} of text {counts or 'none was left out'}"
        return of_text if self._pairs is None else f"{self._pairs.left_out}; {of_text}"

    def batches(self) -> Iterator[pa.Table]:
        """Read tables with the columns `reference` and `translation`, and those of `TAUGHT` for translated text.

        There are no nulls.
        """
        if self._pairs is not None:
            yield from self._pairs.batches()
        waiting: list[pa.Table] = []
        for rows in self.rows():
            rows = pa.concat_tables([*waiting, rows])
            even = len(rows) // 2 * 2
            waiting = [rows[even:]]
            if even:
                yield _by_twos(rows[:even], translated=self.translated)
        if waiting and len(waiting[0]):
            # The last sentence of an odd number is both sides of a row.
            yield _by_twos(pa.concat_tables(2 * waiting), translated=self.translated)

    def columns(self) -> Iterator[pa.Array]:
        """Read every sentence once, in columns [sentence]: both sides of the pairs, then the text."""
        if self._pairs is not None:
            for table in self._pairs.batches():
                for side in SIDES:
                    yield pa.concat_arrays(table[side].chunks)
        for rows in self.rows():
            yield rows[SENTENCE].combine_chunks()

    def rows(self) -> Iterator[pa.Table]:
        """Read the sentences of text, with their translations if there are any, and count those that are left out."""
        if self._text is None:
            return
        report = Report()
        kept = shared = 0
        for rows in self._text.rows(report):
            chosen = rows
            if self._unwanted is not None and len(rows):
                found: np.ndarray = self._unwanted.found_in(rows[SENTENCE].combine_chunks())
                if self.translated:
                    found = found | self._unwanted.found_in(rows[TRANSLATION].combine_chunks())
                chosen = rows.filter(pa.array(~found))
            kept += len(chosen)
            shared += len(rows) - len(chosen)
            yield chosen
        self._read = kept + shared + sum(report.dropped.values())
        self._left_out = {f"dropped as {reason}": count for reason, count in report.dropped.items() if count}
        if shared:
            self._left_out["with a sentence of the excluded sets, or eight words of one"] = shared
        if report.dropped.get("undecodable", 0) > kept + shared:
            raise InputError(
                f"most lines are not UTF-8: {self.left_out}; convert the files, such as with `iconv`", option="text"
            )


def _by_twos(rows: pa.Table, *, translated: bool) -> pa.Table:
    """Form rows of two sentences: sentences 2i and 2i + 1 are the sides of row i.

    Args:
        rows: The sentences, an even number.
        translated: Whether they have translations, which are put into the columns of `TAUGHT`.
    """
    rows = rows.combine_chunks()
    columns: dict[str, pa.Array] = {}
    for index, side in enumerate(SIDES):
        chosen = rows.take(pa.array(np.arange(index, len(rows), 2)))
        columns[side] = chosen[SENTENCE]
        if translated:
            columns[TAUGHT[side]] = chosen[TRANSLATION]
    return pa.table(columns)


def split_text(sentences: PairsAndText, most: int, multiple: int, seed: int) -> tuple[pa.Table, pa.Table]:
    """Hold out some of the distinct sentences of text.

    A sentence that is repeated is used where it occurs first.

    Args:
        sentences: The text.
        most: Maximum number of sentences that are held out; a tenth of all is another limit.
        multiple: The number that is held out is a multiple of this.
        seed: Determines which sentences are held out.

    Returns:
        The other sentences, and those that are held out: tables with the column `sentence`, and `translation` for text
        with translations.
    """
    columns = [SENTENCE, *([TRANSLATION] if sentences.translated else [])]
    # Begin with an empty table, because a source whose lines are all left out gives none.
    nothing = pa.table({name: pa.array([], pa.string()) for name in columns})
    table = pa.concat_tables([nothing, *(rows.select(columns) for rows in sentences.rows())])
    log_left_out(sentences.left_out_by)
    keys = keys_in(table) if len(table) else np.empty(0, np.uint64)
    first = distinct_rows(keys)
    # Leave out sentences without a word, whose key is 0.
    distinct = first[keys[first] != 0]
    if len(distinct) < 2:
        found = f"{counted(len(distinct), 'distinct sentence')}; {sentences.left_out}"
        raise InputError(f"there is nothing to learn from: {found}; give more text", option="text")
    count = min(most, len(distinct) // 10) // multiple * multiple
    chosen = distinct[np.random.default_rng(seed).choice(len(distinct), count, replace=False)]
    is_held_out, is_other = np.zeros((2, len(table)), bool)
    is_held_out[chosen] = is_other[distinct] = True
    return table.filter(is_other & ~is_held_out), table.filter(is_held_out)


def keys_in(table: pa.Table) -> np.ndarray:
    """Return the keys of the sentences of a table [sentence], uint64."""
    return np.concatenate([keys_of(part)[0] for part in table[SENTENCE].chunks if len(part)])


def log_left_out(reasons: Mapping[str, int]) -> None:
    """Log how many rows or sentences were left out, by reason."""
    for reason, count in reasons.items():
        logger.info(f"left out, {reason}: {count:,}")
