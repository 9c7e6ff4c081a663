"""What annotators answer, and the SQLite file that stores it.

The strength of a paraphrase has six classes, those of SemEval's semantic textual similarity, from 5 (the same) to 0
(nothing in common), folded to three labels for table 3 of ParaNMT-50M (Wieting & Gimpel 2018). Fluency has three
labels. The guidelines for annotators are in `assets/annotate/annotate.html`.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from paranmt_hf.apps.annotate.sample import AnnotationSample
from paranmt_hf.errors import InputError, WriteError
from paranmt_hf.util.settings import brief

ANSWERS_FILE = "answers.db"
# "PNMT", which tells such a file from any other of SQLite.
APPLICATION = 0x504E4D54
WAIT_SECONDS = 20.0
TABLES = """
CREATE TABLE sample (checksum TEXT NOT NULL) STRICT;
CREATE TABLE answers (
    annotator TEXT NOT NULL,
    item INTEGER NOT NULL,
    strength INTEGER CHECK (strength BETWEEN 0 AND 5),
    fluency INTEGER CHECK (fluency BETWEEN 1 AND 3),
    skipped INTEGER NOT NULL CHECK (skipped IN (0, 1)),
    note TEXT NOT NULL,
    revision INTEGER NOT NULL,
    changed TEXT NOT NULL,
    PRIMARY KEY (annotator, item)
) STRICT, WITHOUT ROWID;
"""
FIELDS = ("strength", "fluency", "skipped", "note", "revision", "changed")


class Outdated(Exception):
    """An answer was changed in the meantime, in another window or by an import; `stored` is the current one."""

    def __init__(self, stored: Rating) -> None:
        super().__init__("the answer was changed elsewhere meanwhile")
        self.stored = stored


class AnswerStore:
    """The answers to one sample, in a file that several programs may use at the same time.

    A journal next to the file makes each change atomic: after a kill or a power cut the next opening finds all that
    was stored. Once no program has it open, the file alone holds everything.
    """

    def __init__(self, path: Path, sample: AnnotationSample) -> None:
        self.path, self._items = path, len(sample.items)
        with self._explained():
            # Whoever uses this object does so in one thread at a time, but not always in the same one.
            self._connection = sqlite3.connect(
                path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._open(sample.checksum)
            except BaseException:
                self._connection.close()
                raise

    def _open(self, checksum: str) -> None:
        self._connection.execute("PRAGMA synchronous = EXTRA")
        with self._transaction():
            (application,) = self._connection.execute("PRAGMA application_id").fetchone()
            empty = not self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
            if empty and application == 0:
                for statement in TABLES.split(";"):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
                self._connection.execute("INSERT INTO sample VALUES (?)", (checksum,))
            elif application != APPLICATION:
                raise InputError(f"{self.path} is a database of another program; move it away")
            (found,) = self._connection.execute("SELECT checksum FROM sample").fetchone()
        if found != checksum:
            raise InputError(
                f"{self.path} holds answers to another sample (checksum {found[:12]}, the sample next to it has "
                f"{checksum[:12]}); put it back next to its own sample, or move it away"
            )

    def __enter__(self) -> AnswerStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; everything is stored already."""
        self._connection.close()

    def answers(self, annotator: str | None = None) -> dict[str, dict[int, Rating]]:
        """Read the answers of each annotator by item; of all annotators, or of one."""
        query = f"SELECT annotator, item, {', '.join(FIELDS)} FROM answers"
        with self._explained():
            if annotator is None:
                rows = self._connection.execute(f"{query} ORDER BY annotator, item").fetchall()
            else:
                rows = self._connection.execute(f"{query} WHERE annotator = ? ORDER BY item", (annotator,)).fetchall()
            found: dict[str, dict[int, Rating]] = {}
            for name, item, *values in rows:
                found.setdefault(name, {})[item] = _answer(values)
        return found

    def name(self, name: object) -> str:
        """Find the first spelling of an annotator's name; case is ignored."""
        asked = annotator_name(name)
        with self._explained():
            known = [row[0] for row in self._connection.execute("SELECT DISTINCT annotator FROM answers")]
        return next((other for other in known if other.casefold() == asked.casefold()), asked)

    def put(self, annotator: str, item: int, answer: Rating) -> Rating:
        """Store an answer to an item on disk; its `revision` is that of the answer that it replaces.

        Returns:
            The answer with its new revision and time.

        Raises:
            Outdated: Another answer is stored than the one that is to be replaced.
        """
        with self._explained(), self._transaction():
            return self._put(annotator, item, answer)

    def put_all(self, answers: Sequence[tuple[str, int, Rating]]) -> None:
        """Store several answers, all or none; see `put`."""
        with self._explained(), self._transaction():
            for annotator, item, answer in answers:
                self._put(annotator, item, answer)

    def _put(self, annotator: str, item: int, answer: Rating) -> Rating:
        if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < self._items:
            raise InputError(f"the sample has the items 0 to {self._items - 1}, not {brief(item)}")
        row = self._connection.execute(
            f"SELECT {', '.join(FIELDS)} FROM answers WHERE annotator = ? AND item = ?", (annotator, item)
        ).fetchone()
        stored = _answer(row) if row else Rating()
        if stored.revision != answer.revision:
            raise Outdated(stored)
        changed = answer.changed or datetime.now(UTC).isoformat(timespec="seconds")
        new = replace(answer, revision=answer.revision + 1, changed=changed)
        self._connection.execute(
            f"INSERT OR REPLACE INTO answers (annotator, item, {', '.join(FIELDS)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (annotator, item, new.strength, new.fluency, int(new.skipped), new.note, new.revision, new.changed),
        )
        return new

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        # IMMEDIATE: what is read first stays true until the end.
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Explain an SQLite error in one sentence."""
        try:
            yield
        except sqlite3.OperationalError as error:
            # What SQLite says of text has no code of its own.
            if "decode" in str(error):
                raise self._damaged(error) from None
            raise WriteError(
                f"cannot use {self.path}: {error}; check the free space and the write permissions"
            ) from None
        except (sqlite3.DatabaseError, TypeError, UnicodeDecodeError) as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> InputError:
        return InputError(
            f"{self.path} is damaged or not a file of answers ({error}); move it away, or put a copy in its place"
        )


def _answer(values: Sequence) -> Rating:
    strength, fluency, skipped, note, revision, changed = values
    try:
        return Rating(strength, fluency, bool(skipped), note, revision, changed)
    except InputError as error:
        # Nobody could store that here.
        raise sqlite3.DatabaseError(str(error)) from None


STRENGTHS = (0, 1, 2, 3, 4, 5)
LABELS = (1, 2, 3)
# The label [class] of each class: the top two are 3, the next is 2, the bottom three are 1.
PARAPHRASE = (1, 1, 1, 2, 3, 3)
NAME = re.compile(r"[\w][\w .'\-]*")
NAME_CHARACTERS = 40
NOTE_CHARACTERS = 2000


@dataclass(frozen=True)
class Rating:
    """The rating of one pair by one person.

    Attributes:
        strength: Class of the paraphrase, from 0 to 5; None while not given.
        fluency: Label of the translation: 3 no error, 2 one or two, 1 more, or unnatural; None while not given.
        skipped: Whether the person leaves the pair out; then both are None.
        note: Anything else, as text.
        revision: How often the answer was stored; 0 for one that never was.
        changed: When it was stored last, in UTC as ISO 8601 has it.
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
            raise InputError(f"skipped must be true or false, was {brief(self.skipped)}")
        if self.skipped and not (self.strength is None and self.fluency is None):
            raise InputError("a pair that is skipped has neither strength nor fluency")
        if not isinstance(self.note, str) or len(self.note) > NOTE_CHARACTERS or _has_controls(self.note):
            raise InputError(f"a note must be text of at most {NOTE_CHARACTERS:,} characters, was {brief(self.note)}")
        if isinstance(self.revision, bool) or not isinstance(self.revision, int) or self.revision < 0:
            raise InputError(f"revision must be a whole number of at least 0, was {brief(self.revision)}")

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


def _check_label(name: str, value: object, allowed: tuple[int, ...]) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value not in allowed):
        raise InputError(f"{name} must be from {allowed[0]} to {allowed[-1]}, or nothing, was {brief(value)}")


def _has_controls(text: str) -> bool:
    """Whether there are characters that text files cannot hold: lone surrogates or null characters."""
    return any(unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t" for character in text)
