"""Answers of annotators, the file that stores them, and answers as CSV, for spreadsheets and other computers.

The strength of a paraphrase has the six classes of SemEval's semantic textual similarity, from 5 (the same) to 0
(nothing in common). For table 3 of ParaNMT-50M (Wieting & Gimpel 2018) they are folded to three labels. Fluency has
three labels. The guidelines for annotators are in `assets/annotate/annotate.html`.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from filelock import FileLock

from paranmt_hf.apps.annotate.sample import AnnotationSample
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import read_text, write_bytes, writing
from paranmt_hf.util.markers import Range
from paranmt_hf.util.records import as_bytes, as_json, from_json, read_json
from paranmt_hf.util.settings import Settings, read_value
from paranmt_hf.util.wording import brief

ANSWERS_FILE = "answers.json"


@dataclass(frozen=True)
class Rating(Settings):
    """The rating of a pair by one person."""

    # Strength of the paraphrase, from 0 (nothing in common) to 5 (the same); None until it is given
    strength: Annotated[int | None, Range(at_least=0, at_most=5)] = None
    # Fluency of the translation: 3 for no error, 2 for one or two, 1 for more or unnatural; None until it is given
    fluency: Annotated[int | None, Range(at_least=1, at_most=3)] = None
    skipped: bool = False  # Whether the person skipped the pair; strength and fluency are None then
    note: str = ""  # A remark of the person
    revision: Annotated[int, Range(at_least=0)] = 0  # How often the rating was stored; 0 if never
    changed: str = ""  # Time in UTC at which it was last stored, in the format of ISO 8601; empty if never

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.skipped and not (self.strength is None and self.fluency is None):
            raise InputError("a pair that is skipped has neither strength nor fluency")
        # Text files cannot hold lone surrogates.
        controls = any(unicodedata.category(each) in ("Cc", "Cs") and each not in "\n\t" for each in self.note)
        if len(self.note) > 2000 or controls:
            raise InputError(f"a note must be text of at most 2,000 characters, was {brief(self.note)}")

    @property
    def paraphrase(self) -> int | None:
        """The strength as one of three labels: 3 for the classes 5 and 4, 2 for 3, 1 for 2 to 0; None until given."""
        return None if self.strength is None else (1, 1, 1, 2, 3, 3)[self.strength]

    @property
    def is_empty(self) -> bool:
        """Whether the rating was never given, or was taken back."""
        return self.content == Rating().content

    @property
    def done(self) -> bool:
        """Whether the rating is complete: both labels are given, or the pair is skipped."""
        return self.skipped or (self.strength is not None and self.fluency is not None)

    @property
    def content(self) -> tuple[int | None, int | None, bool, str]:
        """The answers of the person: strength, fluency, skipped and note, without revision and time."""
        return self.strength, self.fluency, self.skipped, self.note


def annotator_name(name: object) -> str:
    """Normalise the name of an annotator (composed Unicode characters, single spaces), and reject invalid names."""
    text = " ".join(unicodedata.normalize("NFC", name).split()) if isinstance(name, str) else ""
    if not re.fullmatch(r"\w[\w .'\-]{0,39}", text):
        raise InputError(
            "the name of an annotator must have from 1 to 40 letters, digits, spaces or . - ' and begin with a letter "
            f"or digit, was {brief(name)}"
        )
    return text


class Outdated(Exception):
    """An answer was based on a rating that has been changed since, in another window or by an import.

    Args:
        stored: The current rating.
    """

    def __init__(self, stored: Rating) -> None:
        super().__init__("the answer was changed elsewhere meanwhile")
        self.stored = stored


@dataclass(frozen=True)
class _AnswersFile:
    """The content of `answers.json`: the checksum of the sample, and ratings by annotator and index of the pair."""

    sample: str
    answers: dict[str, dict[str, Rating]]


@dataclass(frozen=True)
class Imported:
    """The result of an import: numbers of answers that are new, that replaced others, and that were there already."""

    added: int
    replaced: int
    unchanged: int

    def summary(self) -> str:
        return f"{self.added} added, {self.replaced} replaced, {self.unchanged} were there"


# Name of the annotator, index of the pair in the sample, and the rating
Answer = tuple[str, int, Rating]


class AnswerStore:
    """The answers to one sample, in a file that several programs may use at the same time.

    Each change writes the file atomically, so that a kill or a power cut loses nothing that was stored.

    Args:
        path: The file of the answers; it may not exist yet.
        sample: The sample. A file with answers to another sample is rejected.
        wait: Seconds to wait for another program that is writing the file, before that is an error.
    """

    def __init__(self, path: Path, sample: AnnotationSample, *, wait: float = 20.0) -> None:
        self.path = path
        self._items = len(sample.items)
        self._sample = sample.checksum
        self.wait = wait
        self.answers()

    def answers(self) -> dict[str, dict[int, Rating]]:
        """Read all ratings, by the name of the annotator and the index of the pair."""
        if not self.path.exists():
            return {}
        file = from_json(_AnswersFile, read_json(self.path, "answers to a sample"), self.path)
        if file.sample != self._sample:
            raise InputError(
                f"{self.path} holds answers to another sample (checksum {file.sample[:12]}, the sample next to it has "
                f"{self._sample[:12]}); put it back next to its own sample, or move it away",
                path=self.path,
            )
        return {
            name: {int(item): answer for item, answer in of_items.items()} for name, of_items in file.answers.items()
        }

    def name(self, name: object) -> str:
        """Return an annotator's name as it was first stored, with case ignored: `Ada` for `ADA`."""
        return _first_spelling(annotator_name(name), self.answers())

    def put(self, annotator: str, item: int, answer: Rating) -> Rating:
        """Store a rating on disk, and return it with its new revision and time.

        Args:
            annotator: Name of the annotator.
            item: Index of the pair in the sample.
            answer: The rating. Its `revision` is that of the stored rating that it is to replace.

        Raises:
            Outdated: If the stored rating has another revision.
        """
        if item not in range(self._items):
            raise InputError(f"the sample has the items 0 to {self._items - 1}, not {item!r}")
        with self._changing() as answers:
            ratings = answers.setdefault(annotator, {})
            stored = ratings.get(item, Rating())
            if stored.revision != answer.revision:
                raise Outdated(stored)
            ratings[item] = _revised(answer, stored)
        return ratings[item]

    def merge(self, given: Sequence[Answer], *, replace: bool) -> Imported:
        """Add answers, all or none.

        Args:
            given: The answers.
            replace: Whether answers replace stored ones that differ. Otherwise such an answer is an error, and none is
                added.
        """
        added = replaced = unchanged = 0
        with self._changing() as answers:
            for name, item, answer in given:
                annotator = _first_spelling(name, answers)
                ratings = answers.setdefault(annotator, {})
                stored = ratings.get(item, Rating())
                if stored.revision and stored.content == answer.content:
                    unchanged += 1
                    continue
                if stored.is_empty:
                    added += 1
                elif replace:
                    replaced += 1
                else:
                    raise InputError(
                        f"{annotator} has another answer to item {item} here ({_in_words(stored)}; given is "
                        f"{_in_words(answer)}); `replace` takes those that are given",
                        option="replace",
                    )
                ratings[item] = _revised(answer, stored)
        return Imported(added, replaced, unchanged)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, dict[int, Rating]]]:
        """Give a `with` block all answers for changing, and then write them; after an error nothing is written."""
        with writing(self.path), FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=self.wait):
            answers = self.answers()
            yield answers
            ordered = {
                name: {str(item): ratings[item] for item in sorted(ratings)}
                for name, ratings in sorted(answers.items())
            }
            write_bytes(self.path, as_bytes(as_json(_AnswersFile(self._sample, ordered))))
            # The folder is flushed so that the new file survives a power cut. Windows cannot open folders.
            if os.name == "posix":
                folder = os.open(self.path.parent, os.O_RDONLY)
                os.fsync(folder)
                os.close(folder)


