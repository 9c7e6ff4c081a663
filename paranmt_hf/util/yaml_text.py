"""YAML from elsewhere: plain values alone, and nothing that grows when it is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

HEADER = re.compile(r"\s*---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


class _Plain(yaml.SafeLoader):
    """Refuses aliases, with which a few lines can stand for more values than any memory holds."""

    def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.MarkedYAMLError(
                problem=f"found the alias *{event.anchor}; write the value itself there", problem_mark=event.start_mark
            )
        return super().compose_node(parent, index)


def parse_yaml(text: str) -> Any:  # noqa: ANN401 - whatever is there
    """Parse YAML into plain values.

    Raises:
        yaml.YAMLError: It is no YAML, is nested too deeply, or holds an alias.
    """
    try:
        # A loader of plain values, as `safe_load` takes it.
        return yaml.load(text, Loader=_Plain)  # noqa: S506
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None


def card_header(path: Path) -> dict[str, Any]:
    """Read the header of a card.

    Returns:
        Its entries; none where there is no card, no header, or one that cannot be read.
    """
    try:
        found = HEADER.match(path.read_text(encoding="utf8")) if path.is_file() else None
        values = parse_yaml(found[1]) if found else None
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    return values if isinstance(values, dict) else {}
