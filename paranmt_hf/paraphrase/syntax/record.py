"""What training writes down of a syntactically controlled network, `training.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from paranmt_hf.errors import InputError
from paranmt_hf.paraphrase.record import Course, Shown, ShownSettings
from paranmt_hf.training.record import TRAINING_FILE
from paranmt_hf.util.records import from_json, read_json, to_json

KIND = "controlled-paraphraser"
MADE_BY = "a model made by `paranmt train-controlled`"


@dataclass(frozen=True)
class ControlledRecord:
    """The content of `training.json`.

    Attributes:
        settings: The identity of the run: what determines its result.
        inputs: Names, without their folders, of what it began with.
        pairs: Pairs of the training part.
        held_out: Pairs of the held-out part.
        too_long: Pairs that were left out because of a long sentence.
        long_trees: Pairs that were left out because of a long tree.
        without_tree: Pairs that were left out because a sentence has no tree.
        templates: Different templates of the targets.
        course: Loss and figures of the paraphrase generator, which had the targets' own trees.
        parse_course: Loss and figures of the parse generator.
        parameters: Number of weights of both together.
        pieces: Size of the vocabulary of sentences.
        tree_tokens: Size of the vocabulary of trees.
        versions: Versions of this package and of the libraries that made it.
        machine: Kind of the processor, such as `x86_64`.
        device: What it was trained on, `cpu` or `cuda`.
        kind: What the record is about.
    """

    settings: dict[str, Any]
    inputs: dict[str, str]
    pairs: int
    held_out: int
    too_long: int
    long_trees: int
    without_tree: int
    templates: int
    course: Course
    parse_course: Course
    parameters: int
    pieces: int
    tree_tokens: int
    versions: dict[str, str]
    machine: str
    device: str
    kind: Literal["controlled-paraphraser"] = "controlled-paraphraser"

    def to_json(self) -> dict[str, Any]:
        """Give the record as JSON values."""
        values: dict[str, Any] = to_json(self)
        return values


def read_controlled_record(folder: Path) -> ControlledRecord:
    """Read what training wrote down of a syntactically controlled network.

    Raises:
        InputError: The folder holds no such record, or a damaged one.
    """
    path = folder / TRAINING_FILE
    values = read_json(path, f"the folder of {MADE_BY}")
    if isinstance(values, dict) and values.get("kind") != KIND:
        raise InputError(f"{path} is that of another kind of model; expected {MADE_BY}")
    record = from_json(ControlledRecord, values, path)
    from_json(_Shown, values, path)
    return record


# What a card reads of settings and inputs. These are checked, other settings may be anything.


@dataclass(frozen=True)
class _Settings(ShownSettings):
    syntax: dict[str, Any]


@dataclass(frozen=True)
class _Shown(Shown):
    settings: _Settings
