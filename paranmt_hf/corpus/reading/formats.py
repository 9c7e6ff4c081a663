"""All formats of files with rows, and the way to find the format of a file."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path

from paranmt_hf.corpus.reading.arrow_tables import ParquetTable, SavedDataset
from paranmt_hf.corpus.reading.comma_separated import CommaSeparated
from paranmt_hf.corpus.reading.json_tables import JsonArray, JsonLines
from paranmt_hf.corpus.reading.lines import first_bytes
from paranmt_hf.corpus.reading.plain_text import PlainText
from paranmt_hf.corpus.reading.po import PoTable
from paranmt_hf.corpus.reading.tab_separated import TabSeparated
from paranmt_hf.corpus.reading.tables import Table
from paranmt_hf.corpus.reading.tmx import TmxTable
from paranmt_hf.corpus.reading.unreadable import refuse_unreadable
from paranmt_hf.corpus.reading.wmt import WmtSgmlTable, WmtXmlTable
from paranmt_hf.corpus.reading.xliff import XliffTable
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import existing
from paranmt_hf.util.packed import unpacked_name

logger = logging.getLogger(__name__)
# The format of a file is the first one that matches. Plain text matches any file, so it is last.
FORMATS: tuple[type[Table], ...] = (
    TmxTable,
    XliffTable,
    PoTable,
    WmtXmlTable,
    WmtSgmlTable,
    ParquetTable,
    JsonArray,
    JsonLines,
    TabSeparated,
    CommaSeparated,
    PlainText,
)


def find_format(path: Path) -> type[Table]:
    r"""Find the format of a file by its name and its first bytes.

    Raises:
        InputError: If the file does not exist, is in a format that no command reads, or ends lines with `\r` alone.
    """
    existing([path])
    name, head = unpacked_name(path).lower(), first_bytes(path)
    kind = next((kind for kind in FORMATS[:-1] if kind.matches(name, head)), PlainText)
    if kind is PlainText:
        refuse_unreadable(path, name, head)
    if kind in (TabSeparated, CommaSeparated, PlainText) and head.count(b"\r") > 1 and b"\n" not in head:
        raise InputError(
            f"{path} ends its lines with carriage returns alone, as Excel does in CSV for Macintosh; expected line "
            rf"feeds: convert it, such as with `tr '\r' '\n' < {path.name}`",
            path=path,
        )
    return kind


def open_table(path: str | Path, named: Collection[str] = ()) -> Table:
    """Open a file with rows, or a folder that `Dataset.save_to_disk` wrote.

    Args:
        path: The file or folder.
        named: Names or numbers of columns that the user gives; if line 1 of a TSV or CSV file has them, it has names.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        return SavedDataset.open(path)
    return find_format(path).open(path, named)
