"""The templates that a network was trained on, with their counts: `templates.json` beside its weights."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from paranmt_hf.errors import InputError
from paranmt_hf.util.files import write_bytes
from paranmt_hf.util.records import from_json, read_json

TEMPLATES_FILE = "templates.json"
# The most frequent ones that are kept; flat trees of long sentences would be without end.
MOST_TEMPLATES = 100_000
# Templates that are named in place of one that was never seen, and among how many of the most frequent ones.
NAMED, LOOKED_AT = 3, 5000
# How alike the labels of two templates must be, from 0 to 1.
ALIKE = 0.5


class Templates:
    """Templates with their counts.

    Args:
        counts: Sentences that have each template.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        self.counts: dict[str, int] = dict(order[:MOST_TEMPLATES])

    def __len__(self) -> int:
        return len(self.counts)

    def most_frequent(self, count: int) -> list[str]:
        """The `count` most frequent templates; fewer where there are fewer."""
        return list(self.counts)[:count]

    def chosen(self, wanted: Sequence[str] | int, read: Callable[[str], str]) -> list[str]:
        """Find templates.

        Args:
            wanted: Templates as people write them, or how many of the most frequent ones.
            read: Brings one that a person wrote into the form that is counted.

        Raises:
            InputError: One is no template, or was never seen; the error names near ones. None are asked for.
        """
        if isinstance(wanted, int):
            if wanted < 1:
                raise InputError(f"templates must be at least 1, was {wanted}")
            return self.most_frequent(wanted)
        found = list(dict.fromkeys(read(template) for template in wanted))
        if not found:
            raise InputError("expected templates, got none; name one such as (S(NP)(VP)), or say how many")
        for template in found:
            if template not in self.counts:
                raise InputError(
                    f"the template {template} is in none of the sentences that the model was trained on; near ones "
                    f"are {', '.join(self.near(template))}"
                )
        return found

    def near(self, template: str) -> list[str]:
        """Seen templates with similar labels in a similar order, the most similar first; else the most frequent."""
        labels = _labels(template)
        scored = [
            (difflib.SequenceMatcher(None, labels, _labels(other), autojunk=False).ratio(), -rank, other)
            for rank, other in enumerate(self.most_frequent(LOOKED_AT))
        ]
        alike = sorted((each for each in scored if each[0] >= ALIKE), reverse=True)[:NAMED]
        return [other for *_, other in alike] or self.most_frequent(NAMED)

    def write(self, folder: Path) -> None:
        """Write them into a folder."""
        write_bytes(folder / TEMPLATES_FILE, f"{json.dumps(self.counts, indent=0)}\n".encode())


def read_templates(folder: Path) -> Templates:
    """Read the templates of a network.

    Raises:
        InputError: There are none, or the file is damaged.
    """
    path = folder / TEMPLATES_FILE
    values = read_json(path, "the templates of a model made by `paranmt train-controlled`")
    counts: dict[str, int] = from_json(dict[str, int], values, path)
    if not counts:
        raise InputError(f"{path} is damaged: it has no templates; put a whole copy in its place")
    return Templates(counts)


def _labels(template: str) -> list[str]:
    return re.findall(r"[^()]+", template)
