"""Sentences to paraphrase, with references: from TSV files and from pairs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.pair_set import parse_sentence, read_lines


@dataclass(frozen=True)
class Items:
    """Sentences with references.

    Attributes:
        name: Name of the data.
        sources: The sentences [item], all different.
        references: What people wrote for each [item][reference]; none where nothing is known.
    """

    name: str
    sources: list[str]
    references: list[list[str]]

    @property
    def checksum(self) -> str:
        """SHA-256 of all that is in it."""
        rows = ("\t".join(row) for row in zip(self.sources, map("\t".join, self.references), strict=True))
        return hashlib.sha256("\n".join(rows).encode()).hexdigest()

    @property
    def has_references(self) -> bool:
        """Whether there is a reference for each sentence."""
        return bool(self.references) and all(self.references)


def group(name: str, pairs: Iterable[tuple[str, str]]) -> Items:
    """Make items of pairs: a source is one item, whatever the number of its references.

    Args:
        name: Name of the data.
        pairs: Sources and references; white space is normalised.
    """
    found: dict[str, dict[str, None]] = {}
    for source, reference in pairs:
        found.setdefault(" ".join(source.split()), {})[" ".join(reference.split())] = None
    return Items(name, list(found), [list(references) for references in found.values()])


def read_two_columns(path: Path) -> list[tuple[str, str]]:
    """Read a TSV file of two columns without a head.

    Raises:
        InputError: It cannot be read or holds something else; with file and line.
    """
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        cells, where = line.split("\t"), f"{path}, line {number}"
        if len(cells) != 2:
            raise InputError(f"{where}: expected two sentences with a tab between, found {len(cells)} columns")
        first, second = (
            parse_sentence(cell, where, f"the {name} column")
            for name, cell in zip(("first", "second"), cells, strict=True)
        )
        rows.append((first, second))
    return rows
