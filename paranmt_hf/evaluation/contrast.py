"""Evaluate encoders on the contrast set: is a paraphrase closer than a sentence with similar words, but other meaning?

A triple is a sentence, a paraphrase of it, and another sentence that differs from the first in a number, a negation, a
name or a direction. Most paraphrases share fewer words with the sentence than the other sentence does. A model that
counts common words is therefore right in far less than half of the triples. Not in the papers.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.tables import text_rows
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.evaluate import Models, NamedModel, find_models
from paranmt_hf.evaluation.pair_file import by_spelling
from paranmt_hf.evaluation.pair_set import parse_sentence
from paranmt_hf.evaluation.results import Evaluation, Results, Row
from paranmt_hf.evaluation.similarities import pair_similarities
from paranmt_hf.hub.repository import ASSETS

COLUMNS = ("kind", "sentence", "paraphrase", "other")
ALL = "all"  # Name of the row of all triples together


@dataclass(frozen=True)
class Triples:
    """Triples of a sentence, a paraphrase of it, and another sentence with similar words and another meaning.

    Attributes:
        name: Name of the set, that of its file.
        kinds: How the other sentence differs, such as `number` [triple].
        sentences: First sentences [triple].
        paraphrases: Their paraphrases [triple].
        others: The other sentences [triple].
    """

    name: str
    kinds: list[str]
    sentences: list[str]
    paraphrases: list[str]
    others: list[str]

    @property
    def checksum(self) -> str:
        """SHA-256 of kinds and sentences, in hexadecimal."""
        rows = zip(self.kinds, self.sentences, self.paraphrases, self.others, strict=True)
        return hashlib.sha256("\n".join("\t".join(row) for row in rows).encode()).hexdigest()


def read_triples(path: str | Path | None = None) -> Triples:
    """Read triples from a table with the columns kind, sentence, paraphrase and other.

    The table may have any format of docs/formats.md. Without a path, the triples of this package are read.
    """
    table = open_table(ASSETS / "contrast" / "contrast.tsv" if path is None else path, COLUMNS)
    # A name that is spelled so counts before one in other letters.
    known = by_spelling(table.names) | {name: name for name in table.names}
    if not set(COLUMNS) <= set(known):
        found = ", ".join(table.names) or f"{table.width} without names"
        raise InputError(f"{table.path}: expected the columns {', '.join(COLUMNS)}, found {found}", path=table.path)
    columns: dict[str, list[str]] = {name: [] for name in COLUMNS}
    for place, cells in text_rows(table, [known[name] for name in COLUMNS]):
        for name, cell in zip(COLUMNS, cells, strict=True):
            columns[name].append(parse_sentence(cell, place, f"the column {name}"))
    if not columns["kind"]:
        raise InputError(f"{table.path} has no triples", path=table.path)
    if ALL in columns["kind"]:
        raise InputError(f"{table.path}: no kind may be {ALL!r}, as the row of all triples is called", path=table.path)
    return Triples(table.path.stem, *columns.values())


def evaluate_contrast(models: Models, *, data: str | Path | None = None) -> Evaluation:
    """Measure how often a paraphrase is closer than a sentence with similar words and another meaning.

    The main score of a kind of triples is the share whose paraphrase is closer; if both sentences are equally close,
    the paraphrase is not closer. A second score is the mean difference of the two cosines, in [-2, 2].

    Args:
        models: Folders or Hub ids of encoders; `small`, `base`, `de`, ... are those of the package.
        data: File with triples of your own, such as TSV, with the columns kind, sentence, paraphrase and other; 180
            triples that the package carries if left out.
    """
    triples = read_triples(data)
    notes = ["Closer: the paraphrase is closer than the other sentence; cosine difference: the mean of the two."]
    results = []
    for model in find_models(models):
        result = Results(
            kind="contrast",
            model=model.name,
            tables={"Kind": _rows(model, triples)},
            data={triples.name: triples.checksum},
            weights=model.weights,
            notes=notes,
        )
        results.append(result)
    return Evaluation(results)


def _rows(model: NamedModel, triples: Triples) -> list[Row]:
    """Compute the scores of a model on the triples of each kind, and on all triples."""
    left = [*triples.sentences, *triples.sentences]
    right = [*triples.paraphrases, *triples.others]
    values = pair_similarities(model.load(), left, right, triples.name).values
    differences = values[: len(triples.kinds)] - values[len(triples.kinds) :]
    kinds = np.array(triples.kinds)
    parts = {kind: differences[kinds == kind] for kind in dict.fromkeys(triples.kinds)} | {ALL: differences}
    rows = []
    for kind, part in parts.items():
        closer = int((part > 0).sum())
        figures = {"closer": closer / len(part), "cosine_difference": float(part.mean())}
        rows.append(Row(name=kind, values=figures, items=len(part), interval=wilson_interval(closer, len(part))))
    return rows


def wilson_interval(count: int, total: int) -> tuple[float, float]:
    """Compute Wilson's 95 % interval of the proportion `count / total` (Wilson 1927), which is valid near 0 and 1 too.

    >>> [round(bound, 3) for bound in wilson_interval(5, 10)]
    [0.237, 0.763]
    """
    from scipy.stats import binomtest

    bounds = binomtest(count, total).proportion_ci(method="wilson")
    return float(bounds.low), float(bounds.high)
