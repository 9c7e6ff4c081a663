"""Pairs of sentences and their scores in one file of any format of tables (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paranmt_hf.corpus.reading.formats import open_table
from paranmt_hf.corpus.reading.heading import is_number
from paranmt_hf.corpus.reading.tables import Table, text_rows
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.pair_set import ScoredPair, StsSet, collect
from paranmt_hf.util.packed import unpacked_name
from paranmt_hf.util.wording import counted

COLUMNS = ("score", "sentence1", "sentence2")
# What the columns are called elsewhere, in lower case; the first that a file has counts.
SCORES = ("score", "similarity_score", "relatedness_score", "similarity", "gold_score", "label")
SENTENCES = (
    ("sentence1", "sentence2"),
    ("sentence_1", "sentence_2"),
    ("sentence_a", "sentence_b"),
    ("text1", "text2"),
    ("reference", "translation"),
)
# Columns that say which part of a set a row is in; SICK.txt has TRAIN, TRIAL and TEST.
PARTS = ("semeval_set", "split")
MAX_PARTS = 5
# Without names: score first, last or between, and the STS benchmark's own files (genre, file, year, id, score, ...).
ORDERS = (("1", "2", "3"), ("3", "1", "2"), ("2", "1", "3"), ("5", "6", "7"))


def read_pair_file(path: Path, name: str | None = None) -> StsSet:
    """Read a file; its columns are found by their names, or without names by where the numbers are.

    Args:
        path: TSV, CSV, JSON lines, a JSON array or Parquet, plain or packed, or a folder of `Dataset.save_to_disk`.
        name: Name of the set; that of the file if left out.
    """
    table = open_table(path, COLUMNS)
    pairs = read_pairs(table)
    return collect(name or Path(unpacked_name(path)).stem, pairs, path, subsets=_parts(table))


def read_pairs(table: Table) -> list[ScoredPair]:
    """Read all rows of a table."""
    if table.languages:
        raise InputError(
            f"{table.path} is {table.format}, whose columns are languages; expected a score and two sentences, "
            "such as TSV with the names score, sentence1 and sentence2",
            path=table.path,
        )
    columns = _by_names(table) if table.names else _by_numbers(table)
    rows = text_rows(table, columns, numbers=columns[:1])
    return [ScoredPair(score, left, right, place, place) for place, (score, left, right) in rows]


def _parts(table: Table) -> dict[str, np.ndarray]:
    """Find the parts of a set by their names, masks of the pairs with a score [pair]; empty for a single part."""
    known = by_spelling(table.names)
    columns = [known[name] for name in PARTS if name in known]
    if not columns:
        return {}
    score = _by_names(table)[0]
    rows = text_rows(table, [score, columns[0]], numbers=[score])
    parts = np.array([part for _, (number, part) in rows if number.strip()])
    names = np.unique(parts).tolist()
    if not 1 < len(names) <= MAX_PARTS:
        return {}
    return {name: parts == name for name in names if name}


def by_spelling(names: Sequence[str]) -> dict[str, str]:
    """Names of columns by their spelling in `SCORES` and `SENTENCES`: in lower case, with `_` for blanks."""
    return {name.lower().replace(" ", "_"): name for name in names}


def _by_names(table: Table) -> list[str]:
    """Names of the columns of score, first and second sentence."""
    known = by_spelling(table.names)
    scores = [name for name in SCORES if name in known]
    sides = [pair for pair in SENTENCES if known.keys() >= set(pair)]
    if not scores or not sides:
        missing = "sentences" if scores else "scores"
        raise InputError(
            f"{table.path} has no column of {missing} among {', '.join(table.names)}; expected score, sentence1 and "
            "sentence2: rename its columns",
            path=table.path,
        )
    left, right = sides[0]
    return [known[scores[0]], known[left], known[right]]


def _by_numbers(table: Table) -> list[str]:
    """Numbers of the columns of score, first and second sentence: those whose score is one most often."""
    fitting = [order for order in ORDERS if table.width >= max(map(int, order))]
    counts = [_count_numbers(table, order[0]) for order in fitting]
    if not fitting or not max(counts):
        raise InputError(
            f"{table.path}: expected a score and two sentences in three columns, or columns "
            f"named score, sentence1 and sentence2; found {counted(table.width, 'column')}, and no number where a "
            "score would be",
            path=table.path,
        )
    found = [order for order, count in zip(fitting, counts, strict=True) if count == max(counts)]
    if len(found) > 1:
        raise InputError(
            f"{table.path}: the score may be in column {' or '.join(order[0] for order in found)}, which hold numbers "
            "alike; write a line with the names score, sentence1 and sentence2 above",
            path=table.path,
        )
    return list(found[0])


def _count_numbers(table: Table, column: str) -> int:
    """Count the numbers in the first rows of a column."""
    piece = next(table.pieces([column]), None)
    cells = [] if piece is None else piece.columns[0].to_pylist()
    return sum(cell is not None and is_number(cell.decode("utf8", "replace")) for cell in cells)
