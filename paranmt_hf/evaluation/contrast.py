"""The contrast set: does a model find a paraphrase closer than a sentence that looks alike and means something else?

Each triple is a sentence, a paraphrase and another sentence, which differs from the first in a number, a negation, a
name or a direction. Most paraphrases share fewer words with the sentence than the other one does, so a model that
counts common words is right in far less than half of them. Not in the papers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any, Literal

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.lines import parse_sentence, read_lines
from paranmt_hf.evaluation.similarities import PairSimilarity, pair_similarities
from paranmt_hf.hub.repository import ASSETS
from paranmt_hf.text.protocols import Encoder
from paranmt_hf.util.records import to_json
from paranmt_hf.util.tables import percent, write_table

COLUMNS = ("kind", "sentence", "paraphrase", "other")
# The triples that the package carries.
CONTRAST = ASSETS / "contrast" / "contrast.tsv"
ALL = "all"
# 97.5 % of a normal distribution lie below this many standard deviations above its mean.
QUANTILE = 1.959964


@dataclass(frozen=True)
class Triples:
    """Triples of sentences.

    Attributes:
        name: Name of the set.
        kinds: In what the other sentence differs [triple], such as `number`.
        sentences: The sentences [triple].
        paraphrases: A paraphrase of each [triple].
        others: A sentence that means something else for each [triple].
    """

    name: str
    kinds: list[str]
    sentences: list[str]
    paraphrases: list[str]
    others: list[str]

    @property
    def checksum(self) -> str:
        """SHA-256 of all that is in it."""
        rows = zip(self.kinds, self.sentences, self.paraphrases, self.others, strict=True)
        return hashlib.sha256("\n".join("\t".join(row) for row in rows).encode()).hexdigest()


@dataclass(frozen=True)
class Contrast:
    """How a model does on the triples of a kind.

    Attributes:
        kind: The kind; `all` for all of them.
        triples: Their number.
        share: Share in which the paraphrase is closer than the other sentence, in [0, 1]. Equally close is not closer.
        interval: Wilson's 95 % interval of the share.
        margin: Mean of the cosine with the paraphrase less that with the other sentence, in [-2, 2].
    """

    kind: str
    triples: int
    share: float
    interval: tuple[float, float]
    margin: float


@dataclass(frozen=True)
class ContrastRecord:
    """The result of a model, as `--json` has it.

    Attributes:
        model: Its name.
        weights: Checksum of its weights; None for what was not loaded from files.
        data: Name of the set.
        data_checksum: Checksum of what is in it.
        results: The figures, those of all triples last.
    """

    model: str
    weights: str | None
    data: str
    data_checksum: str
    results: list[Contrast]

    def to_json(self) -> Any:  # noqa: ANN401 - JSON values
        """The record as JSON values."""
        return to_json(self)


def read_triples(path: str | Path | None = None) -> Triples:
    """Read triples.

    Args:
        path: A TSV file with the columns kind, sentence, paraphrase and other, whose first line names them; the
            triples that the package carries if left out.

    Raises:
        InputError: The file cannot be read or holds something else; with file and line.
    """
    path = CONTRAST if path is None else Path(path).expanduser()
    header, *lines = read_lines(path)
    if tuple(name.strip().lower() for name in header.split("\t")) != COLUMNS:
        raise InputError(
            f"{path}, line 1: expected the names {', '.join(COLUMNS)} with tabs between, found {header[:80]!r}"
        )
    rows = []
    for number, line in enumerate(lines, 2):
        cells = line.split("\t")
        if len(cells) != len(COLUMNS):
            raise InputError(
                f"{path}, line {number}: expected {', '.join(COLUMNS)} with tabs between, found {len(cells)} columns"
            )
        where = f"{path}, line {number}"
        rows.append(
            [parse_sentence(cell, where, f"the column {name}") for name, cell in zip(COLUMNS, cells, strict=True)]
        )
    if not rows:
        raise InputError(f"{path} has no triples below its first line; give some")
    if any(row[0] == ALL for row in rows):
        raise InputError(f"{path} names a kind {ALL!r}, which the row of all triples is called; choose another name")
    kinds, sentences, paraphrases, others = (list(column) for column in zip(*rows, strict=True))
    return Triples(path.stem, kinds, sentences, paraphrases, others)


def contrast(encoder: Encoder | PairSimilarity, triples: Triples) -> list[Contrast]:
    """Measure an encoder, or a measure of pairs.

    Args:
        encoder: The encoder, compared by cosine, or the measure.
        triples: The triples.

    Returns:
        A result for each kind, in the order of the triples, and one for all.

    Raises:
        InputError: A similarity is not finite.
    """
    left = [*triples.sentences, *triples.sentences]
    right = [*triples.paraphrases, *triples.others]
    values = pair_similarities(encoder, left, right, triples.name).values
    margins = values[: len(triples.kinds)] - values[len(triples.kinds) :]
    kinds = np.array(triples.kinds)
    chosen = [(kind, margins[kinds == kind]) for kind in dict.fromkeys(triples.kinds)]
    return [_result(kind, own) for kind, own in [*chosen, (ALL, margins)]]


def _result(kind: str, margins: np.ndarray) -> Contrast:
    closer = int((margins > 0).sum())
    interval = wilson_interval(closer, len(margins))
    return Contrast(kind, len(margins), closer / len(margins), interval, float(margins.mean()))


def wilson_interval(count: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share (Wilson 1927), which is sensible near 0 and 1 too.

    >>> [round(bound, 3) for bound in wilson_interval(5, 10)]
    [0.237, 0.763]
    """
    share, square = count / total, QUANTILE**2
    centre = share + square / (2 * total)
    half = QUANTILE * sqrt(share * (1 - share) / total + square / (4 * total**2))
    # Rounding may step a little over the ends.
    low, high = ((centre + sign * half) / (1 + square / total) for sign in (-1, 1))
    return max(0.0, low), min(1.0, high)


def compare_contrast(records: Sequence[ContrastRecord], style: Literal["markdown", "text"] = "text") -> str:
    """Write a table: a row for each model and kind."""
    rows = [
        [
            record.model,
            each.kind,
            str(each.triples),
            percent(each.share),
            " to ".join(f"{100 * bound:.0f}" for bound in each.interval),
            f"{each.margin:+.3f}",
        ]
        for record in records
        for each in record.results
    ]
    return write_table(["model", "kind", "triples", "closer %", "95 %", "margin"], rows, style)
