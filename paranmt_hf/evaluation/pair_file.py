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
# Without names: score first, last or between, and the STS benchmark's own files (genre, file, year, id, score, ...).
ORDERS = (("1", "2", "3"), ("3", "1", "2"), ("2", "1", "3"), ("5", "6", "7"))


def read_pair_file(path: Path, name: str | None = None) -> StsSet:
    """Read a file; its columns are found by their names, or without names by where the numbers are.

    Args:
        path: TSV, CSV, JSON lines, a JSON array or Parquet, plain or packed, or a folder of `Dataset.save_to_disk`.
        name: Name of the set; that of the file if left out.
    """
    pairs = read_pairs(open_table(path, COLUMNS))
    parts = np.array([pair.part for pair in pairs if pair.score.strip()], np.str_)
    names = np.unique(parts).tolist()
    subsets = {}
    # More are no parts, such as the numbers of rows.
    if 1 < len(names) <= 5:
        subsets = {part: parts == part for part in names if part}
    return collect(name or Path(unpacked_name(path)).stem, pairs, path, subsets=subsets)


def read_pairs(table: Table) -> list[ScoredPair]:
    """Read all rows of a table."""
    if table.languages:
        raise InputError(
            f"{table.path} is {table.format}, whose columns are languages; expected a score and two sentences, "
            "such as TSV with the names score, sentence1 and sentence2",
            path=table.path,
        )
    columns = find_columns(table.names, table.path) if table.names else _by_numbers(table)
    known = by_spelling(table.names)
    part = [known[name] for name in PARTS if name in known and known[name] in table.texts][:1]
    rows = text_rows(table, [*columns, *part], numbers=columns[:1])
    pairs = []
    for place, (score, left, right, *parts) in rows:
        pairs.append(ScoredPair(score, left, right, place, part="".join(parts)))
    return pairs


def by_spelling(names: Sequence[str]) -> dict[str, str]:
    """Names of columns by their spelling in `SCORES` and `SENTENCES`: in lower case, with `_` for blanks."""
    return {name.lower().replace(" ", "_"): name for name in names}


def find_columns(names: Sequence[str], path: Path) -> list[str]:
    """Find the columns of score, first and second sentence by their names."""
    known = by_spelling(names)
    scores = [name for name in SCORES if name in known]
    sides = [pair for pair in SENTENCES if known.keys() >= set(pair)]
    if not scores or not sides:
        missing = "sentences" if scores else "scores"
        raise InputError(
            f"{path} has no column of {missing} among {', '.join(names)}; expected score, sentence1 and sentence2: "
            "rename its columns",
            path=path,
        )
    left, right = sides[0]
    return [known[scores[0]], known[left], known[right]]


def _by_numbers(table: Table) -> list[str]:
    """Find the numbers of the columns of score, first and second sentence: those whose score is one most often."""
    counts: dict[tuple[str, ...], int] = {}
    for order in ORDERS:
        piece = next(table.pieces([order[0]]), None) if table.width >= max(map(int, order)) else None
        cells = piece.columns[0].to_pylist() if piece is not None else []
        counts[order] = sum(cell is not None and is_number(cell.decode("utf8", "replace")) for cell in cells)
    most = max(counts.values())
    found = [order for order, count in counts.items() if count == most]
    if len(found) > 1:
        where = f"numbers alike in the columns {' and '.join(order[0] for order in found)}" if most else "no number"
        raise InputError(
            f"{table.path}: expected a score and two sentences in three columns, found "
            f"{counted(table.width, 'column')}, and {where} where a score would be; write a line with the names "
            "score, sentence1 and sentence2 above",
            path=table.path,
        )
    return list(found[0])
