"""Answers as CSV: for a spreadsheet, and to merge answers from several computers."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from paranmt_hf.apps.annotate.answers import PARAPHRASE, AnswerStore, Outdated, Rating, annotator_name
from paranmt_hf.apps.annotate.sample import AnnotationSample
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import read_text

# Digits of the checksum that say which sample a line belongs to.
DIGITS = 16

NEEDED = ("sample", "item", "annotator", "strength", "fluency")
COLUMNS = (*NEEDED, "skipped", "paraphrase", "note", "changed", "reference", "translation")
# A spreadsheet takes a cell that begins like this for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")
# An answer that was never given, or was taken back.
NOTHING = Rating().said


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
        """The numbers."""
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
            writer.writerow(
                [sample_mark(sample), number, annotator, *labels, "yes" if answer.skipped else "", folded]
                + [_safe(cell) for cell in (answer.note, answer.changed, item.reference, item.translation)]
            )
    return text.getvalue()


def _safe(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def read_csv(path: Path, sample: AnnotationSample) -> list[tuple[str, int, Rating]]:
    """Read answers to a sample from CSV: annotator, item and rating; lines without any answer are skipped."""
    try:
        # A spreadsheet may have put a mark of the byte order in front.
        text = read_text(path).removeprefix("\ufeff")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}; expected answers as CSV") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8; save it as CSV in UTF-8") from None
    first_line = text.partition("\n")[0]
    # Spreadsheets of countries with a decimal comma write semicolons.
    delimiter = max(",;\t", key=first_line.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    found: list[tuple[str, int, Rating]] = []
    lines: dict[tuple[str, int], int] = {}
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        if missing := [name for name in NEEDED if name not in header]:
            raise InputError(
                f"{path}, line 1: no column {', '.join(missing)}; expected a header with {', '.join(NEEDED)}"
            )
        before = reader.line_num
        for cells in reader:
            number, before = before + 1, reader.line_num
            if not any(cells):
                continue
            if len(cells) != len(header):
                raise InputError(f"{path}, line {number}: expected {len(header)} cells, found {len(cells)}")
            name, item, answer = _Line(path, number, dict(zip(header, cells, strict=True)), sample).parse()
            if answer.said == NOTHING:
                continue
            if (double := lines.setdefault((name.casefold(), item), number)) != number:
                raise InputError(f"{path}, line {number}: {name} answers item {item} already in line {double}")
            found.append((name, item, answer))
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: this is not a CSV file ({error})") from None
    return found


class _Line:
    """The cells of one line by column."""

    def __init__(self, path: Path, number: int, cells: Mapping[str, str], sample: AnnotationSample) -> None:
        self.path, self.number, self.cells, self.sample = path, number, cells, sample

    def parse(self) -> tuple[str, int, Rating]:
        mark = sample_mark(self.sample)
        if self._cell("sample").lower() != mark:
            raise self._wrong("sample", f"{mark}, for answers to another sample do not fit")
        item = self._number("item", 0, len(self.sample.items) - 1)
        if item is None:
            raise self._wrong("item", "the index of a pair")
        strength, fluency = self._number("strength", 0, 5), self._number("fluency", 1, 3)
        skipped = self._choice("skipped", {"": False, "no": False, "yes": True})
        folded = self._number("paraphrase", 1, 3)
        if folded is not None and (strength is None or PARAPHRASE[strength] != folded):
            raise self._wrong("paraphrase", "nothing" if strength is None else f"{PARAPHRASE[strength]}, as strength")
        changed = self._cell("changed")
        if changed:
            try:
                datetime.fromisoformat(changed)
            except ValueError:
                raise self._wrong("changed", "a time such as 2026-11-22T10:00:00+00:00") from None
        note = self.cells.get("note", "").replace("\r\n", "\n")
        note = note[1:] if note.startswith("'") else note
        try:
            answer = Rating(strength, fluency, skipped, note, changed=changed)
            return annotator_name(self._cell("annotator")), item, answer
        except InputError as error:
            raise InputError(f"{self.path}, line {self.number}: {error}") from None

    def _cell(self, column: str) -> str:
        return self.cells.get(column, "").strip()

    def _number(self, column: str, low: int, high: int) -> int | None:
        text = self._cell(column)
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high):
            raise self._wrong(column, f"a whole number from {low} to {high}, or nothing")
        return int(text)

    def _choice(self, column: str, choices: Mapping[str, bool]) -> bool:
        text = self._cell(column).lower()
        if text not in choices:
            raise self._wrong(column, "yes or nothing")
        return choices[text]

    def _wrong(self, column: str, expected: str) -> InputError:
        found = self._cell(column)
        shown = repr(found if len(found) <= 60 else f"{found[:60]}...") if found else "nothing"
        return InputError(f"{self.path}, line {self.number}, column {column}: expected {expected}, found {shown}")


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
    return f"strength {_or_none(answer.strength)}, fluency {_or_none(answer.fluency)}" + (
        ", a note" if answer.note else ""
    )


def _or_none(label: int | None) -> str:
    return "none" if label is None else str(label)
