"""The contrast set: is a paraphrase closer than a sentence with similar words and another meaning?

Each triple is a sentence, a paraphrase and another sentence, which differs from the first in a number, a negation, a
name or a direction. Most paraphrases share fewer words with the sentence than the other one does, so a model that
counts common words is right in far less than half of them. Not in the papers.
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
ALL = "all"


@dataclass(frozen=True)
class Triples:
    """Sentences, a paraphrase of each, and another sentence that differs in a kind such as `number` [triple]."""

    name: str
    kinds: list[str]
    sentences: list[str]
    paraphrases: list[str]
    others: list[str]

    @property
    def checksum(self) -> str:
        """SHA-256 of its content."""
        rows = zip(self.kinds, self.sentences, self.paraphrases, self.others, strict=True)
        return hashlib.sha256("\n".join("\t".join(row) for row in rows).encode()).hexdigest()


def read_triples(path: str | Path | None = None) -> Triples:
    """Read triples from a file with the columns kind, sentence, paraphrase and other; by default those of the package.

    The file may have any format of tables (docs/formats.md).
    """
    table = open_table(ASSETS / "contrast" / "contrast.tsv" if path is None else path, COLUMNS)
    known = by_spelling(table.names)
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

    A paraphrase that is as close as the other sentence is not closer. Next to this share stands the mean difference of
    the two cosines, in [-2, 2].

    Args:
        models: Folders or Hub ids of encoders; `small` and `base` are those of the package.
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
    """The share of triples of each kind, and of all, whose paraphrase is closer."""
    left = [*triples.sentences, *triples.sentences]
    right = [*triples.paraphrases, *triples.others]
    values = pair_similarities(model.load(), left, right, triples.name).values
    differences = values[: len(triples.kinds)] - values[len(triples.kinds) :]
    kinds = np.array(triples.kinds)
    parts = {kind: differences[kinds == kind] for kind in dict.fromkeys(triples.kinds)} | {ALL: differences}
    rows = []
    for kind, own in parts.items():
        closer = int((own > 0).sum())
        figures = {"closer": closer / len(own), "cosine_difference": float(own.mean())}
        rows.append(Row(name=kind, values=figures, items=len(own), interval=wilson_interval(closer, len(own))))
    return rows


def wilson_interval(count: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a proportion (Wilson 1927), which is valid near 0 and 1 too.

    >>> [round(bound, 3) for bound in wilson_interval(5, 10)]
    [0.237, 0.763]
    """
    from scipy.stats import binomtest

    bounds = binomtest(count, total).proportion_ci(method="wilson")
    return float(bounds.low), float(bounds.high)
