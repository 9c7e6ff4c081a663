"""What a format to export to is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

Encode = Callable[[list[str]], np.ndarray]
# How far vectors are from others, both [sentence, dimension].
Distance = Callable[[np.ndarray, np.ndarray], float]


def largest_difference(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Largest difference of a value, in parts of the largest value where that is above 1."""
    return float(np.abs(theirs - ours).max() / max(1, np.abs(ours).max()))


def largest_turn(theirs: np.ndarray, ours: np.ndarray) -> float:
    """Largest difference of a cosine from 1; infinite where only one of two vectors is zeros."""
    theirs, ours = theirs.astype(np.float64), ours.astype(np.float64)
    lengths = np.linalg.norm(theirs, axis=1), np.linalg.norm(ours, axis=1)
    if ((lengths[0] == 0) != (lengths[1] == 0)).any():
        return float("inf")
    some = lengths[1] > 0
    dots = (theirs * ours).sum(axis=1)[some]
    return float(np.abs(1 - dots / (lengths[0] * lengths[1])[some]).max(initial=0))


@dataclass(frozen=True)
class Format:
    """A format to export to.

    Attributes:
        name: Its name in `--format`.
        holds: What it can hold, for messages.
        families: The single encoders it can hold; nothing where it can hold all of them and their combinations.
        write: Writes the files into a folder that exists.
        read: Loads the files as a reader would and gives what encodes with them; None where the package is missing.
        tolerance: How far its vectors may be from ours.
        distance: How that is measured.
        library: Name of the library that reads it, for the header of its README.
        usage: A program that loads it; `{name}` is its folder and `{suffixes}` what the inputs of its parts end with.
        note: What its README says of it.
        package: Package that writing needs, which is also the name of the extra.
        holds_settings: Whether it can hold a default prompt and a `truncate_dim`.
        holds_unknown: Whether it can hold a trained vector for unknown units.
        language: What `usage` is written in.
        usage_combined: The same for encoders that are combined, where that differs.
    """

    name: str
    holds: str
    families: tuple[str, ...]
    write: Callable[[SentenceEncoder, Path], None]
    read: Callable[[Path], Encode | None]
    library: str
    usage: str
    note: str
    tolerance: float = 1e-6
    distance: Distance = largest_difference
    package: str | None = None
    holds_settings: bool = True
    holds_unknown: bool = True
    language: str = "python"
    usage_combined: str | None = None
