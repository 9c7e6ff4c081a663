"""What people say of a pair, and who says it.

Strength of a paraphrase is given in six classes, those of SemEval's semantic textual similarity, from 5 (the same) to
0 (nothing in common), and folded to three labels for table 3 of ParaNMT-50M (Wieting & Gimpel 2018). Fluency has three
labels from the beginning. The guidelines that people read stand in `assets/annotate/annotate.html`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from paranmt_hf.errors import InputError

STRENGTHS = (0, 1, 2, 3, 4, 5)
LABELS = (1, 2, 3)
# The label [class] of each class: the top two are 3, the next is 2, the bottom three are 1.
PARAPHRASE = (1, 1, 1, 2, 3, 3)
NAME = re.compile(r"[\w][\w .'\-]*")
NAME_CHARACTERS = 40
NOTE_CHARACTERS = 2000


@dataclass(frozen=True)
class Answer:
    """What one person says of one pair.

    Attributes:
        strength: Class of the paraphrase, from 0 to 5; None while not given.
        fluency: Label of the translation: 3 no error, 2 one or two, 1 more, or unnatural; None while not given.
        skipped: Whether the person leaves the pair out; then both are None.
        note: Anything else, as text.
        revision: How often the answer was stored; 0 for one that never was.
        changed: When it was stored last, in UTC as ISO 8601 has it.

    Raises:
        InputError: A value is out of its range.
    """

    strength: int | None = None
    fluency: int | None = None
    skipped: bool = False
    note: str = ""
    revision: int = 0
    changed: str = ""

    def __post_init__(self) -> None:
        _check_label("strength", self.strength, STRENGTHS)
        _check_label("fluency", self.fluency, LABELS)
        if not isinstance(self.skipped, bool):
            raise InputError(f"skipped must be true or false, was {self.skipped!r}")
        if self.skipped and not (self.strength is None and self.fluency is None):
            raise InputError("a pair that is skipped has neither strength nor fluency")
        if not isinstance(self.note, str) or len(self.note) > NOTE_CHARACTERS or _has_controls(self.note):
            raise InputError(f"a note must be text of at most {NOTE_CHARACTERS:,} characters, was {_brief(self.note)}")
        if isinstance(self.revision, bool) or not isinstance(self.revision, int) or self.revision < 0:
            raise InputError(f"revision must be a whole number of at least 0, was {_brief(self.revision)}")

    @property
    def paraphrase(self) -> int | None:
        """The strength folded to a label from 1 to 3."""
        return None if self.strength is None else PARAPHRASE[self.strength]

    @property
    def done(self) -> bool:
        """Whether nothing is left to say: both labels are given, or the pair is skipped."""
        return self.skipped or (self.strength is not None and self.fluency is not None)

    @property
    def said(self) -> tuple[int | None, int | None, bool, str]:
        """What the person said, without when."""
        return self.strength, self.fluency, self.skipped, self.note


def check_name(name: object) -> str:
    """Bring the name of an annotator into one form: composed characters, single spaces.

    Raises:
        InputError: It is no name.
    """
    text = " ".join(unicodedata.normalize("NFC", name).split()) if isinstance(name, str) else ""
    if not NAME.fullmatch(text) or len(text) > NAME_CHARACTERS:
        raise InputError(
            f"the name of an annotator must have from 1 to {NAME_CHARACTERS} letters, digits, spaces or . - ' and "
            f"begin with a letter or digit, was {_brief(name)}"
        )
    return text


def _check_label(name: str, value: object, allowed: tuple[int, ...]) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value not in allowed):
        raise InputError(f"{name} must be from {allowed[0]} to {allowed[-1]}, or nothing, was {_brief(value)}")


def _has_controls(text: str) -> bool:
    """Whether there are characters that no text file keeps: half of a surrogate pair, a null."""
    return any(unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t" for character in text)


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
