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

QUESTIONS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
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
class TaskLayout:
    """Where the files of a task are, and how their lines are read."""

    way: Way  # How the task is evaluated
    # Possible paths of the file of each split, below the folder of all tasks
    files: Mapping[Split, tuple[str, ...]]
    counts: Mapping[str, int]  # Number of items of each part in complete files
    # Regular expression of a line, with a group `label` and a group for each sentence: `only`, or `first` and
    # `second`. If it is None, a line is a sentence, and its split is its label.
    line: str | None = None
    expected: str = ""  # What a line holds, for errors
    classes: tuple[str, ...] = ()  # Labels in the order of their classes; if empty, labels are numbers
    header: tuple[str, ...] = ()  # Column names in the first line of each file; empty if there is no such line

    def parse(self, line: str, where: str) -> Row:
        """Return the sentences and the label of a line; `where` is its file and number, for errors."""
        if self.line is None:
            # CR has lines without a word, which SentEval's encoders read as a full stop.
            return (" ".join(line.split()) or ".",), 0
        found = re.fullmatch(self.line, line)
        if found is None:
            raise InputError(f"{where}: expected {self.expected}, found {line[:60]!r}; is it the original file?")
        sentences = []
        for name, text in found.groupdict().items():
            if name != "label":
                sentences.append(parse_sentence(text, where, f"the {name} sentence's place"))
        label = self.classes.index(found["label"]) if self.classes else float(found["label"])
        return tuple(sentences), label


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
    rows: dict[str, list[Row]] = {}
    for split, path in files.items():
        own = _read_rows(path, layout)
        if layout.way == "nested":
            label = float(split == "positive")
            rows.setdefault("all", []).extend((sentences, label) for sentences, _ in own)
        else:
            rows[split] = own
    parts = {part: _part(own, layout) for part, own in rows.items()}
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


def _read_rows(path: Path, layout: TaskLayout) -> list[Row]:
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


def _part(rows: list[Row], layout: TaskLayout) -> TaskPart:
    """Make a part of rows, sorted by length as in SentEval, so that cross-validation has the same folds as there."""
    rows = sorted(rows, key=lambda row: (*(len(sentence.split()) for sentence in row[0]), row[1]))
    items, labels = zip(*rows, strict=True)
    kind = np.float64 if layout.way == "relatedness" else np.int64
    return TaskPart(tuple(map(list, zip(*items, strict=True))), np.array(labels, kind))


# Parts of the patterns of lines: a cell between tabs, and the first three columns of SICK.
_CELL = r"[^\t]*"
_SICK_PAIR = rf"{_CELL}\t(?P<first>{_CELL})\t(?P<second>{_CELL})\t"
_SICK_FILES: Mapping[Split, tuple[str, ...]] = {
    "train": ("SICK/SICK_train.txt",),
    "dev": ("SICK/SICK_trial.txt",),
    "test": ("SICK/SICK_test_annotated.txt",),
}
_SICK_COUNTS = {"train": 4500, "dev": 500, "test": 4927}
_SICK_HEADER = ("pair_ID", "sentence_A", "sentence_B", "relatedness_score", "entailment_judgment")

# Layouts by the name of the task. SentEval's file names come first, then those that the files have elsewhere.
_LAYOUTS: Mapping[str, TaskLayout] = {
    "MR": TaskLayout(
        way="nested",
        files={"positive": ("MR/rt-polarity.pos",), "negative": ("MR/rt-polarity.neg",)},
        counts={"all": 10662},
    ),
    "CR": TaskLayout(
        way="nested",
        files={"positive": ("CR/custrev.pos",), "negative": ("CR/custrev.neg",)},
        counts={"all": 3775},
    ),
    "SUBJ": TaskLayout(
        way="nested",
        files={
            "positive": ("SUBJ/subj.objective", "SUBJ/plot.tok.gt9.5000"),
            "negative": ("SUBJ/subj.subjective", "SUBJ/quote.tok.gt9.5000"),
        },
        counts={"all": 10000},
    ),
    "MPQA": TaskLayout(
        way="nested", files={"positive": ("MPQA/mpqa.pos",), "negative": ("MPQA/mpqa.neg",)}, counts={"all": 10606}
    ),
    # Lines such as: sentence, tab, 1
    "SST2": TaskLayout(
        way="dev",
        files={
            "train": ("SST/binary/sentiment-train",),
            "dev": ("SST/binary/sentiment-dev",),
            "test": ("SST/binary/sentiment-test",),
        },
        counts={"train": 67349, "dev": 872, "test": 1821},
        line=r"(?P<only>.*)\t(?P<label>[01])\s*",
        expected="a sentence, a tab and 0 or 1",
        classes=("0", "1"),
    ),
    "SST5": TaskLayout(
        way="dev",
        files={
            "train": ("SST/fine/sentiment-train",),
            "dev": ("SST/fine/sentiment-dev",),
            "test": ("SST/fine/sentiment-test",),
        },
        counts={"train": 8544, "dev": 1101, "test": 2210},
        line=r"(?P<label>[0-4]) (?P<only>.*)",
        expected="a class from 0 to 4, a blank and a sentence",
        classes=("0", "1", "2", "3", "4"),
    ),
    # Lines such as: NUM:date When was he born ?
    "TREC": TaskLayout(
        way="train",
        files={
            "train": ("TREC/train_5500.label", "TREC/TREC.train"),
            "test": ("TREC/TREC_10.label", "TREC/TREC.test"),
        },
        counts={"train": 5452, "test": 500},
        line=rf"(?P<label>{'|'.join(QUESTIONS)}):[^ ]* (?P<only>.*)",
        expected=f"{', '.join(QUESTIONS)}, a colon, a finer class, a blank and a sentence",
        classes=QUESTIONS,
    ),
    "MRPC": TaskLayout(
        way="train",
        files={"train": ("MRPC/msr_paraphrase_train.txt",), "test": ("MRPC/msr_paraphrase_test.txt",)},
        counts={"train": 4076, "test": 1725},
        line=rf"\s*(?P<label>[01])\s*\t{_CELL}\t{_CELL}\t(?P<first>{_CELL})\t(?P<second>{_CELL})",
        expected="5 columns with tabs between, with 0 or 1 in the first",
        classes=("0", "1"),
        header=("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
    ),
    "SICK-R": TaskLayout(
        way="relatedness",
        files=_SICK_FILES,
        counts=_SICK_COUNTS,
        line=rf"{_SICK_PAIR}\s*(?P<label>[1-4](\.\d+)?|5(\.0+)?)\s*\t{_CELL}",
        expected="5 columns with tabs between, with a relatedness score from 1 to 5 in the fourth",
        header=_SICK_HEADER,
    ),
    "SICK-E": TaskLayout(
        way="dev",
        files=_SICK_FILES,
        counts=_SICK_COUNTS,
        line=rf"{_SICK_PAIR}{_CELL}\t\s*(?P<label>{'|'.join(JUDGEMENTS)})\s*",
        expected=f"5 columns with tabs between, with {', '.join(JUDGEMENTS)} in the last",
        classes=JUDGEMENTS,
        header=_SICK_HEADER,
    ),
}
