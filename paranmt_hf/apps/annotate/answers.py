"""What annotators answer, and the file that stores it.

The strength of a paraphrase has six classes, those of SemEval's semantic textual similarity, from 5 (the same) to 0
(nothing in common), folded to three labels for table 3 of ParaNMT-50M (Wieting & Gimpel 2018). Fluency has three
labels. The guidelines for annotators are in `assets/annotate/annotate.html`.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from filelock import FileLock

from paranmt_hf.apps.annotate.sample import AnnotationSample
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import write_bytes, writing
from paranmt_hf.util.records import as_json, from_json, read_json
from paranmt_hf.util.settings import Range, check
from paranmt_hf.util.wording import brief

ANSWERS_FILE = "answers.json"
# Time for another program to finish writing.
WAIT_SECONDS = 20.0
STRENGTHS = (0, 1, 2, 3, 4, 5)
LABELS = (1, 2, 3)
# The label [class] of each class: the top two are 3, the next is 2, the bottom three are 1.
PARAPHRASE = (1, 1, 1, 2, 3, 3)
NAME = re.compile(r"[\w][\w .'\-]*")
NAME_CHARACTERS = 40
NOTE_CHARACTERS = 2000


@dataclass(frozen=True)
class Rating:
    """The rating of one pair by one person."""

    # Class of the paraphrase, from 0 to 5; None while not given
    strength: Annotated[int | None, Range(at_least=0, at_most=5)] = None
    # Label of the translation: 3 no error, 2 one or two, 1 more, or unnatural; None while not given
    fluency: Annotated[int | None, Range(at_least=1, at_most=3)] = None
    skipped: bool = False  # Whether the person leaves the pair out; then both are None
    note: str = ""  # Anything else, as text
    revision: Annotated[int, Range(at_least=0)] = 0  # How often the answer was stored; 0 for one that never was
    changed: str = ""  # When it was stored last, in UTC as ISO 8601 has it

    def __post_init__(self) -> None:
        check(self)
        if self.skipped and not (self.strength is None and self.fluency is None):
            raise InputError("a pair that is skipped has neither strength nor fluency")
        # Text files cannot hold lone surrogates.
        controls = any(unicodedata.category(each) in ("Cc", "Cs") and each not in "\n\t" for each in self.note)
        if len(self.note) > NOTE_CHARACTERS or controls:
            raise InputError(f"a note must be text of at most {NOTE_CHARACTERS:,} characters, was {brief(self.note)}")

    @property
    def paraphrase(self) -> int | None:
        """The strength folded to a label from 1 to 3."""
        return None if self.strength is None else PARAPHRASE[self.strength]

    @property
    def done(self) -> bool:
        """Whether the rating is complete: both labels are given, or the pair is skipped."""
        return self.skipped or (self.strength is not None and self.fluency is not None)

    @property
    def said(self) -> tuple[int | None, int | None, bool, str]:
        """The rating without its time."""
        return self.strength, self.fluency, self.skipped, self.note


def annotator_name(name: object) -> str:
    """Normalise the name of an annotator: composed characters, single spaces."""
    text = " ".join(unicodedata.normalize("NFC", name).split()) if isinstance(name, str) else ""
    if not NAME.fullmatch(text) or len(text) > NAME_CHARACTERS:
        raise InputError(
            f"the name of an annotator must have from 1 to {NAME_CHARACTERS} letters, digits, spaces or . - ' and "
            f"begin with a letter or digit, was {brief(name)}"
        )
    return text


class Outdated(Exception):
    """An answer was changed in the meantime, in another window or by an import; `stored` is the current one."""

    def __init__(self, stored: Rating) -> None:
        super().__init__("the answer was changed elsewhere meanwhile")
        self.stored = stored


@dataclass(frozen=True)
class _AnswersFile:
    """The content of `answers.json`: the checksum of the sample, and answers by annotator and item."""

    sample: str
    answers: dict[str, dict[str, Rating]]


class AnswerStore:
    """The answers to one sample, in a file that several programs may use at the same time.

    Each change writes the file atomically: a kill or a power cut loses nothing that was stored.
    """

    def __init__(self, path: Path, sample: AnnotationSample) -> None:
        self.path, self._items, self._sample = path, len(sample.items), sample.checksum
        self.answers()

    def answers(self) -> dict[str, dict[int, Rating]]:
        """Read the answers of each annotator by item."""
        if not self.path.exists():
            return {}
        file = from_json(_AnswersFile, read_json(self.path, "answers to a sample"), self.path)
        if file.sample != self._sample:
            raise InputError(
                f"{self.path} holds answers to another sample (checksum {file.sample[:12]}, the sample next to it has "
                f"{self._sample[:12]}); put it back next to its own sample, or move it away",
                path=self.path,
            )
        return {name: {int(item): answer for item, answer in own.items()} for name, own in file.answers.items()}

    def name(self, name: object) -> str:
        """Find the first spelling of an annotator's name; case is ignored."""
        asked = annotator_name(name)
        return next((other for other in self.answers() if other.casefold() == asked.casefold()), asked)

    def put(self, annotator: str, item: int, answer: Rating) -> Rating:
        """Store an answer to an item on disk, and return it with its new revision and time.

        Its `revision` is that of the answer that it replaces; if another one is stored, that is `Outdated`.
        """
        return self.put_all([(annotator, item, answer)])[0]

    def put_all(self, answers: Sequence[tuple[str, int, Rating]]) -> list[Rating]:
        """Store several answers, all or none; see `put`."""
        stored = []
        with writing(self.path), FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=WAIT_SECONDS):
            found = self.answers()
            for annotator, item, answer in answers:
                if item not in range(self._items):
                    raise InputError(f"the sample has the items 0 to {self._items - 1}, not {item!r}")
                own = found.setdefault(annotator, {})
                if (former := own.get(item, Rating())).revision != answer.revision:
                    raise Outdated(former)
                changed = answer.changed or datetime.now(UTC).isoformat(timespec="seconds")
                own[item] = replace(answer, revision=answer.revision + 1, changed=changed)
                stored.append(own[item])
            ordered = {name: {str(item): own[item] for item in sorted(own)} for name, own in sorted(found.items())}
            content = as_json(_AnswersFile(self._sample, ordered))
            write_bytes(self.path, f"{json.dumps(content, indent=1, ensure_ascii=False)}\n".encode())
            # So that the new name survives a power cut.
            folder = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        return stored