def _first_spelling(name: str, answers: Mapping[str, object]) -> str:
    """Return the name of an annotator as it is in `answers`, with case ignored; unchanged if it is not there."""
    for other in answers:
        if other.casefold() == name.casefold():
            return other
    return name


def _revised(answer: Rating, former: Rating) -> Rating:
    """Return a rating that replaces a former one, with the next revision and, if it has none, the current time."""
    changed = answer.changed or datetime.now(UTC).isoformat(timespec="seconds")
    return dataclasses.replace(answer, revision=former.revision + 1, changed=changed)


def _in_words(answer: Rating) -> str:
    """Describe a rating for an error."""
    if answer.skipped:
        return "skipped"
    note = ", a note" if answer.note else ""
    return f"strength {answer.strength}, fluency {answer.fluency}{note}"


NEEDED = ("sample", "item", "annotator", "strength", "fluency")  # Columns that a CSV file of answers must have


def sample_mark(sample: AnnotationSample) -> str:
    """Return the identifier of a sample in CSV files of answers.

    It starts with a letter, so that spreadsheets do not take it for a number.
    """
    return f"s{sample.checksum[:16]}"


def to_csv(sample: AnnotationSample, answers: Mapping[str, Mapping[int, Rating]]) -> str:
    """Format answers as CSV: a line for each, with the sentences of its pair.

    Text that a spreadsheet would take for a formula gets a `'` before it, which `read_csv` removes.

    Args:
        sample: The sample.
        answers: Ratings by the name of the annotator and the index of the pair; empty ones are left out.
    """
    text = io.StringIO()
    columns = (*NEEDED, "skipped", "paraphrase", "note", "changed", "reference", "translation")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for annotator, of_items in answers.items():
        for number, answer in of_items.items():
            if answer.is_empty:
                continue
            item = sample.items[number]
            texts = {
                "note": answer.note,
                "changed": answer.changed,
                "reference": item.reference,
                "translation": item.translation,
            }
            for name, cell in texts.items():
                if cell.startswith(("=", "+", "-", "@", "\t", "\r", "'")):
                    texts[name] = f"'{cell}"
            labels = {"strength": answer.strength, "fluency": answer.fluency, "paraphrase": answer.paraphrase}
            row = {"sample": sample_mark(sample), "item": number, "annotator": annotator, **labels, **texts}
            writer.writerow({**row, "skipped": "yes" if answer.skipped else ""})
    return text.getvalue()


