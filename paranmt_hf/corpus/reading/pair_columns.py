"""Which columns of a file are the sides of pairs and their labels: by the user, or by their names."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from paranmt_hf.corpus.reading.labels import LABEL
from paranmt_hf.corpus.reading.language_tables import plain_code
from paranmt_hf.corpus.reading.tables import Table
from paranmt_hf.corpus.release.schema import SIDES
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
# In lower case, without `_` and spaces; advice names the first that a file has.
USUAL_LABELS = (LABEL, "labels", "quality", "isduplicate", "duplicate", "isparaphrase", "goldlabel", "noisylabel")


def pair_columns(table: Table, given: Mapping[str, str], option: str | None = "columns") -> dict[str, str]:
    """Find the columns of pairs: those `given`, `reference` and `translation` else; and `label` if there is one.

    Without names these are the first two columns. `option` is the name of the parameter that names columns, for
    errors; None if there is none.
    """
    names = table.names
    found = dict(given)
    if table.languages and not given:
        raise InputError(
            f"{table.path} is {table.format} with the columns {', '.join(names)}; a bitext is translated by `paranmt "
            f"build --data {table.path}`" + (f". Name the `{option}` if two have one language" if option else ""),
            path=table.path,
            option=option,
        )
    if not names and not given:
        found = dict(zip(SIDES, "12", strict=True))
        if table.width >= 3:
            _check_third(table, option)
    for side in SIDES:
        found.setdefault(side, side)
    if table.languages:
        _check_one_language(table, found)
        return found
    if LABEL in names and LABEL not in found and LABEL not in found.values():
        found[LABEL] = LABEL
    missing = [found[side] for side in SIDES if not _has(table, found[side])]
    if missing:
        raise unknown_columns(table.path, names or [f"numbers from 1 to {table.width}"], missing, option)
    for theirs in found.values():
        table.position(theirs)
    if LABEL not in found:
        warn_of_labels(table.path, usual_labels(names) if names else _unnamed_labels(table, found.values()), option)
    return found


def _has(table: Table, column: str) -> bool:
    return column in table.names or (column.isdecimal() and 1 <= int(column) <= table.width)


def _check_one_language(table: Table, found: Mapping[str, str]) -> None:
    """Reject two languages as the sides of pairs; `en-US`, `en/A` and `en/B` are one."""
    names = [table.names[table.position(found[side])] for side in SIDES]
    if names[0] == names[1]:
        raise InputError(
            f"{table.path}: both sides are the column {names[0]}; name two of one language",
            path=table.path,
            option="columns",
        )
    languages = {plain_code(name).split("/")[0].split("-")[0] for name in names}
    if len(languages) > 1:
        raise InputError(
            f"{table.path} holds two languages in {' and '.join(names)}; translate it with `paranmt build --data "
            f"{table.path}`",
            path=table.path,
            option="columns",
        )


def _check_third(table: Table, option: str | None) -> None:
    """Reject a third column without a name that seems to hold labels."""
    if "3" in _unnamed_labels(table, ["1", "2"]):
        imported = f"in a corpus that `paranmt import {shlex.quote(str(table.path))}` makes, --columns"
        raise InputError(
            f"{table.path} has 0 and 1 alone in its third column; say whether these are labels, "
            f"{f'with `{option}`' if option else imported} "
            "reference=1,translation=2,label=3, or paraphrase scores, para_score=3",
            option=option,
            path=table.path,
        )


def _unnamed_labels(table: Table, read: Collection[str]) -> list[str]:
    """Find the columns without a name that are not `read` and seem to hold labels: 0 and 1 alone in the first rows."""
    others = [str(number) for number in range(1, table.width + 1) if str(number) not in read]
    piece = next(iter(table.pieces(others)), None) if others else None
    if piece is None:
        return []
    return [
        name
        for name, column in zip(others, piece.columns, strict=True)
        if set(column.unique().to_pylist()) == {b"0", b"1"}
    ]


def unknown_columns(
    file: Path | str, names: Sequence[str], missing: Sequence[str], option: str | None = "columns"
) -> InputError:
    """Make the error of a file, or a dataset on the Hub, without the columns of pairs; it says which to name, and how.

    `option` is the name of the parameter that names columns; None if there is none.
    """
    others = names if len(names) == len(SIDES) else ("NAME", "NAME")
    sides = next((usual for usual in USUAL_SIDES if set(usual) <= set(names)), others)
    columns = dict(zip(SIDES, sides, strict=True))
    labels = usual_labels(names)
    columns |= {LABEL: labels[0]} if labels else {}
    named = shlex.quote(",".join(f"{name}={theirs}" for name, theirs in columns.items()))
    if option:
        advice = f"Name those of the pairs: `{option}` {named}"
    elif isinstance(file, Path):
        shell = f"paranmt import {shlex.quote(str(file))} --columns"
        advice = f"Make a corpus of it, which this command reads: `{shell} {named}`"
    else:
        advice = f"Write its pairs into a file with the columns {' and '.join(SIDES)}"
    return InputError(
        f"{file} has no column {', '.join(missing)}; its columns are {', '.join(names)}. {advice}",
        option=option,
        path=file if isinstance(file, Path) else None,
    )


def usual_labels(names: Sequence[str]) -> list[str]:
    """Find the columns whose names are usually those of labels, in any spelling: `Label`, `isDuplicate`."""
    spelt = {name.lower().replace("_", "").replace(" ", ""): name for name in names}
    return [spelt[usual] for usual in USUAL_LABELS if usual in spelt]


def warn_of_labels(file: Path, names: Sequence[str], option: str | None = "columns") -> None:
    """Warn of columns that seem to hold labels and are not read; `option` as for `unknown_columns`."""
    for name in names:
        advice = f"give `{option}` {LABEL}={name}" if option else f"rename it to {LABEL}"
        logger.warning(
            f"warning: every pair of {file} is taken as a paraphrase; if its column {name} says which ones are, "
            f"{advice}"
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
