"""Escaping of text in Markdown, and tables of scores in Markdown or for a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence


def escape(text: object) -> str:
    """Escape text for Markdown, on one line, so that it is not markup and does not end its table cell."""
    plain = " ".join(str(text).split())
    return "".join(f"\\{character}" if character in "\\|<>`*_[]#&~$" else character for character in plain)


def code(value: object) -> str:
    """Format a value as inline code of Markdown; backticks become `'` and bars `/`, because they would end it."""
    return "`" + " ".join(str(value).replace("`", "'").replace("|", "/").split()) + "`"


def quoted(text: object) -> str:
    """Format text as a string literal of Python or JSON, in double quotes and on one line."""
    return json.dumps(str(text), ensure_ascii=False)


def percent(value: float | None) -> str:
    """Format a score times 100, as papers show it: `83.1` for 0.831; empty for None."""
    return "" if value is None else f"{100 * value:.1f}"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,)) -> str:
    """Format a Markdown table; columns with their indices in `left` are left-aligned, others right-aligned."""
    # Bars are escaped unless the text is escaped already.
    lines = [[re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in line] for line in (header, *rows)]
    widths = [max(3, *(len(line[column]) for line in lines)) for column in range(len(header))]
    rule = [f"{'-' * (width - 1)}{'-' if column in left else ':'}" for column, width in enumerate(widths)]
    lines.insert(1, rule)
    return "\n".join(f"| {' | '.join(_aligned(line, widths, left))} |" for line in lines)


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,)) -> str:
    """Format a table for a terminal; columns with their indices in `left` are left-aligned, others right-aligned."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join("  ".join(_aligned(line, widths, left)).rstrip() for line in lines)


def _aligned(line: Sequence[str], widths: Sequence[int], left: Collection[int]) -> list[str]:
    """Pad the cells of a line with blanks to the given widths; cells with indices in `left` are left-aligned."""
    cells = enumerate(zip(line, widths, strict=True))
    return [cell.ljust(width) if column in left else cell.rjust(width) for column, (cell, width) in cells]
