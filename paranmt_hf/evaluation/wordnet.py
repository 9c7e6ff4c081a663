"""Synonyms from WordNet's dictionary files (format: wndb(5WN)), as METEOR needs them.

nltk has a reader too, but it wants files that Debian's dictionary lacks, and reads only folders that are registered
for the whole process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from paranmt_hf.errors import InputError

# Where Debian's package wordnet-base puts the dictionary.
DEBIAN = Path("/usr/share/wordnet")
_PARTS = ("noun", "verb", "adj", "adv")
_FILES = [f"{kind}.{part}" for kind in ("index", "data") for part in _PARTS]
# The rules of detachment of morphy(7WN): an ending, and what takes its place.
_ENDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "noun": (
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "verb": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}


def find_wordnet(folder: Path | str | None = None) -> Path | None:
    """Find a dictionary.

    Args:
        folder: Where it is; by default what the environment variable `WNSEARCHDIR` says, else `DEBIAN`.

    Returns:
        Its folder; None if none was named and none is there.
    """
    named = folder or os.environ.get("WNSEARCHDIR")
    folder = Path(named) if named else DEBIAN
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if not missing:
        return folder
    if named:
        raise InputError(
            f"{folder} holds no dictionary of WordNet: expected {missing[0]} in it; on Debian install wordnet-base"
        )
    return None


@dataclass(frozen=True)
class _Part:
    """One part of speech: where the sets of synonyms of a word begin in the data, and its irregular forms."""

    name: str
    offsets: dict[str, tuple[int, ...]]
    data: bytes
    exceptions: dict[str, list[str]]

    def synonyms(self, word: str) -> set[str]:
        """Members of all sets that the word or its base form is in."""
        return {
            member
            for form in self._base_forms(word)
            for offset in self.offsets[form]
            for member in self._members(offset)
        }

    def _base_forms(self, word: str) -> list[str]:
        if word in self.exceptions:
            return self._known([word, *self.exceptions[word]])
        detached = [word[: -len(old)] + new for old, new in _ENDINGS[self.name] if word.endswith(old)]
        return self._known([word, *detached])

    def _known(self, forms: list[str]) -> list[str]:
        return [form for form in forms if form in self.offsets]

    def _members(self, offset: int) -> list[str]:
        # Offset, file number, type, number of words (hexadecimal), then each word and its sense number.
        fields = self.data[offset : self.data.index(b"\n", offset)].decode("utf8").split(" ")
        words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
        # Adjectives may carry a marker of where they stand, such as `(p)`.
        return [word.partition("(")[0] for word in words]


class WordNet:
    """A dictionary, read into memory.

    Args:
        folder: Where its files are, see `find_wordnet`.
    """

    def __init__(self, folder: Path) -> None:
        self._parts = [_read_part(folder, name) for name in _PARTS]
        self._known: dict[str, frozenset[str]] = {}

    def synonyms(self, word: str) -> frozenset[str]:
        """Synonyms of a word or of its base form, without those of several words; the word itself among them if known.

        Args:
            word: In lower case.
        """
        if word not in self._known:
            members = {member for part in self._parts for member in part.synonyms(word) if "_" not in member}
            self._known[word] = frozenset(members)
        return self._known[word]


@cache
def read_wordnet(folder: Path) -> WordNet:
    """Read a dictionary; the second time it is there already."""
    return WordNet(folder)


def _read_part(folder: Path, name: str) -> _Part:
    try:
        index = (folder / f"index.{name}").read_text(encoding="utf8").splitlines()
        data = (folder / f"data.{name}").read_bytes()
        irregular = folder / f"{name}.exc"
        lines = irregular.read_text(encoding="utf8").splitlines() if irregular.is_file() else []
        # Lines of the licence begin with blanks.
        offsets = dict(_index_entry(line) for line in index if line and not line.startswith(" "))
    except (OSError, ValueError, IndexError) as error:
        raise InputError(
            f"cannot read the {name}s of WordNet in {folder}: {error}; install the dictionary anew"
        ) from None
    return _Part(name, offsets, data, {form: bases for form, *bases in map(str.split, lines) if form})


def _index_entry(line: str) -> tuple[str, tuple[int, ...]]:
    """Word, part of speech, number of sets, ..., then the offset of each set."""
    fields = line.split()
    return fields[0], tuple(int(offset) for offset in fields[-int(fields[2]) :])
