"""Text from elsewhere in Markdown: it stays text, whatever it holds."""

from __future__ import annotations

import json
from collections.abc import Iterable

MARKUP = "\\|<>`*_[]#&~$"


def escape(text: object) -> str:
    """Keep text from becoming markup, or from breaking out of its line or table cell."""
    plain = " ".join(str(text).split())
    return "".join(f"\\{character}" if character in MARKUP else character for character in plain)


def code(value: object) -> str:
    """Set a value as code in a line; a backtick in it would end that, and a bar would end a table cell."""
    return "`" + " ".join(str(value).replace("`", "'").replace("|", "/").split()) + "`"


def quoted(text: object) -> str:
    """Write text as a string of Python, in double quotes and on one line."""
    return json.dumps(str(text), ensure_ascii=False)


class Code(str):
    """A cell of a table to be set as code."""


def table(rows: Iterable[Iterable[str]]) -> str:
    """Write the rows of a table, each cell escaped or as code."""
    return "\n".join(
        "| " + " | ".join(code(cell) if isinstance(cell, Code) else escape(cell) for cell in row) + " |"
        for row in rows
    )