def read_csv(path: Path, sample: AnnotationSample) -> list[Answer]:
    """Read answers to a sample from a CSV file; lines without any answer are skipped."""
    try:
        # Some spreadsheets write a byte order mark at the start.
        text = read_text(path).removeprefix("\ufeff")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; expected answers as CSV") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8; save it as CSV in UTF-8") from None
    # Spreadsheets write semicolons between cells in countries with a decimal comma.
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return list(_read_rows(reader, sample))
    except (InputError, csv.Error) as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}", path=path) from None


def _read_rows(rows: Iterator[list[str]], sample: AnnotationSample) -> Iterator[Answer]:
    """Yield the answers in the cells of a CSV file, whose first line is a header; reject two answers to one pair."""
    header = [name.strip().lower() for name in next(rows, [])]
    missing = [name for name in NEEDED if name not in header]
    if missing:
        raise InputError(f"no column {', '.join(missing)}; expected a header with {', '.join(NEEDED)}")
    known = set()
    for cells in rows:
        if not any(cells):
            continue
        if len(cells) != len(header):
            raise InputError(f"expected {len(header)} cells, found {len(cells)}")
        name, item, answer = _read_row(dict(zip(header, cells, strict=True)), sample)
        if answer.is_empty:
            continue
        if (name.casefold(), item) in known:
            raise InputError(f"{name} answers item {item} already in a line before")
        known.add((name.casefold(), item))
        yield name, item, answer


def _read_row(texts: Mapping[str, str], sample: AnnotationSample) -> Answer:
    """Read an answer from the cells of a line, given by the names of their columns."""
    cells = {name: cell.strip() for name, cell in texts.items()}
    mark = sample_mark(sample)
    if cells["sample"].lower() != mark:
        raise InputError(f"sample must be {mark}, was {cells['sample']!r}; answers to another sample do not fit")
    if not cells["item"].isdecimal() or int(cells["item"]) >= len(sample.items):
        raise InputError(f"item must be from 0 to {len(sample.items) - 1}, was {cells['item']!r}")
    skipped = cells.get("skipped", "").lower()
    if skipped not in ("", "no", "yes"):
        raise InputError(f"skipped must be yes or nothing, was {skipped!r}")
    answer = Rating(
        strength=read_value(Rating, "strength", cells["strength"] or None),
        fluency=read_value(Rating, "fluency", cells["fluency"] or None),
        skipped=skipped == "yes",
        note=texts.get("note", "").replace("\r\n", "\n").removeprefix("'"),
        changed=cells.get("changed", ""),
    )
    folded = cells.get("paraphrase")
    if folded and folded != str(answer.paraphrase):
        raise InputError(f"paraphrase must be {answer.paraphrase}, as strength says, was {folded!r}")
    return annotator_name(cells["annotator"]), int(cells["item"]), answer
