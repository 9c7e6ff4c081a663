"""Answers of a language model, and the file in which they are kept."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError, WriteError

ANSWERS_FILE = "answers.db"
TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    key BLOB PRIMARY KEY,
    text TEXT NOT NULL,
    finish TEXT NOT NULL,
    score REAL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS left_out (parameter TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Answer:
    """The answer of a language model."""

    text: str  # The answer as it came
    # Why the answer ends:
    # - `stop`, `length`, `content_filter` or another reason that the server gives
    # - `refusal`: the model refused explicitly
    # - `context`: the request was too long for the model
    # - `reasoning`: there was only reasoning
    finish: str
    # Mean of the natural logarithms of the probabilities of its tokens, at most 0. None if the server gave none, or if
    # the model reasoned, because the tokens of the reasoning would be among them
    score: float | None = None


class KeptAnswers:
    """A file of answers. An answer is safe once `add` has returned, even if the process is killed.

    Args:
        path: The file, created if it is missing.
        request: Everything that determines an answer besides the sentence, as JSON values.

    Raises:
        InputError: If the file is damaged.
    """

    def __init__(self, path: Path, request: Mapping[str, Any]) -> None:
        self.path = path
        self._request = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).digest()
        with self._explained():
            self._connection = sqlite3.connect(path, isolation_level=None)
            try:
                # Writing does not wait for the disk. A kill loses nothing, and a power cut at most the last answers.
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._connection.executescript(TABLES)
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def find(self, sentences: Iterable[str]) -> dict[str, Answer]:
        """Return the kept answers for some sentences, by sentence; those without an answer are left out."""
        found: dict[str, Answer] = {}
        for sentence in sentences:
            rows = self._rows("SELECT text, finish, score FROM answers WHERE key = ?", self._key(sentence))
            for row in rows:
                found[sentence] = Answer(*row)
        return found

    def add(self, sentence: str, answer: Answer) -> None:
        """Keep the answer for a sentence, in place of an earlier one."""
        self._rows("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", self._key(sentence), *astuple(answer))

    def __len__(self) -> int:
        """Return the number of answers in the file, those to other requests included."""
        ((count,),) = self._rows("SELECT count(*) FROM answers")
        return int(count)

    def omitted_parameters(self) -> set[str]:
        """Return the parameters that requests leave out, because the server refused them."""
        return {name for (name,) in self._rows("SELECT parameter FROM left_out")}

    def add_omitted_parameters(self, parameters: Iterable[str]) -> None:
        """Keep the names of parameters that requests leave out."""
        for name in sorted(parameters):
            self._rows("INSERT OR IGNORE INTO left_out VALUES (?)", name)

    def _key(self, sentence: str) -> bytes:
        """Return the key of the answer for a sentence: 128 bits of a hash of request and sentence."""
        return hashlib.sha256(self._request + sentence.encode("utf8", "surrogatepass")).digest()[:16]

    def _rows(self, query: str, *values: Any) -> Sequence[tuple[Any, ...]]:  # noqa: ANN401 - values of columns
        """Execute a query, and return its rows."""
        with self._explained():
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of SQLite in a `with` block into errors that say what to do."""
        try:
            yield
        except sqlite3.Error as error:
            unwritable = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            # The lower 8 bits are the primary code; the others say more about it.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in unwritable:
                raise WriteError(
                    f"cannot keep answers in {self.path}: {error}; make room there, then run the same command again"
                ) from None
            raise InputError(f"{self.path} is damaged ({error}); delete it, and the same command asks again") from None
