"""Read the files of transfer tasks, as their authors published them, in SentEval's folders."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.pair_set import parse_sentence, read_content, read_lines
from paranmt_hf.util.files import check_regular

TaskName = Literal["MR", "CR", "SUBJ", "MPQA", "SST2", "SST5", "TREC", "MRPC", "SICK-R", "SICK-E"]
TASKS: tuple[TaskName, ...] = get_args(TaskName)
Split = Literal["positive", "negative", "train", "dev", "test"]
# How a task is evaluated:
# - `nested`: classification, with nested cross-validation over all items;
# - `train`: classification, with cross-validation on the training items to choose the penalty;
# - `dev`: classification, with development items to choose the penalty;
# - `relatedness`: regression, with development items to end the training.
Way = Literal["nested", "train", "dev", "relatedness"]
Row = tuple[tuple[str, ...], float]  # The sentences of a line, and its label

_QUESTIONS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
JUDGEMENTS = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")


@dataclass(frozen=True)
class TaskPart:
    """The items of a task, or of one of its splits."""

    sides: tuple[list[str], ...]  # Sentences [side][item]; a task about single sentences has one side, about pairs two
    labels: np.ndarray  # Classes from 0 on [item], int64; for SICK-R, relatedness from 1 to 5 [item], float64

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def sentences(self) -> list[str]:
        """The sentences of all sides, one side after the other."""
        return list(chain.from_iterable(self.sides))


@dataclass(frozen=True)
class TransferTask:
    """A transfer task, such as `MR`: its items, and how it is evaluated."""

    name: str
    way: Way
    parts: Mapping[str, TaskPart]  # Items by part: `all` for a nested task, else `train`, `test` and perhaps `dev`
    files: tuple[Path, ...]  # Files that the items were read from
    notes: tuple[str, ...] = ()  # Sentences that a reader of the task's result must know

    @property
    def sentences(self) -> list[str]:
        """The sentences of all parts."""
        return list(chain.from_iterable(part.sentences for part in self.parts.values()))

    @property
    def checksum(self) -> str:
        """SHA-256 of sentences and labels, in hexadecimal."""
        digest = hashlib.sha256()
        for part in self.parts.values():
            digest.update(np.ascontiguousarray(part.labels, np.float64).tobytes())
            digest.update("".join(f"{sentence}\n" for sentence in part.sentences).encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class _Layout:
    """Where the files of a task are, and how their lines are read."""

    way: Way  # How the task is evaluated
    # Possible paths of the file of each split, below the folder of all tasks
    files: Mapping[Split, tuple[str, ...]]
    counts: Mapping[str, int]  # Number of items of each part in complete files
    # Pattern of a line, with a group `label` and a group for each sentence: `only`, or `first` and `second`. If it is
    # None, a line is a sentence, and its split is its label.
    line: re.Pattern[str] | None = None
    expected: str = ""  # What a line holds, for errors
    classes: tuple[str, ...] = ()  # Labels in the order of their classes; if empty, labels are numbers
    header: tuple[str, ...] = ()  # Column names in the first line of each file; empty if there is no such line

    def parse(self, line: str, where: str) -> Row:
        """Return the sentences and the label of a line; `where` is its file and number, for errors."""
        if self.line is None:
            # CR has lines without a word, which SentEval's encoders read as a full stop.
            return (" ".join(line.split()) or ".",), 0
        found = self.line.fullmatch(line)
        if found is None:
            raise InputError(f"{where}: expected {self.expected}, found {line[:60]!r}; is it the original file?")
        sides = {name: text for name, text in found.groupdict().items() if name != "label"}
        sentences = tuple(parse_sentence(text, where, f"the {name} sentence's place") for name, text in sides.items())
        label = found["label"]
        return sentences, self.classes.index(label) if self.classes else float(label)


def read_tasks(folder: Path | str, names: Sequence[str] | None = None) -> tuple[list[TransferTask], list[str]]:
    """Read transfer tasks from a folder in SentEval's layout (`MR/rt-polarity.pos`, `TREC/train_5500.label` etc.).

    Args:
        folder: Folder of the tasks' folders.
        names: Names of the tasks to read, which must be in the folder; all that are in it if None or empty.

    Returns:
        The tasks, and the names of the tasks that are not in the folder.
    """
    folder = Path(folder).expanduser()
    check_regular(folder)
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; expected one with transfer tasks in SentEval's layout")
    if unknown := [name for name in names or () if name not in TASKS]:
        raise InputError(f"there is no transfer task {unknown[0]!r}; the tasks are {', '.join(TASKS)}")
    found, missing = [], []
    for name in names or TASKS:
        task = _read_task(name, folder)
        if task is not None:
            found.append(task)
        elif names:
            expected = next(iter(_LAYOUTS[name].files.values()))
            raise InputError(f"{folder} does not hold {name}: expected {' or '.join(expected)} in it")
        else:
            missing.append(name)
    if not found:
        raise InputError(
            f"{folder} holds no transfer task: expected folders such as MR, CR, TREC, with MR/rt-polarity.pos and the "
            "like, as SentEval has them"
        )
    return found, missing


def _read_task(name: str, folder: Path) -> TransferTask | None:
    """Read a task; None if none of its files exists. Raises `InputError` if only some of them exist."""
    layout = _LAYOUTS[name]
    files: dict[Split, Path] = {}
    missing = []
    for split, options in layout.files.items():
        if there := [folder / option for option in options if (folder / option).exists()]:
            files[split] = there[0]
        else:
            missing.append(" or ".join(options))
    if not files:
        return None
    if missing:
        beside = next(iter(files.values())).relative_to(folder)
        raise InputError(f"{folder} holds no {missing[0]}, but {beside}; get the files of {name} again")
    splits = {split: _read_rows(path, layout) for split, path in files.items()}
    if layout.way == "nested":
        rows: list[Row] = []
        for split, split_rows in splits.items():
            rows += [(sentences, float(split == "positive")) for sentences, _ in split_rows]
        parts = {"all": _part(rows, layout)}
    else:
        parts = {str(split): _part(rows, layout) for split, rows in splits.items()}
    counts = {part: len(parts[part]) for part in layout.counts}
    notes: list[str] = []
    if counts != layout.counts:
        for path in files.values():
            content = read_content(path)
            if not content.endswith(b"\n"):
                number = content.count(b"\n") + 1
                raise InputError(f"{path}, line {number}: the file ends within it, so it is cut off; get it again")
        found, expected = (" + ".join(f"{count:,}" for count in each.values()) for each in (counts, layout.counts))
        notes.append(
            f"{name} has {found} items where {expected} are expected, so it is not comparable with published figures."
        )
    return TransferTask(name, layout.way, parts, tuple(files.values()), tuple(notes))


def read_relatedness(path: Path) -> list[Row]:
    """Read the sentence pairs of a file of SICK, with their relatedness scores from 1 to 5."""
    return _read_rows(path, _LAYOUTS["SICK-R"])


def _read_rows(path: Path, layout: _Layout) -> list[Row]:
    """Read the sentences and the label of each line of a file, after checking its header."""
    lines = read_lines(path, or_latin1=True)
    while layout.line is not None and not lines[-1].strip():
        # Blank lines at the end of a file are not items. Where a line is only a sentence, they are items.
        lines.pop()
    first = 1
    if layout.header:
        if tuple(lines[0].split("\t")) != layout.header:
            raise InputError(
                f"{path}, line 1: expected the header {' '.join(layout.header)!r} separated by tabs, found "
                f"{lines[0][:60]!r}; is it the original file?"
            )
        first = 2
    rows = [layout.parse(line, f"{path}, line {number}") for number, line in enumerate(lines[first - 1 :], first)]
    if not rows:
        raise InputError(f"{path} holds nothing below its header; get the file again")
    return rows


def _part(rows: list[Row], layout: _Layout) -> TaskPart:
    """Make a part of rows, sorted by length as in SentEval, so that cross-validation has the same folds as there."""
    rows = sorted(rows, key=lambda row: (*(len(sentence.split()) for sentence in row[0]), row[1]))
    items, labels = zip(*rows, strict=True)
    kind = np.float64 if layout.way == "relatedness" else np.int64
    return TaskPart(tuple(map(list, zip(*items, strict=True))), np.array(labels, kind))


# Headers of MRPC and SICK.
_MRPC = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
_SICK = ("pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment")
# Pattern of a cell between tabs.
_CELL = r"[^\t]*"
_SICK_PAIR = rf"{_CELL}\t(?P<first>{_CELL})\t(?P<second>{_CELL})\t"


def _polarity(positive: tuple[str, ...], negative: tuple[str, ...], count: int) -> _Layout:
    """Return the layout of a task with a file of positive and a file of negative sentences, given their paths."""
    return _Layout("nested", {"positive": positive, "negative": negative}, {"all": count})


def _sst(folder: str, counts: tuple[int, int, int], line: str, expected: str, classes: tuple[str, ...]) -> _Layout:
    """Return the layout of a task of SST; `counts` are the numbers of items of train, dev and test."""
    splits: tuple[Split, ...] = ("train", "dev", "test")
    files: dict[Split, tuple[str, ...]] = {split: (f"SST/{folder}/sentiment-{split}",) for split in splits}
    return _Layout("dev", files, dict(zip(splits, counts, strict=True)), re.compile(line), expected, classes)


def _sick(way: Way, line: str, expected: str, classes: tuple[str, ...] = ()) -> _Layout:
    """Return the layout of a task of SICK; `line` is the pattern of the columns after the two sentences."""
    files: dict[Split, tuple[str, ...]] = {
        "train": ("SICK/SICK_train.txt",),
        "dev": ("SICK/SICK_trial.txt",),
        "test": ("SICK/SICK_test_annotated.txt",),
    }
    whole = f"{len(_SICK)} columns with tabs between, with {expected}"
    counts = {"train": 4500, "dev": 500, "test": 4927}
    return _Layout(way, files, counts, re.compile(_SICK_PAIR + line), whole, classes, _SICK)


# Layouts by the name of the task. SentEval's file names come first, then those that the files have elsewhere.
_LAYOUTS: Mapping[str, _Layout] = {
    "MR": _polarity(("MR/rt-polarity.pos",), ("MR/rt-polarity.neg",), 10662),
    "CR": _polarity(("CR/custrev.pos",), ("CR/custrev.neg",), 3775),
    "SUBJ": _polarity(
        ("SUBJ/subj.objective", "SUBJ/plot.tok.gt9.5000"), ("SUBJ/subj.subjective", "SUBJ/quote.tok.gt9.5000"), 10000
    ),
    "MPQA": _polarity(("MPQA/mpqa.pos",), ("MPQA/mpqa.neg",), 10606),
    # Lines such as: sentence, tab, 1
    "SST2": _sst(
        "binary", (67349, 872, 1821), r"(?P<only>.*)\t(?P<label>[01])\s*", "a sentence, a tab and 0 or 1", ("0", "1")
    ),
    "SST5": _sst(
        "fine",
        (8544, 1101, 2210),
        r"(?P<label>[0-4]) (?P<only>.*)",
        "a class from 0 to 4, a blank and a sentence",
        ("0", "1", "2", "3", "4"),
    ),
    # Lines such as: NUM:date When was he born ?
    "TREC": _Layout(
        "train",
        {"train": ("TREC/train_5500.label", "TREC/TREC.train"), "test": ("TREC/TREC_10.label", "TREC/TREC.test")},
        {"train": 5452, "test": 500},
        re.compile(rf"(?P<label>{'|'.join(_QUESTIONS)}):[^ ]* (?P<only>.*)"),
        f"{', '.join(_QUESTIONS)}, a colon, a finer class, a blank and a sentence",
        _QUESTIONS,
    ),
    "MRPC": _Layout(
        "train",
        {"train": ("MRPC/msr_paraphrase_train.txt",), "test": ("MRPC/msr_paraphrase_test.txt",)},
        {"train": 4076, "test": 1725},
        re.compile(rf"\s*(?P<label>[01])\s*\t{_CELL}\t{_CELL}\t(?P<first>{_CELL})\t(?P<second>{_CELL})"),
        f"{len(_MRPC)} columns with tabs between, with 0 or 1 in the first",
        ("0", "1"),
        _MRPC,
    ),
    "SICK-R": _sick(
        "relatedness",
        rf"\s*(?P<label>[1-4](\.\d+)?|5(\.0+)?)\s*\t{_CELL}",
        "a relatedness score from 1 to 5 in the fourth",
    ),
    "SICK-E": _sick(
        "dev", rf"{_CELL}\t\s*(?P<label>{'|'.join(JUDGEMENTS)})\s*", f"{', '.join(JUDGEMENTS)} in the last", JUDGEMENTS
    ),
}
