"""What annotators answer, the file that stores it, and answers as CSV, for spreadsheets and to merge computers.

The strength of a paraphrase has six classes, those of SemEval's semantic textual similarity, from 5 (the same) to 0
(nothing in common), folded to three labels for table 3 of ParaNMT-50M (Wieting & Gimpel 2018). Fluency has three
labels. The guidelines for annotators are in `assets/annotate/annotate.html`.
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
        super().__post_init__()
        if self.skipped and not (self.strength is None and self.fluency is None):
            raise InputError("a pair that is skipped has neither strength nor fluency")
        # Text files cannot hold lone surrogates.
        controls = any(unicodedata.category(each) in ("Cc", "Cs") and each not in "\n\t" for each in self.note)
        if len(self.note) > 2000 or controls:
            raise InputError(f"a note must be text of at most 2,000 characters, was {brief(self.note)}")

    @property
    def paraphrase(self) -> int | None:
        """The strength folded to a label: 3 for the top two classes, 2 for the next, 1 for the bottom three."""
        return None if self.strength is None else (1, 1, 1, 2, 3, 3)[self.strength]

    @property
    def is_empty(self) -> bool:
        """Whether it was never given, or taken back."""
        return self.content == Rating().content

    @property
    def done(self) -> bool:
        """Whether the rating is complete: both labels are given, or the pair is skipped."""
        return self.skipped or (self.strength is not None and self.fluency is not None)

    @property
    def content(self) -> tuple[int | None, int | None, bool, str]:
        """The rating without its revision and time."""
        return self.strength, self.fluency, self.skipped, self.note


def annotator_name(name: object) -> str:
    """Normalise the name of an annotator: composed characters, single spaces."""
    text = " ".join(unicodedata.normalize("NFC", name).split()) if isinstance(name, str) else ""
    if not re.fullmatch(r"\w[\w .'\-]{0,39}", text):
        raise InputError(
            "the name of an annotator must have from 1 to 40 letters, digits, spaces or . - ' and begin with a letter "
            f"or digit, was {brief(name)}"
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


@dataclass(frozen=True)
class Imported:
    """Result of an import: number of answers that are new, replaced others, or were there already."""

    added: int
    replaced: int
    unchanged: int

    def summary(self) -> str:
        return f"{self.added} added, {self.replaced} replaced, {self.unchanged} were there"


# An annotator, an item and the rating
Answer = tuple[str, int, Rating]


class AnswerStore:
    """The answers to one sample, in a file that several programs may use at the same time.

    Each change writes the file atomically: a kill or a power cut loses nothing that was stored.

    Args:
        path: The file.
        sample: The sample.
        wait: Seconds that another program may take to finish writing.
    """

    def __init__(self, path: Path, sample: AnnotationSample, *, wait: float = 20.0) -> None:
        self.path = path
        self._items = len(sample.items)
        self._sample = sample.checksum
        self.wait = wait
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
        return _first_spelling(annotator_name(name), self.answers())

    def put(self, annotator: str, item: int, answer: Rating) -> Rating:
        """Store an answer to an item on disk, and return it with its new revision and time.

        Its `revision` is that of the answer that it replaces; if another one is stored, that is `Outdated`.
        """
        if item not in range(self._items):
            raise InputError(f"the sample has the items 0 to {self._items - 1}, not {item!r}")
        with self._changing() as answers:
            own = answers.setdefault(annotator, {})
            stored = own.get(item, Rating())
            if stored.revision != answer.revision:
                raise Outdated(stored)
            own[item] = _revised(answer, stored)
        return own[item]

    def merge(self, given: Sequence[Answer], *, replace: bool) -> Imported:
        """Add answers, all or none; answers that differ from stored ones replace them, or are refused."""
        added = replaced = unchanged = 0
        with self._changing() as answers:
            for name, item, answer in given:
                annotator = _first_spelling(name, answers)
                own = answers.setdefault(annotator, {})
                stored = own.get(item, Rating())
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
                own[item] = _revised(answer, stored)
        return Imported(added, replaced, unchanged)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, dict[int, Rating]]]:
        """Give all answers, and write what was changed in them; after an error nothing is written."""
        with writing(self.path), FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=self.wait):
            answers = self.answers()
            yield answers
            ordered = {name: {str(item): own[item] for item in sorted(own)} for name, own in sorted(answers.items())}
            write_bytes(self.path, as_bytes(as_json(_AnswersFile(self._sample, ordered))))
            # So that the new name survives a power cut; Windows opens no folders.
            if os.name == "posix":
                folder = os.open(self.path.parent, os.O_RDONLY)
                os.fsync(folder)
                os.close(folder)


def _first_spelling(name: str, answers: Mapping[str, object]) -> str:
    for other in answers:
        if other.casefold() == name.casefold():
            return other
    return name


def _revised(answer: Rating, former: Rating) -> Rating:
    changed = answer.changed or datetime.now(UTC).isoformat(timespec="seconds")
    return dataclasses.replace(answer, revision=former.revision + 1, changed=changed)


def _in_words(answer: Rating) -> str:
    if answer.skipped:
        return "skipped"
    note = ", a note" if answer.note else ""
    return f"strength {answer.strength}, fluency {answer.fluency}{note}"


NEEDED = ("sample", "item", "annotator", "strength", "fluency")


def sample_mark(sample: AnnotationSample) -> str:
    """Identifier of a sample in its answers; it starts with a letter, so that spreadsheets do not read a number."""
    return f"s{sample.checksum[:16]}"


def to_csv(sample: AnnotationSample, answers: Mapping[str, Mapping[int, Rating]]) -> str:
    """Write answers with the pairs that they are about, one line each.

    A cell of text that a spreadsheet would take for a formula has a `'` before it, which `read_csv` takes away.
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
    """Read answers to a sample from CSV; lines without any answer are skipped."""
    try:
        # A spreadsheet may have put a byte order mark in front.
        text = read_text(path).removeprefix("\ufeff")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; expected answers as CSV") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8; save it as CSV in UTF-8") from None
    # Spreadsheets of countries with a decimal comma write semicolons.
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        return list(_read_rows(reader, sample))
    except (InputError, csv.Error) as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}", path=path) from None


def _read_rows(rows: Iterator[list[str]], sample: AnnotationSample) -> Iterator[Answer]:
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
    """Read one line, given by column."""
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
