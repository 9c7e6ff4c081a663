"""Which columns of a file are the sides of pairs and their labels: by the user, or by their names."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from paranmt_hf.corpus.reading.labels import LABEL
from paranmt_hf.corpus.reading.tables import Table
from paranmt_hf.corpus.schema import SIDES
from paranmt_hf.errors import InputError

logger = logging.getLogger(__name__)
# Names that well-known files of pairs use, for the advice on which columns to name.
USUAL_SIDES = (
    ("sentence1", "sentence2"),
    ("sentence_A", "sentence_B"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("#1 String", "#2 String"),
    ("anchor", "positive"),
    ("source", "target"),
)
USUAL_LABELS = ("Quality", "is_duplicate", "is_paraphrase", "gold_label")


def pair_columns(table: Table, given: Mapping[str, str]) -> dict[str, str]:
    """Find the columns of pairs: those `given`, `reference` and `translation` else; and `label` if there is one.

    Without names these are the first two columns.
    """
    names = table.names
    found = dict(given)
    if table.languages and not given:
        raise InputError(
            f"{table.path} is {table.format} with the columns {', '.join(names)}; a bitext is translated by `paranmt "
            "build`, which reads it as `data`. Name the `columns` if two have one language",
            path=table.path,
            option="columns",
        )
    if not names and not given:
        found = dict(zip(SIDES, "12", strict=True))
        if table.width >= 3:
            _check_third(table)
    for side in SIDES:
        found.setdefault(side, side)
    if LABEL in names and LABEL not in found and LABEL not in found.values():
        found[LABEL] = LABEL
    missing = [found[side] for side in SIDES if not _has(table, found[side])]
    if missing:
        raise unknown_columns(table.path, names or [f"numbers from 1 to {table.width}"], missing)
    for theirs in found.values():
        table.position(theirs)
    if LABEL not in found:
        warn_of_labels(table.path, names)
    return found


def _has(table: Table, column: str) -> bool:
    return column in table.names or (column.isdecimal() and 1 <= int(column) <= table.width)


def _check_third(table: Table) -> None:
    """Reject a third column without a name that seems to hold labels."""
    piece = next(iter(table.pieces(["3"])), None)
    values = set() if piece is None else set(piece.columns[0].unique().to_pylist())
    if values == {b"0", b"1"}:
        raise InputError(
            f"{table.path} has 0 and 1 alone in its third column; say whether these are labels, such as `columns` "
            "reference=1,translation=2,label=3, or paraphrase scores, para_score=3",
            option="columns",
            path=table.path,
        )


def unknown_columns(file: Path | str, names: Sequence[str], missing: Sequence[str]) -> InputError:
    """Make the error of a file without the columns of pairs; it names those of the file, and which to give."""
    others = names if len(names) == len(SIDES) else ("NAME", "NAME")
    sides = next((usual for usual in USUAL_SIDES if set(usual) <= set(names)), others)
    columns = dict(zip(SIDES, sides, strict=True))
    labels = [name for name in USUAL_LABELS if name in names]
    columns |= {LABEL: labels[0]} if labels else {}
    advice = ",".join(f"{name}={theirs}" for name, theirs in columns.items())
    return InputError(
        f"{file} has no column {', '.join(missing)}; its columns are {', '.join(names)}. Name those of the pairs: "
        f"`columns` {shlex.quote(advice)}",
        option="columns",
        path=file if isinstance(file, Path) else None,
    )


def warn_of_labels(file: Path, names: Sequence[str]) -> None:
    """Warn of a column that is usually one of labels, and is not read."""
    for name in names:
        if name in USUAL_LABELS:
            logger.warning(
                f"warning: every pair of {file} is taken as a paraphrase; if its column {name} says which ones are, "
                f"give `columns` {LABEL}={name}"
            )


def check_given(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Check the names of columns that a person gave."""
    known = (*SIDES, LABEL, "para_score")
    if unknown := [name for name in columns or {} if name not in known]:
        raise InputError(f"`columns` can name {', '.join(known)}, not {', '.join(unknown)}", option="columns")
    named = list((columns or {}).values())
    if twice := [name for name in named if named.count(name) > 1]:
        raise InputError(f"`columns` names {twice[0]!r} twice; name each column once", option="columns")
    return dict(columns or {})
