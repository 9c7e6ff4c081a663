"""The SQLite file of a `TextMemory`: its texts, their values and vectors, and what was removed."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

from paranmt_hf.errors import InputError
from paranmt_hf.search.storage import spans

FILE = "memory.sqlite"
FORMAT = 1
AT_ONCE = 500  # Numbers in one question to SQLite
TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE texts (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, value TEXT, vector BLOB NOT NULL);
CREATE TABLE removed (number INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT NULL);
"""
Stored = tuple[str, str | None]  # A text and its value


class MemoryFile:
    """The file of a memory, which several threads and processes may use at once.

    All methods but `close` must be called in a `with` block of `guarded` or `transaction`.

    Args:
        folder: Folder of the memory, which is made if there is none.
        revision: Revision or checksum of the encoder of its vectors.
        name: Name of the encoder.

    Raises:
        InputError: The file is damaged, or that of another encoder.
    """

    def __init__(self, folder: Path, revision: str, name: str) -> None:
        if folder.is_file():
            raise InputError(f"{folder} is a file; give a folder", option="folder", path=folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.path = path = folder / FILE
        self._lock = RLock()
        facts = {"format": str(FORMAT), "encoder": revision, "encoder name": name}
        try:
            self._database = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
            self._use_wal()
            # A killed process loses nothing that was committed; a power cut may lose the last calls, and no more.
            self._database.execute("PRAGMA synchronous=NORMAL")
            self._database.execute("BEGIN IMMEDIATE")
            if not self._database.execute("SELECT name FROM sqlite_master WHERE name = 'facts'").fetchone():
                for statement in TABLES.split(";"):
                    self._database.execute(statement)
                self._database.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
            self._database.execute("COMMIT")
            stored = dict(self._database.execute("SELECT name, value FROM facts"))
        except sqlite3.OperationalError as error:
            raise InputError(f"{path} cannot be opened: {error}", option="folder", path=path) from error
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"{path} is no memory of texts, or damaged ({error}); give another folder", option="folder", path=path
            ) from None
        if stored.get("format") != facts["format"]:
            raise InputError(f"{path} is no memory that this version can read", option="folder", path=path)
        if stored["encoder"] != revision:
            raise InputError(
                f"{folder} is a memory of the encoder {stored['encoder name']} ({stored['encoder']}), and {name} "
                f"({revision}) makes other vectors: name the encoder of the memory, or another folder",
                option="encoder",
                path=folder,
            )

    def _use_wal(self) -> None:
        """Let readers and a writer use the file at once; SQLite does not wait for others here by itself."""
        for attempt in range(200):
            try:
                self._database.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or attempt == 199:
                    raise
                time.sleep(0.05)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Keep other threads out of a `with` block, and turn errors of SQLite into `InputError`."""
        with self._lock:
            try:
                yield
            except sqlite3.ProgrammingError:
                raise InputError(f"{self.path}: this memory was closed; open it again", path=self.path) from None
            except sqlite3.OperationalError as error:
                raise InputError(f"{self.path} cannot be used: {error}", path=self.path) from error
            except sqlite3.DatabaseError as error:
                raise InputError(
                    f"{self.path} cannot be used ({error}); if it is damaged, SQLite's `.recover` may save its texts",
                    path=self.path,
                ) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes of a `with` block, or none of them."""
        with self.guarded():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                # On a full disk SQLite has rolled back already.
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    def vectors_after(self, number: int) -> list[tuple[int, bytes]]:
        """Return numbers and vectors of the next texts behind a number, at most 65,536."""
        query = "SELECT id, vector FROM texts WHERE id > ? ORDER BY id LIMIT 65536"
        return self._database.execute(query, (number,)).fetchall()

    def removed_after(self, removal: int) -> list[tuple[int, int]]:
        """Return the removals behind a removal: its number, and that of the text."""
        query = "SELECT number, id FROM removed WHERE number > ? ORDER BY number"
        return self._database.execute(query, (removal,)).fetchall()

    def texts_after(self, number: int) -> list[tuple[int, str, str | None]]:
        """Return number, text and value of the next texts behind a number, at most 10,000."""
        query = "SELECT id, text, value FROM texts WHERE id > ? ORDER BY id LIMIT 10000"
        return self._database.execute(query, (number,)).fetchall()

    def texts_of(self, numbers: Sequence[int]) -> dict[int, Stored]:
        """Return the texts with some numbers, as far as there are."""
        found = {}
        for start, stop in spans(len(numbers), AT_ONCE):
            some = numbers[start:stop]
            marks = ",".join("?" * len(some))
            rows = self._database.execute(f"SELECT id, text, value FROM texts WHERE id IN ({marks})", some)
            found.update({number: (text, value) for number, text, value in rows})
        return found

    def numbers_of(self, texts: Iterable[str]) -> dict[str, tuple[int, str | None]]:
        """Return number and value of the texts that are stored letter by letter, by the text."""
        found = {}
        for text in texts:
            row = self._database.execute("SELECT id, value FROM texts WHERE text = ?", (text,)).fetchone()
            if row is not None:
                found[text] = row
        return found

    def last_number(self) -> int:
        """Return the highest number that a text has had."""
        query = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'texts'"
        return int(self._database.execute(query).fetchone()[0])

    def insert(self, number: int, text: str, value: str | None, vector: bytes) -> None:
        """Store a text with its number, value and vector."""
        self._database.execute("INSERT INTO texts VALUES (?, ?, ?, ?)", (number, text, value, vector))

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove texts that are there, and note it for other processes."""
        rows = [(number,) for number in numbers]
        self._database.executemany("DELETE FROM texts WHERE id = ?", rows)
        self._database.executemany("INSERT INTO removed (id) VALUES (?)", rows)
