"""Answers of language models: which of them are usable, and the cache of all."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paranmt_hf.corpus.language_models.config import LanguageModelConfig, ModelTask
from paranmt_hf.corpus.language_models.reasoning import Mark, holds_marks, split_reasoning, without_answer_marks
from paranmt_hf.corpus.reading.columns import normalise
from paranmt_hf.corpus.scoring.language import LanguageConfig, build_model, in_language
from paranmt_hf.errors import InputError, WriteError
from paranmt_hf.util.optional import require, versions

ANSWERS_FILE = "answers.db"
TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    key BLOB PRIMARY KEY,
    text TEXT NOT NULL,
    finish TEXT NOT NULL,
    score REAL,
    input_tokens INTEGER,
    output_tokens INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS left_out (parameter TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
"""
# Of SQLite, for a disk that is full and one that cannot be written.
UNWRITABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


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
    input_tokens: int | None = None  # Tokens of the request; None if the server did not count them
    output_tokens: int | None = None  # Tokens of the answer, likewise


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

    def _key(self, sentence: str) -> bytes:
        return hashlib.sha256(self._request + sentence.encode("utf8", "surrogatepass")).digest()[:16]

    def find(self, sentences: Sequence[str]) -> dict[str, Answer]:
        found: dict[str, Answer] = {}
        query = "SELECT text, finish, score, input_tokens, output_tokens FROM answers WHERE key = ?"
        with self._explained():
            for sentence in sentences:
                if row := self._connection.execute(query, (self._key(sentence),)).fetchone():
                    found[sentence] = Answer(*row)
        return found

    def add(self, sentence: str, answer: Answer) -> None:
        with self._explained():
            self._connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", (self._key(sentence), *astuple(answer))
            )

    def left_out(self) -> set[str]:
        """Parameters that were left out of requests, because the server refused them."""
        with self._explained():
            return {name for (name,) in self._connection.execute("SELECT parameter FROM left_out")}

    def leave_out(self, parameters: Iterable[str]) -> None:
        """Add parameters that are left out of requests."""
        with self._explained():
            rows = [(name,) for name in sorted(parameters)]
            self._connection.executemany("INSERT OR IGNORE INTO left_out VALUES (?)", rows)

    def tokens(self) -> tuple[int, int, int]:
        """Count the stored answers, and the tokens of their requests and of the answers."""
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
            raise InputError(f"{self.path} is damaged ({error}); delete it, and the same command asks again") from None


ALLOWANCE = 20  # Characters that an answer may be longer than the ratio allows: short sentences vary
DEFINITION = "4"
NOUNS: dict[ModelTask, str] = {"translate": "translation", "paraphrase": "paraphrase"}
QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "„": "“", "‘": "’", "«": "»", "「": "」"}
REFUSAL = re.compile(
    r"^\W*((i'?m|i am|we'?re) (very )?(sorry|afraid)|(my )?apologies|i apologi[sz]e|sorry|unfortunately)?\W*"
    r"(but )?(i|we)\W?('m| am)? ?(can ?not|can'?t|won'?t|will not|(am )?not able to|unable to|must decline)( to)? "
    r"(assist|comply|translate|paraphrase|rephrase|rewrite|provide|fulfil|generate|create|engage|process|"
    r"(help|continue)( you)? with (this|that|the|your))\b"
    r"|\bas an? (ai|artificial intelligence|(large )?language model)\b"
    r"|^\W*i('m| am) (just )?an? (ai|(large )?language model)\b",
    re.I,
)
# Text before or after an answer; each has a colon or a bracket that the sentence does not have.
PREAMBLE = re.compile(
    r"^\W*((sure|certainly|of course|okay|ok|absolutely)\b\W*)?((here|this)('s| is| are| you (go|are))\b[^:]{0,80}"
    r"|(the |my |a |an? )?(\w+ ){0,2}(translation|paraphrase|rephrasing|answer|output|sentence|version)\b[^:]{0,40}):",
    re.I,
)
# What an answer does not begin with unless the sentence or its reference does, too.
BEGINNING = re.compile(
    r"^\W*(?P<assent>(sure( thing)?|certainly|absolutely|of course|okay|ok)(?=[!.:]\s+\S))"
    r"|^\W*(?P<number>\d{1,2}[.)]\s)"
    r"|^(?P<bullet>[-–—*•#]+\s)"
    r"|^(?P<tag><\|?[a-z][\w:-]*\|?>)",  # Reasoning, with marks that nobody listed
    re.I,
)
REMARK = re.compile(
    r"(^|\W)(note|notes|explanation|literally|alternatively|alternative|alternative translation|or)\W{0,3}:", re.I
)
BRACKET = re.compile(r"[(\[](translator's )?(note|literal|lit\.|or[,:]|alternative|i\.e\.)", re.I)
MARKUP = ("```", "**", "\\boxed")


