"""Sentences without a paraphrase beside the pairs: a teacher tells which of them are alike."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.bitext.readers import Report
from paranmt_hf.corpus.pairs import SIDES, Pairs
from paranmt_hf.corpus.selection.decontamination import EvaluationText
from paranmt_hf.corpus.sentences import SentenceSources


class PairsAndText:
    """Pairs, and behind them the sentences of text, two of which stand where a pair has its sides.

    Nothing says that such two are paraphrases, so this is for a teacher alone.

    Attributes:
        unit: What a row is called where rows are counted.

    Args:
        pairs: The pairs, if there are any.
        text: The sentences, if there are any.
        unwanted: Sentences of test sets: what shares one of them, or eight words in a row with one, is left out.
    """

    unit = "pairs of sentences"

    def __init__(self, pairs: Pairs | None, text: SentenceSources | None, unwanted: Collection[str] = ()) -> None:
        self._pairs, self._text = pairs, text
        self._unwanted = EvaluationText(unwanted) if unwanted else None
        lines = "\n".join(sorted(unwanted)).encode("utf8", "surrogatepass")
        self._checksum = hashlib.sha256(lines).hexdigest() if unwanted else None
        self._shared = self._read = 0
        self._dropped: dict[str, int] = {}

    @property
    def identity(self) -> dict[str, Any]:
        """What determines the sentences, as JSON values; that of the pairs, if there are any, with the text's."""
        pairs = self._pairs.identity if self._pairs is not None else NO_PAIRS
        return {
            **pairs,
            "text": self._text.identity if self._text is not None else None,
            "text_unwanted_checksum": self._checksum,
        }

    @property
    def names(self) -> list[str]:
        """Names of the files and data sets of text, without their folders."""
        return self._text.names if self._text is not None else []

    @property
    def left_out_by(self) -> dict[str, int]:
        """What the last reading left out, by reason, of the pairs and of the text; see `Pairs.left_out_by`."""
        of_pairs = self._pairs.left_out_by if self._pairs is not None else {}
        return of_pairs | {f"sentences of text {reason}": count for reason, count in self._reasons.items() if count}

    @property
    def left_out(self) -> str:
        """What the last reading left out, as a sentence can say it."""
        of_pairs = [self._pairs.left_out] if self._pairs is not None else []
        counts = [f"{count:,} were left out, {reason}" for reason, count in self._reasons.items() if count]
        read = self._read + sum(self._dropped.values())
        return "; ".join([*of_pairs, f"of {read:,} sentences of text {', '.join(counts) or 'none was left out'}"])

    @property
    def _reasons(self) -> dict[str, int]:
        dropped = {f"dropped as {reason}": count for reason, count in self._dropped.items()}
        return {**dropped, "with a sentence of the excluded sets, or eight words of one": self._shared}

    def errors(self) -> Iterator[pa.Table]:
        """Read pairs that differ in a number or a negation: for a margin loss, which is not for text."""
        return iter(())

    def batches(self) -> Iterator[pa.Table]:
        """Read tables with the columns `reference` and `translation`, without nulls."""
        if self._pairs is not None:
            yield from self._pairs.batches()
        waiting = pa.array([], pa.string())
        for column in self._sentences():
            sentences = pa.concat_arrays([waiting, column])
            whole = len(sentences) // 2 * 2
            waiting = sentences[whole:]
            if whole:
                yield _by_twos(sentences[:whole])
        if len(waiting):
            # One is left over, and is both sides.
            yield _by_twos(pa.concat_arrays([waiting, waiting]))

    def columns(self) -> Iterator[pa.Array]:
        """Read every sentence once: both sides of the pairs, then the text [sentence]."""
        for table in self._pairs.batches() if self._pairs is not None else ():
            for side in SIDES:
                yield pa.concat_arrays(table[side].chunks)
        yield from self._sentences()

    def _sentences(self) -> Iterator[pa.Array]:
        """Read the text without what is unwanted, and count that."""
        self._shared = self._read = 0
        report = Report()
        for column in self._text.batches(report) if self._text is not None else ():
            sentences = column.cast(pa.string()).drop_null()
            self._read += len(sentences)
            if self._unwanted is not None and len(sentences):
                shared = self._unwanted.found_in(sentences)
                self._shared += int(shared.sum())
                sentences = sentences.filter(pa.array(~shared))
            yield sentences
        self._dropped = dict(report.dropped)


# Where a record has the data's sources and how they were chosen, for text alone.
NO_PAIRS: dict[str, Any] = {"sources": [], "ranges": {}, "unwanted_sentences": 0}


def _by_twos(sentences: pa.Array) -> pa.Table:
    """Make a table of sentences: sentences 2i and 2i + 1 are the sides of row i."""
    sides = [sentences.take(pa.array(np.arange(side, len(sentences), 2))) for side in (0, 1)]
    return pa.table(dict(zip(SIDES, sides, strict=True)))
