"""Documents split into sentences by the rules of sentencex: what `split` does in every command that has it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from paranmt_hf.errors import refuse
from paranmt_hf.text.languages import LANGUAGES, check_language
from paranmt_hf.util.optional import check_installed, versions

PACKAGE = "sentencex"
RULES = 1  # Raise this number if `SentenceSplitter.split` changes what sentencex finds
# In these languages nothing marks the end of a sentence that sentencex knows, so a document would be one sentence.
WITHOUT_ENDS = ("bo", "dz", "km", "lo", "th")
_PARAGRAPH_END = re.compile(r"(\n\r*\n)")
_OTHER_BLANKS = re.compile(r"[^\S\t\n\r ]")


@dataclass(frozen=True)
class SentenceSplitter:
    """Splits documents into sentences.

    A language without rules of its own is split by those of a related one, or of English.

    Attributes:
        language: Language of the documents (ISO 639-1).

    Raises:
        InputError: If sentencex is not installed, or cannot split the language.
    """

    language: str

    def __post_init__(self) -> None:
        check_language(self.language)
        refuse(
            self.language in WITHOUT_ENDS,
            f"`split` cannot find the ends of sentences in {LANGUAGES.get(self.language)}; split the text with "
            "another program, and write one sentence on a line",
            option="split",
        )
        check_installed(PACKAGE, "split")

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the sentences of a document, as JSON values."""
        return {**versions([PACKAGE]), "rules": RULES, "language": self.language}

    def split(self, document: str) -> list[str]:
        """Split a document into parts, each a sentence with the white space around it.

        The parts together are the document, and none is blank, unless the document is.
        """
        from sentencex import segment

        # sentencex 1.0.32 is given plain blanks alone.
        plain = _OTHER_BLANKS.sub(" ", document)
        # A blank part belongs to the sentence before, or at the beginning to the first one.
        bounds, end, is_blank = [0], 0, True
        # sentencex 1.0.32 drops the line ends between the paragraphs of documents of more than 10,000 bytes.
        for paragraph in _PARAGRAPH_END.split(plain):
            for part in segment(self.language, paragraph):
                if not (is_blank or part.isspace() or _continues(plain[max(end - 4, 0) : end], part)):
                    bounds.append(end)
                is_blank = is_blank and part.isspace()
                end += len(part)
        return [document[start:stop] for start, stop in pairwise([*bounds, len(document)])]

    def split_bytes(self, document: bytes | None) -> list[bytes | None]:
        """Split a document as `split` does; what is missing or not UTF-8 stays whole."""
        try:
            return [document] if document is None else [part.encode() for part in self.split(document.decode())]
        except UnicodeDecodeError:
            return [document]

    def remaining(self, document: str, kept: np.ndarray) -> str:
        """Return a document without some of its sentences; the white space at both ends stays.

        Args:
            document: The document.
            kept: Booleans [sentence] that say which sentences stay.
        """
        parts = [part for part, is_kept in zip(self.split(document), kept, strict=False) if is_kept]
        text, end = document.lstrip(), document.rstrip()
        start = document[: len(document) - len(text)]
        return start + "".join(parts).strip() + document[len(end) :]


class SplitRows(NamedTuple):
    """Rows of documents, split into rows of sentences.

    Attributes:
        columns: The columns [sentence].
        documents: Index of the row that each sentence is from [sentence], int64.
        unequal: Booleans [sentence] that mark rows that are not split, because their columns have different numbers
            of sentences.
    """

    columns: list[pa.Array]
    documents: np.ndarray
    unequal: np.ndarray


def split_rows(columns: Mapping[str, pa.Array], splitters: Mapping[str, SentenceSplitter]) -> SplitRows:
    """Split documents into sentences.

    Args:
        columns: Columns [document]; those that are split are bytes.
        splitters: How the columns with these names are split; the others are repeated for each sentence.
    """
    split = {name: list(map(one.split_bytes, columns[name].to_pylist())) for name, one in splitters.items()}
    counts = np.array([[len(parts) for parts in column] for column in split.values()], np.int64)
    is_unequal = (counts != counts[0]).any(axis=0)
    documents = np.repeat(np.arange(len(is_unequal)), np.where(is_unequal, 1, counts[0]))
    found = []
    for name, column in columns.items():
        if name not in split:
            found.append(column.take(pa.array(documents)))
            continue
        parts = [
            part
            for sentences, whole in zip(split[name], is_unequal, strict=True)
            for part in (sentences[:1] if whole else sentences)
        ]
        found.append(pa.array(parts, pa.binary()))
    return SplitRows(found, documents, is_unequal[documents])


def _continues(before: str, part: str) -> bool:
    """Whether a part continues a sentence after an ordinal, as in "Od 3. října".

    Before the letters a to z sentencex knows that itself.

    Args:
        before: The last characters before the part.
        part: The part.
    """
    ordinal = before.rstrip(" ")
    return ordinal[-1:] == "." and ordinal[-2:-1].isdigit() and part[0].islower() and not part[0].isascii()