class Judge:
    """Extracts the sentence from each answer, or the reason why it is not usable."""

    def __init__(self, config: LanguageModelConfig, task: ModelTask) -> None:
        require("py3langid", "llm")
        self._config, self._noun = config, NOUNS[task]
        self._language = LanguageConfig(language=config.language)
        self._model = build_model(self._language)

    @staticmethod
    def identity(config: LanguageModelConfig) -> dict[str, Any]:
        package = versions(["py3langid"]).get("py3langid", "missing")
        return {
            "checks": DEFINITION,
            "language": config.language,
            "language_detector": f"py3langid {package}",
            "max_length_ratio": config.max_length_ratio,
            **({"reasoning_marks": list(config.reasoning_marks)} if config.reasoning_marks else {}),
        }

    def judge(
        self, sentences: Sequence[str], references: Sequence[str], answers: Sequence[Answer]
    ) -> tuple[list[str | None], list[str | None]]:
        """Extract the text of each answer, None if it is not usable, and return the texts and the reasons why not.

        `sentences` were to be translated or paraphrased; `references` mean the same in the language of the answers,
        and are the same list for paraphrases.
        """
        texts: list[str | None] = []
        reasons: list[str | None] = []
        reasoned, bare = self._without_reasoning(sentences, references, answers)
        tidy = normalise(pa.array(bare, pa.string())).to_pylist()
        for index, answer in enumerate(answers):
            both = (sentences[index], references[index])
            text = unquoted(tidy[index], both[0])
            reason = self._ending(answer, reasoned[index], text) or self._content(*both, bare[index], text)
            texts.append(None if reason else text)
            reasons.append(reason)
        good = [index for index, text in enumerate(texts) if text is not None]
        # The second half too, because a preface in the right language hides that what follows is in another.
        for place in np.flatnonzero(~self._same([texts[index] or "" for index in good])):
            texts[good[place]] = None
            reasons[good[place]] = f"answer in another language than {self._config.language}"
        return texts, reasons

    def _without_reasoning(
        self, sentences: Sequence[str], references: Sequence[str], answers: Sequence[Answer]
    ) -> tuple[list[bool], list[str]]:
        """Whether each answer contains reasoning, and its text without it."""
        reasoned, bare = [], []
        for sentence, reference, answer in zip(sentences, references, answers, strict=True):
            found, rest = split_reasoning(answer.text, self._config.marks, (sentence, reference))
            reasoned.append(found or answer.finish == "reasoning")
            bare.append(without_answer_marks(rest, (sentence, reference)))
        return reasoned, bare

    def _same(self, texts: Sequence[str]) -> np.ndarray:
        """Mark the texts [text] of the language whose second half is of it, too."""
        halves = [" ".join((words := text.split())[len(words) // 2 :]) for text in texts]
        whole, half = (
            in_language(pa.array(side, pa.string()), self._model, self._language)[0] for side in (texts, halves)
        )
        return whole & half

    def _ending(self, answer: Answer, reasoned: bool, text: str) -> str | None:
        """Why an answer is not usable because of how it ends; the first reason applies."""
        if answer.finish == "context":
            return "sentence too long for the model"
        if answer.finish in ("refusal", "content_filter"):
            return "refused by the model"
        if answer.finish == "length":
            return f"answer cut at {self._config.max_answer_tokens} tokens"
        if not text:
            return "reasoning without an answer" if reasoned else "empty answer"
        return None

    def _content(self, sentence: str, reference: str, lines: str, text: str) -> str | None:
        """Why an answer is not usable because of what it says, apart from its language; the first reason applies.

        `lines` is the answer with its line breaks, `text` is the same in one line.
        """
        if REFUSAL.search(text.replace("’", "'")) and not REFUSAL.search(reference.replace("’", "'")):
            return "refused by the model"
        if says_more(lines, text, (sentence, reference), self._config.marks):
            return f"answer with more than the {self._noun}"
        if text == sentence and text != reference:
            return "answer that repeats the source"
        short, long = sorted((len(reference), len(text)))
        if long > short * self._config.max_length_ratio + ALLOWANCE:
            return "answer of absurd length"
        return None


def unquoted(text: str, sentence: str) -> str:
    """Remove the quotes around an answer if its sentence has none."""
    if len(text) > 2 and QUOTES.get(text[0]) == text[-1] and (not sentence or sentence[0] not in QUOTES):
        inner = text[1:-1]
        if text[0] not in inner and text[-1] not in inner:
            return inner.strip()
    return text


def says_more(lines: str, text: str, sentences: Sequence[str], marks: Sequence[Mark]) -> bool:
    """Whether an answer without reasoning, in its lines and in one line, contains more than one sentence.

    Several lines are several answers, because each sentence was one line. Marks that the sentence or its reference has
    too, such as a colon, are ignored.
    """
    if len([line for line in lines.splitlines() if line.strip()]) > 1:
        return True
    if holds_marks(text, marks, sentences):
        return True
    if any(mark in text and not any(mark in sentence for sentence in sentences) for mark in MARKUP):
        return True
    begins = BEGINNING.search(text)
    if begins and not any(
        own and own.lastgroup == begins.lastgroup for own in (BEGINNING.search(each) for each in sentences)
    ):
        return True
    colon = any(mark in sentence for sentence in sentences for mark in ":：")
    bracket = any(mark in sentence for sentence in sentences for mark in "([（")
    if not colon and (PREAMBLE.search(text) or REMARK.search(text)):
        return True
    return not bracket and bool(BRACKET.search(text))
