"""Options of an input: where its columns are, how long a line may be."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from paranmt_hf.errors import InputError


def add_max_characters(parser: argparse._ActionsContainer) -> None:
    """Add the option --max-characters."""
    from paranmt_hf.corpus.bitext.readers import MAX_CHARACTERS

    parser.add_argument(
        "--max-characters",
        type=int,
        default=MAX_CHARACTERS,
        help="longer lines are dropped (default: %(default)s)",
    )


def columns(text: str) -> dict[str, str]:
    """Parse `source=3,reference=translation.en`."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name.strip() and column.strip() for name, _, column in pairs):
        raise argparse.ArgumentTypeError(f"expected NAME=COLUMN,NAME=COLUMN like source=1,reference=2, found {text!r}")
    return {name.strip(): column.strip() for name, _, column in pairs}


def check_names(columns: dict[str, str], known: Sequence[str]) -> None:
    """Refuse columns that nobody reads."""
    if unknown := columns.keys() - set(known):
        raise InputError(f"--columns can name {', '.join(known)}, not {', '.join(sorted(unknown))}")


def positions(columns: dict[str, str]) -> dict[str, int]:
    """Turn the columns of a TSV file into positions, from 1."""
    for name, column in columns.items():
        if not column.isdigit() or column == "0":
            raise InputError(f"--columns {name}={column}: columns of a TSV file are numbered 1, 2, ...")
    return {name: int(column) for name, column in columns.items()}
