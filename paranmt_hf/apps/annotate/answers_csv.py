"""Answers as CSV: for a spreadsheet, and to merge answers from several computers."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from paranmt_hf.apps.annotate.answers import AnswerStore, Outdated, Rating, annotator_name
from paranmt_hf.apps.annotate.sample import AnnotationSample
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import read_text
from paranmt_hf.util.settings import read_value

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
