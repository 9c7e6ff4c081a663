"""Options of an input: where its columns are, how long a line may be."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paranmt_hf.errors import InputError

if TYPE_CHECKING:
    from paranmt_hf.corpus.bitext.readers import AlignedText


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


def add_table_options(parser: argparse._ActionsContainer, example: str) -> None:
    """Add the options of text in tables: files with columns, datasets, and where their columns are."""
    parser.add_argument("--tsv", type=Path, nargs="+", help="tab-separated files; columns are numbered from 1")
    parser.add_argument("--parquet", type=Path, nargs="+", help="Parquet files")
    parser.add_argument("--dataset", help="dataset on the Hub, or a folder, read as a stream")
    parser.add_argument("--dataset-config", help="its config")
    parser.add_argument("--dataset-split", default="train", help="its split (default: %(default)s)")
    parser.add_argument("--dataset-revision", help="its revision")
    parser.add_argument("--columns", type=columns, help=f"where each column is: {example}")
    add_max_characters(parser)


def read_table(arguments: argparse.Namespace, columns: dict[str, str], names: Sequence[str]) -> AlignedText:
    """Open the table that the options of `add_table_options` name.

    Args:
        arguments: What was given: one of --tsv, --parquet and --dataset.
        columns: Where each column is.
        names: Columns that must be there; `origin` may be.

    Raises:
        InputError: A column has a name that nobody reads, or a place where none can be.
    """
    from paranmt_hf.corpus.bitext.hub_dataset import HubDataset
    from paranmt_hf.corpus.bitext.readers import ParquetFiles, TabFile, TextOptions

    check_names(columns, [*names, "origin"])
    options: TextOptions = {
        "max_characters": arguments.max_characters,
        "optional": columns.keys() & {"origin"},
    }
    if arguments.tsv:
        return TabFile(arguments.tsv, positions(columns), **options)
    if arguments.parquet:
        return ParquetFiles(arguments.parquet, columns, **options)
    return HubDataset(
        arguments.dataset,
        columns,
        config=arguments.dataset_config,
        split=arguments.dataset_split,
        revision=arguments.dataset_revision,
        **options,
    )
