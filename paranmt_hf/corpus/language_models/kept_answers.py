"""Answers of a server in an SQLite file: what was answered is not asked again, whenever the work stops."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError, WriteError

ANSWERS_FILE = "answers.db"
TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    key BLOB PRIMARY KEY,
    text TEXT NOT NULL,
    finish TEXT NOT NULL,
    score REAL,
    input_tokens INTEGER,
    output_tokens INTEGER
) STRICT, WITHOUT ROWID
"""
# Of SQLite, for a disk that is full and one that cannot be written.
UNWRITABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


@dataclass(frozen=True)
class Answer:
    """What a language model answered.

    Attributes:
        text: The answer as it came.
        finish: Why it ends: `stop`, `length`, `content_filter`, or what else the server says; `refusal` where the
            model refused in so many words, `context` where the request was too long for the model.
        score: Mean of the natural logarithms of the probabilities of its tokens (<= 0); None where the server gave
            none.
        input_tokens: Tokens of the request, None where the server did not count.
        output_tokens: Tokens of the answer, likewise.
    """

    text: str
    finish: str
    score: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


class KeptAnswers:
    """Answers by what was asked. Each is kept, also if this process is killed, once `add` has returned.

    Args:
        path: The file; made where it is not there.
        request: What determines an answer beside the sentence, as JSON values.

    Raises:
        InputError: It is no such file, or cannot be written.
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
                self._connection.execute(TABLE)
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _key(self, sentence: str) -> bytes:
        return hashlib.sha256(self._request + sentence.encode("utf8", "surrogatepass")).digest()[:16]

    def find(self, sentences: Sequence[str]) -> dict[str, Answer]:
        """Look answers up; sentences without one are left out."""
        found: dict[str, Answer] = {}
        query = "SELECT text, finish, score, input_tokens, output_tokens FROM answers WHERE key = ?"
        with self._explained():
            for sentence in sentences:
                if row := self._connection.execute(query, (self._key(sentence),)).fetchone():
                    found[sentence] = Answer(*row)
        return found

    def add(self, sentence: str, answer: Answer) -> None:
        """Keep an answer."""
        with self._explained():
            self._connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", (self._key(sentence), *astuple(answer))
            )

    def tokens(self) -> tuple[int, int, int]:
        """Count the answers that are kept, and the tokens of their requests and of themselves."""
        with self._explained():
            row = self._connection.execute(
                "SELECT count(*), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0) FROM answers"
            ).fetchone()
        return int(row[0]), int(row[1]), int(row[2])

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in UNWRITABLE:
                raise WriteError(
                    f"cannot keep answers in {self.path}: {error}; make room there, then run the same command again"
                ) from None
            raise InputError(
                f"{self.path} is damaged ({error}); delete it, and the same command asks anew what was in it"
            ) from None
