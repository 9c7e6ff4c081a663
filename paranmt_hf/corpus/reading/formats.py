"""All formats of tables, and the one that a file has."""

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
# The first one that matches is the format of a file; any file is plain text.
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
    """Find the format of a file by its name and its first bytes; what no command reads is rejected."""
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
    """Open a file or a folder of `Dataset.save_to_disk`.

    Args:
        path: The file or folder.
        named: Columns that the user names. A line of TSV or CSV that has them is the line of names.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        return SavedDataset.open(path)
    return find_format(path).open(path, named)
