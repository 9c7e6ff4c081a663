"""Read sentence pairs and their scores from one file in any format of tables (docs/formats.md)."""

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
# Names that columns of scores and sentences have in known data, in lower case; the first one that a file has counts.
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
# Possible numbers of the columns score, first and second sentence in a file without names: the score comes first, last
# or in the middle; or the file is one of the STS benchmark (genre, file, year, id, score, first and second sentence).
ORDERS = (("1", "2", "3"), ("3", "1", "2"), ("2", "1", "3"), ("5", "6", "7"))


def read_pair_file(path: Path, name: str | None = None) -> StsSet:
    """Read a set of sentence pairs with gold scores from one file.

    Columns are found by their names (`SCORES` and `SENTENCES`). In a file without names, the column with the most
    numbers is the score.

    Args:
        path: TSV, CSV, JSON lines, a JSON array or Parquet, plain or packed, or a folder of `Dataset.save_to_disk`.
        name: Name of the set; the name of the file if left out.
    """
    pairs = read_pairs(open_table(path, COLUMNS))
    parts = np.array([pair.part for pair in pairs if pair.score.strip()], np.str_)
    names = np.unique(parts).tolist()
    subsets = {}
    # A column with more values does not name parts; it may hold the numbers of rows.
    if 1 < len(names) <= 5:
        subsets = {part: parts == part for part in names if part}
    return collect(name or Path(unpacked_name(path)).stem, pairs, path, subsets=subsets)


def read_pairs(table: Table) -> list[ScoredPair]:
    """Read all rows of a table as sentence pairs with scores; raises `InputError` if it has no such columns."""
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
    """Return names of columns by their spelling in `SCORES` and `SENTENCES`: in lower case, with `_` for blanks."""
    return {name.lower().replace(" ", "_"): name for name in names}


def find_columns(names: Sequence[str], path: Path) -> list[str]:
    """Return the names of the columns of score, first and second sentence; raises `InputError` if one is missing."""
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
    """Return the numbers of the columns of score, first and second sentence in a table without names.

    Of the possible `ORDERS`, it is the one whose column of scores has the most numbers. Raises `InputError` if two
    orders have equally many.
    """
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
