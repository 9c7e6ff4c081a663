"""What annotators answer, the file that stores it, and answers as CSV, for spreadsheets and to merge computers.

The strength of a paraphrase has six classes, those of SemEval's semantic textual similarity, from 5 (the same) to 0
(nothing in common), folded to three labels for table 3 of ParaNMT-50M (Wieting & Gimpel 2018). Fluency has three
labels. The guidelines for annotators are in `assets/annotate/annotate.html`.
"""

from __future__ import annotations

import csv
import io
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
WAIT_SECONDS = 20.0  # Time for another program to finish writing
STRENGTHS = (0, 1, 2, 3, 4, 5)
LABELS = (1, 2, 3)
# The label [class] of each class: the top two are 3, the next is 2, the bottom three are 1.
PARAPHRASE = (1, 1, 1, 2, 3, 3)
NAME = re.compile(r"[\w][\w .'\-]*")
NAME_CHARACTERS = 40
NOTE_CHARACTERS = 2000


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
        if len(self.note) > NOTE_CHARACTERS or controls:
            raise InputError(f"a note must be text of at most {NOTE_CHARACTERS:,} characters, was {brief(self.note)}")

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


class AnswerStore:
    """The answers to one sample, in a file that several programs may use at the same time.

    Each change writes the file atomically: a kill or a power cut loses nothing that was stored.
    """

    def __init__(self, path: Path, sample: AnnotationSample) -> None:
        self.path, self._items, self._sample = path, len(sample.items), sample.checksum
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
        asked = annotator_name(name)
        return next((other for other in self.answers() if other.casefold() == asked.casefold()), asked)

    def put(self, annotator: str, item: int, answer: Rating) -> Rating:
        """Store an answer to an item on disk, and return it with its new revision and time.

        Its `revision` is that of the answer that it replaces; if another one is stored, that is `Outdated`.
        """
        return self.put_all([(annotator, item, answer)])[0]

    def put_all(self, answers: Sequence[tuple[str, int, Rating]]) -> list[Rating]:
        """Store several answers, all or none; see `put`."""
        stored = []
        with writing(self.path), FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=WAIT_SECONDS):
            found = self.answers()
            for annotator, item, answer in answers:
                if item not in range(self._items):
                    raise InputError(f"the sample has the items 0 to {self._items - 1}, not {item!r}")
                own = found.setdefault(annotator, {})
                if (former := own.get(item, Rating())).revision != answer.revision:
                    raise Outdated(former)
                changed = answer.changed or datetime.now(UTC).isoformat(timespec="seconds")
                own[item] = replace(answer, revision=answer.revision + 1, changed=changed)
                stored.append(own[item])
            ordered = {name: {str(item): own[item] for item in sorted(own)} for name, own in sorted(found.items())}
            content = as_json(_AnswersFile(self._sample, ordered))
            write_bytes(self.path, as_bytes(content))
            # So that the new name survives a power cut; Windows opens no folders.
            if os.name == "posix":
                folder = os.open(self.path.parent, os.O_RDONLY)
                os.fsync(folder)
                os.close(folder)
        return stored


DIGITS = 16  # Digits of the checksum that say which sample a line belongs to

NEEDED = ("sample", "item", "annotator", "strength", "fluency")
COLUMNS = (*NEEDED, "skipped", "paraphrase", "note", "changed", "reference", "translation")
FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")  # A spreadsheet takes a cell that begins like this for a formula
NOTHING = Rating().said  # An answer that was never given, or was taken back


def sample_mark(sample: AnnotationSample) -> str:
    """Identifier of a sample in its answers; it starts with a letter, so that spreadsheets do not read a number."""
    return f"s{sample.checksum[:DIGITS]}"


@dataclass(frozen=True)
class Imported:
    """Result of an import: number of answers that are new, replaced others, or were there already."""

    added: int
    replaced: int
    unchanged: int

    def summary(self) -> str:
        return f"{self.added} added, {self.replaced} replaced, {self.unchanged} were there"


