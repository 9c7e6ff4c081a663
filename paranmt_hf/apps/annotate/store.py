"""Answers in an SQLite file: each is on the disk before anybody is told that it is stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from paranmt_hf.apps.annotate.labels import Answer, check_name
from paranmt_hf.apps.annotate.sample import Sample
from paranmt_hf.errors import InputError, WriteError

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
    """An answer was changed elsewhere meanwhile, in another window or by an import.

    Args:
        stored: The answer that is stored.
    """

    def __init__(self, stored: Answer) -> None:
        super().__init__("the answer was changed elsewhere meanwhile")
        self.stored = stored


class AnswerStore:
    """The answers to one sample, in a file that several programs may use at the same time.

    A journal beside the file makes each change whole: after a kill or a power cut the next opening finds all that was
    stored. The file alone holds everything once no program has it open.

    Args:
        path: The file; made where it is not there.
        sample: What the answers are to.

    Raises:
        InputError: It holds answers to another sample, or is no such file.
    """

    def __init__(self, path: Path, sample: Sample) -> None:
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
                f"{self.path} holds answers to another sample (checksum {found[:12]}, that of the sample beside it is "
                f"{checksum[:12]}); put it back beside its own sample, or move it away"
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

    def answers(self, annotator: str | None = None) -> dict[str, dict[int, Answer]]:
        """Read the answers of each annotator by item; of all annotators, or of one.

        Raises:
            InputError: The file is damaged.
        """
        query = f"SELECT annotator, item, {', '.join(FIELDS)} FROM answers"
        with self._explained():
            if annotator is None:
                rows = self._connection.execute(f"{query} ORDER BY annotator, item").fetchall()
            else:
                rows = self._connection.execute(f"{query} WHERE annotator = ? ORDER BY item", (annotator,)).fetchall()
            found: dict[str, dict[int, Answer]] = {}
            for name, item, *values in rows:
                found.setdefault(name, {})[item] = _answer(values)
        return found

    def name(self, name: object) -> str:
        """Find the annotator of a name as it was written first: upper and lower case make no other person.

        Raises:
            InputError: It is no name.
        """
        asked = check_name(name)
        with self._explained():
            known = [row[0] for row in self._connection.execute("SELECT DISTINCT annotator FROM answers")]
        return next((other for other in known if other.casefold() == asked.casefold()), asked)

    def put(self, annotator: str, item: int, answer: Answer) -> Answer:
        """Store an answer; when this returns, it is on the disk.

        Args:
            annotator: Who answers, as `name` gives it.
            item: Index of the pair in the sample.
            answer: The answer; its `revision` is that of the stored one that it replaces.

        Returns:
            The answer with its new revision and time.

        Raises:
            Outdated: Another answer is stored than the one that is to be replaced.
            InputError: There is no such item, or the disk takes nothing.
        """
        with self._explained(), self._transaction():
            return self._put(annotator, item, answer)

    def put_all(self, answers: Sequence[tuple[str, int, Answer]]) -> None:
        """Store answers, all of them or none; the others are as for `put`."""
        with self._explained(), self._transaction():
            for annotator, item, answer in answers:
                self._put(annotator, item, answer)

    def _put(self, annotator: str, item: int, answer: Answer) -> Answer:
        if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < self._items:
            raise InputError(f"the sample has the items 0 to {self._items - 1}, not {item!r}")
        row = self._connection.execute(
            f"SELECT {', '.join(FIELDS)} FROM answers WHERE annotator = ? AND item = ?", (annotator, item)
        ).fetchone()
        stored = _answer(row) if row else Answer()
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
        """Say in a sentence why SQLite did not do what it was asked for."""
        try:
            yield
        except sqlite3.OperationalError as error:
            # What SQLite says of text has no code of its own.
            if "decode" in str(error):
                raise self._damaged(error) from None
            raise WriteError(
                f"cannot use {self.path}: {error}; look whether there is room and who may write there"
            ) from None
        except (sqlite3.DatabaseError, TypeError, UnicodeDecodeError) as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> InputError:
        return InputError(
            f"{self.path} is damaged or no file of answers ({error}); move it away, or put a copy in its place"
        )


def _answer(values: Sequence) -> Answer:
    strength, fluency, skipped, note, revision, changed = values
    try:
        return Answer(strength, fluency, bool(skipped), note, revision, changed)
    except InputError as error:
        # Nobody could store that here.
        raise sqlite3.DatabaseError(str(error)) from None
