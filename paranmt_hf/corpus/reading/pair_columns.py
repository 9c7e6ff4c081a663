"""Finds the columns of a file that are the sides, the label and the scores of pairs: as the user says, or by name."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from paranmt_hf.corpus.reading.labels import LABEL
from paranmt_hf.corpus.reading.language_tables import plain_code
from paranmt_hf.corpus.reading.tables import Table
from paranmt_hf.corpus.release.schema import ADDED, SIDES, describe_missing
from paranmt_hf.errors import InputError

logger = logging.getLogger(__name__)
# Names of the two sides in well-known files of pairs; errors propose them to the user.
USUAL_SIDES = (
    ("sentence1", "sentence2"),
    ("sentence_A", "sentence_B"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("#1 String", "#2 String"),
    ("anchor", "positive"),
    ("source", "target"),
)
# Names of columns of labels in lower case, without `_` and spaces; errors propose the first that a file has.
USUAL_LABELS = (LABEL, "labels", "quality", "isduplicate", "duplicate", "isparaphrase", "goldlabel", "noisylabel")


@dataclass(frozen=True)
class WantedColumns:
    """Which columns of files of pairs are read.

    Attributes:
        given: Name or number that the user gives for the column of `reference`, `translation`, `label` or
            `para_score`; used for files that are not corpora.
        numbers: Columns of numbers whose ranges select pairs.
        everything: Whether all other columns of corpora and Parquet files are read too.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    numbers: Sequence[str] = ()
    everything: bool = False

    def among(self, names: Collection[str]) -> dict[str, str]:
        """Return the columns to read from a file with the columns `names`: our name of each, and its name in the file.

        The file need not have all of them.
        """
        columns = {name: name for name in (*SIDES, *self.numbers)}
        columns |= {name: theirs for name, theirs in self.given.items() if name in (*SIDES, LABEL, *self.numbers)}
        if LABEL in names and LABEL not in columns and LABEL not in columns.values():
            columns[LABEL] = LABEL
        return columns


def pair_columns(table: Table, wanted: WantedColumns) -> dict[str, str]:
    """Return the columns of pairs to read from a file: our name of each, and its name or number in the file.

    If neither the file nor the user gives names, the first two columns are the sides. A warning is logged if another
    column seems to hold labels that are not read.

    Args:
        table: The file.
        wanted: Which columns are wanted.

    Raises:
        InputError: If a column is missing, or the user must say which columns are the sides or the labels.
    """
    if table.languages and not wanted.given:
        raise InputError(
            f"{table.path} is {table.format} with the columns {', '.join(table.names)}; a bitext is translated by "
            f"`paranmt build --data {table.path}`. Name the `columns` if two have one language",
            path=table.path,
            option="columns",
        )
    if not table.names and not wanted.given:
        if table.width >= 3 and "3" in unnamed_labels(table, ["1", "2"]):
            raise InputError(
                f"{table.path} has 0 and 1 alone in its third column; say whether these are labels, `columns` "
                f"reference=1,translation=2,label=3, or paraphrase scores, para_score=3. {_advice(table.path)}",
                option="columns",
                path=table.path,
            )
        wanted = replace(wanted, given=dict(zip(SIDES, "12", strict=True)))
    columns = wanted.among(table.names)
    if table.languages:
        # `en-US`, `en/A` and `en/B` are all English.
        sides = [table.names[table.position(columns[side])] for side in SIDES]
        languages = {plain_code(name).split("/")[0].split("-")[0] for name in sides}
        if sides[0] == sides[1] or len(languages) > 1:
            raise InputError(
                f"{table.path}: expected two columns of one language, found {' and '.join(sides)}; two languages are "
                f"translated with `paranmt build --data {table.path}`",
                path=table.path,
                option="columns",
            )
    missing = [theirs for theirs in columns.values() if not table.has(theirs)]
    if set(missing) & {*SIDES, *wanted.given.values()}:
        raise unknown_columns(table.path, table.names or [f"numbers from 1 to {table.width}"], missing)
    if missing:
        raise missing_columns(table.path, missing)
    for theirs in columns.values():
        table.position(theirs)
    if LABEL not in columns and not table.languages:
        unread = usual_labels(table.names) if table.names else unnamed_labels(table, columns.values())
        for name in unread:
            logger.warning(
                f"warning: every pair of {table.path} is taken as a paraphrase; if its column {name} says which ones "
                f"are, give `columns` {LABEL}={name}"
            )
    return columns