def to_csv(sample: AnnotationSample, answers: Mapping[str, Mapping[int, Rating]]) -> str:
    """Write answers with the pairs that they are about, one line each.

    A cell of text that a spreadsheet would take for a formula has a `'` before it, which `read_csv` takes away.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for annotator, of_items in answers.items():
        for number, answer in of_items.items():
            if answer.said == NOTHING:
                continue
            item = sample.items[number]
            labels = ["" if label is None else label for label in (answer.strength, answer.fluency)]
            folded = "" if answer.paraphrase is None else answer.paraphrase
            texts = (answer.note, answer.changed, item.reference, item.translation)
            cells = [f"'{cell}" if cell.startswith(FORMULA) else cell for cell in texts]
            skipped = "yes" if answer.skipped else ""
            writer.writerow([sample_mark(sample), number, annotator, *labels, skipped, folded, *cells])
    return text.getvalue()


def read_csv(path: Path, sample: AnnotationSample) -> list[tuple[str, int, Rating]]:
    """Read answers to a sample from CSV: annotator, item and rating; lines without any answer are skipped."""
    try:
        # A spreadsheet may have put a mark of the byte order in front.
        text = read_text(path).removeprefix("\ufeff")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; expected answers as CSV") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8; save it as CSV in UTF-8") from None
    # Spreadsheets of countries with a decimal comma write semicolons.
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    found: list[tuple[str, int, Rating]] = []
    lines: dict[tuple[str, int], int] = {}
    number = 1
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        if missing := [name for name in NEEDED if name not in header]:
            raise InputError(f"no column {', '.join(missing)}; expected a header with {', '.join(NEEDED)}")
        before = reader.line_num
        for cells in reader:
            number, before = before + 1, reader.line_num
            if not any(cells):
                continue
            if len(cells) != len(header):
                raise InputError(f"expected {len(header)} cells, found {len(cells)}")
            name, item, answer = _answer(dict(zip(header, cells, strict=True)), sample)
            if answer.said == NOTHING:
                continue
            if (double := lines.setdefault((name.casefold(), item), number)) != number:
                raise InputError(f"{name} answers item {item} already in line {double}")
            found.append((name, item, answer))
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: this is not a CSV file ({error})", path=path) from None
    except InputError as error:
        raise InputError(f"{path}, line {number}: {error}", path=path) from None
    return found


def _answer(cells: Mapping[str, str], sample: AnnotationSample) -> tuple[str, int, Rating]:
    """Read the cells of one line, by column."""
    note = cells.get("note", "").replace("\r\n", "\n").removeprefix("'")
    cells = {name: cell.strip() for name, cell in cells.items()}
    mark, item = sample_mark(sample), cells["item"]
    if cells["sample"].lower() != mark:
        raise InputError(f"sample must be {mark}, was {cells['sample']!r}; answers to another sample do not fit")
    if not item.isdecimal() or int(item) >= len(sample.items):
        raise InputError(f"item must be from 0 to {len(sample.items) - 1}, was {item!r}")
    labels = {name: read_value(Rating, name, cells[name] or None) for name in ("strength", "fluency")}
    skipped = {"": False, "no": False, "yes": True}.get(cells.get("skipped", "").lower())
    if skipped is None:
        raise InputError(f"skipped must be yes or nothing, was {cells['skipped']!r}")
    answer = Rating(**labels, skipped=skipped, note=note, changed=cells.get("changed", ""))
    if (folded := cells.get("paraphrase")) and folded != str(answer.paraphrase):
        raise InputError(f"paraphrase must be {answer.paraphrase}, as strength says, was {folded!r}")
    return annotator_name(cells["annotator"]), int(item), answer


def add_answers(
    store: AnswerStore, answers: list[tuple[str, int, Rating]], path: Path, *, replace_others: bool
) -> Imported:
    """Add the answers of a file to the stored ones, all or none; different answers are replaced only on request."""
    known = store.answers()
    spelt = {name.casefold(): name for name in known}
    new: list[tuple[str, int, Rating]] = []
    added = replaced = unchanged = 0
    for given, item, answer in answers:
        name = spelt.setdefault(given.casefold(), given)
        stored = known.get(name, {}).get(item, Rating())
        if stored.revision and stored.said == answer.said:
            unchanged += 1
            continue
        if stored.said != NOTHING:
            if not replace_others:
                raise InputError(
                    f"{path}: {name} has another answer to item {item} here ({_said(stored)}) than in that file "
                    f"({_said(answer)}); `replace` takes those of the file"
                )
            replaced += 1
        else:
            added += 1
        new.append((name, item, replace(answer, revision=stored.revision)))
    try:
        store.put_all(new)
    except Outdated:
        raise InputError(f"{path}: somebody answered in the meantime, so nothing was added; import it again") from None
    return Imported(added, replaced, unchanged)


def _said(answer: Rating) -> str:
    if answer.skipped:
        return "skipped"
    strength, fluency = ("none" if label is None else label for label in (answer.strength, answer.fluency))
    return f"strength {strength}, fluency {fluency}" + (", a note" if answer.note else "")
