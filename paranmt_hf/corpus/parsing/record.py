"""What `paranmt parse` wrote down of parsed pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.corpus.parsing.template_counts import TEMPLATES_FILE
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import checksum
from paranmt_hf.util.records import from_json, read_json

RECORD_FILE = "parses.json"


@dataclass(frozen=True, kw_only=True)
class ParseRecord:
    """The content of `parses.json`.

    Attributes:
        version: Version of this package that wrote it.
        settings: What determined the trees: the pairs, and the parser.
        inputs: Names, without their folders, of what the pairs are from, and what the parser calls itself.
        rows: Pairs.
        trees: How many sentences of each side have a tree, and of how many pairs `both` do.
        left_out: Pairs that were not chosen, by reason.
        templates: Different templates of the references.
        files: Each file of pairs, and the templates, with their SHA-256.
    """

    version: str
    settings: dict[str, Any]
    inputs: dict[str, str]
    rows: int
    trees: dict[str, int]
    left_out: dict[str, int]
    templates: int
    files: dict[str, str]


# What others read of inputs and counts.


@dataclass(frozen=True)
class _Inputs:
    parser: str


@dataclass(frozen=True)
class _Trees:
    reference: int


@dataclass(frozen=True)
class _Shown:
    inputs: _Inputs
    trees: _Trees


def read_parsed(folder: Path) -> ParseRecord:
    """Read the record of parsed pairs.

    Raises:
        InputError: The folder holds none, or it is damaged.
    """
    path = folder / RECORD_FILE
    if not path.is_file():
        what = f"it holds no {RECORD_FILE}" if folder.is_dir() else "there is no such folder"
        raise InputError(f"{folder} holds no parsed pairs of this program: {what}; `paranmt parse` makes them")
    values = read_json(path, "the record of parsed pairs")
    record = from_json(ParseRecord, values, path)
    from_json(_Shown, values, path)
    return record


def check_templates(folder: Path, record: ParseRecord) -> None:
    """Refuse counts of templates that are not those that were written.

    Raises:
        InputError: The file is missing or was changed.
    """
    _check(folder / TEMPLATES_FILE, record.files.get(TEMPLATES_FILE))


def parsed_files(folder: Path) -> list[Path]:
    """Find the Parquet files of parsed pairs, in order, as they were written.

    Raises:
        InputError: The folder holds none, or a file is missing or was changed.
    """
    files = {folder / name: digest for name, digest in read_parsed(folder).files.items() if name != TEMPLATES_FILE}
    for path, digest in files.items():
        _check(path, digest)
    return list(files)


def _check(path: Path, digest: str | None) -> None:
    if not path.is_file() or checksum(path) != digest:
        raise InputError(f"{path} is missing or is not as it was written; run `paranmt parse` again")
