"""Answers of a language model, and the file that keeps them."""

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
    # Why it ends: `stop`, `length`, `content_filter` or another reason of the server; `refusal` if the model rejected
    # explicitly, `context` if the request was too long for the model, `reasoning` if only reasoning came
    finish: str
    # Mean of the natural logarithms of the probabilities of its tokens (<= 0); None if the server gave none, or if the
    # model reasoned, because the tokens of the reasoning are among them
    score: float | None = None


class KeptAnswers:
    """A file of answers. Each is on disk once `add` has returned, even if the process is killed.

    `request` is what determines an answer besides the sentence, as JSON values.
    """

    def __init__(self, path: Path, request: Mapping[str, Any]) -> None:
        self.path = path
        self._request = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).digest()
        with self._explained():
            self._connection = sqlite3.connect(path, isolation_level=None)
            try:
                # No wait for the disk: a kill loses nothing, a power cut at most the last answers.
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._connection.executescript(TABLES)
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        self._connection.close()

    def find(self, sentences: Iterable[str]) -> dict[str, Answer]:
        found: dict[str, Answer] = {}
        for sentence in sentences:
            rows = self._rows("SELECT text, finish, score FROM answers WHERE key = ?", self._key(sentence))
            for row in rows:
                found[sentence] = Answer(*row)
        return found

    def add(self, sentence: str, answer: Answer) -> None:
        self._rows("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", self._key(sentence), *astuple(answer))

    def __len__(self) -> int:
        ((count,),) = self._rows("SELECT count(*) FROM answers")
        return int(count)

    def left_out(self) -> set[str]:
        """Parameters that were left out of requests, because the server refused them."""
        return {name for (name,) in self._rows("SELECT parameter FROM left_out")}

    def leave_out(self, parameters: Iterable[str]) -> None:
        """Add parameters that are left out of requests."""
        for name in sorted(parameters):
            self._rows("INSERT OR IGNORE INTO left_out VALUES (?)", name)

    def _key(self, sentence: str) -> bytes:
        return hashlib.sha256(self._request + sentence.encode("utf8", "surrogatepass")).digest()[:16]

    def _rows(self, query: str, *values: Any) -> Sequence[tuple[Any, ...]]:  # noqa: ANN401 - values of columns
        with self._explained():
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            unwritable = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in unwritable:
                raise WriteError(
                    f"cannot keep answers in {self.path}: {error}; make room there, then run the same command again"
                ) from None
            raise InputError(f"{self.path} is damaged ({error}); delete it, and the same command asks again") from None