def unnamed_labels(table: Table, read: Collection[str]) -> list[str]:
    """Find the columns of a file without names that seem to hold labels, because their first rows have only 0 and 1.

    Args:
        table: The file.
        read: Numbers of the columns that are read otherwise, and are not looked at.

    Returns:
        Numbers of the columns, from 1.
    """
    others = [str(number) for number in range(1, table.width + 1) if str(number) not in read]
    piece = next(iter(table.pieces(others)), None) if others else None
    columns = [] if piece is None else zip(others, piece.columns, strict=True)
    return [name for name, column in columns if set(column.unique().to_pylist()) == {b"0", b"1"}]


def unknown_columns(source: Path | str, names: Sequence[str], missing: Sequence[str]) -> InputError:
    """Make the error about a file without the columns of pairs; it proposes what to give as `columns`.

    Args:
        source: The file, or the id of a dataset.
        names: Names of the columns that it has.
        missing: Names of the columns that it lacks.
    """
    others = names if len(names) == len(SIDES) else ("NAME", "NAME")
    sides = next((usual for usual in USUAL_SIDES if set(usual) <= set(names)), others)
    columns = dict(zip(SIDES, sides, strict=True))
    if labels := usual_labels(names):
        columns[LABEL] = labels[0]
    named = shlex.quote(",".join(f"{name}={theirs}" for name, theirs in columns.items()))
    path = source if isinstance(source, Path) else None
    return InputError(
        f"{source} has no column {', '.join(missing)}; its columns are {', '.join(names)}. Name those of the pairs: "
        f"`columns` {named}. {_advice(source)}",
        option="columns",
        path=path,
    )


def _advice(source: Path | str) -> str:
    """Return the advice for commands without an option for the columns of pairs."""
    made = f"`paranmt import {shlex.quote(str(source))}` makes" if isinstance(source, Path) else "you make"
    return f"Commands without such an option read the corpus that {made} with it"


def missing_columns(path: Path, missing: Sequence[str]) -> InputError:
    """Make the error about a file that lacks columns an option needs, such as scores."""
    text = describe_missing(path, missing)
    if not set(missing) & set(ADDED):
        text += "; score it first (`paranmt import`), or leave out the option, if you gave one"
    return InputError(text, path=path)


def usual_labels(names: Sequence[str]) -> list[str]:
    """Return the columns whose names are usual for labels, in any spelling, such as `Label` or `isDuplicate`."""
    spelt = {name.lower().replace("_", "").replace(" ", ""): name for name in names}
    return [spelt[usual] for usual in USUAL_LABELS if usual in spelt]


def check_given(columns: Mapping[str, str] | None) -> dict[str, str]:
    """Return the columns that the user gives, after checking that they are known and each column is named once."""
    given = dict(columns or {})
    check_names(given, [*SIDES, LABEL, "para_score"])
    if len(set(given.values())) < len(given):
        named = ", ".join(given.values())
        raise InputError(f"`columns` names a column twice: {named}; name each once", option="columns")
    return given


def check_names(columns: Collection[str], known: Collection[str]) -> None:
    """Reject columns that a command does not read; `known` are those that it reads."""
    if unknown := sorted(set(columns) - set(known)):
        raise InputError(f"`columns` can name {', '.join(known)}, not {', '.join(unknown)}", option="columns")
