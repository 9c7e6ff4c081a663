"""What an evaluation writes down: one entry of the file of `paranmt evaluate sts --json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.speed import Speed
from paranmt_hf.util.records import from_json, read_json, to_json


@dataclass(frozen=True)
class SetRecord:
    """The figures of one set of pairs.

    Attributes:
        name: Name of the set.
        year: The task it belongs to, such as `STS12`, or None.
        part_of: The set that this is a subset of, or None.
        pairs: Pairs with a gold score.
        skipped: Pairs without one.
        pearson: Pearson's r, in [-1, 1].
        spearman: Spearman's rho, in [-1, 1].
        zero_vectors: Sentences (sides of pairs) with a vector of zeros; the cosine of their pairs is 0.
        unknown_sentences: Sentences without a known token that counts (one of a blacklist does not), if the
            encoder can tell.
        interval: The 95 % bootstrap interval of Pearson's r, if asked for.
    """

    name: str
    year: str | None
    part_of: str | None
    pairs: int
    skipped: int
    pearson: float
    spearman: float
    zero_vectors: int
    unknown_sentences: int | None
    interval: tuple[float, float] | None

    @property
    def title(self) -> str:
        """Year and name."""
        return f"{self.year} {self.name}" if self.year else self.name


@dataclass(frozen=True)
class YearResult:
    """The result on all sets of a year, in the ways that are in use; each in [-1, 1].

    Attributes:
        name: The task, such as `STS12`.
        sets: Number of sets.
        pairs: Pairs with a gold score in all of them.
        mean: Mean of the sets' Pearson's r: the papers' figure.
        weighted_mean: The same, each set weighted by its pairs.
        all_pearson: Pearson's r over all pairs of the year together.
        all_spearman: Spearman's rho over all pairs of the year together: MTEB's figure.
    """

    name: str
    sets: int
    pairs: int
    mean: float
    weighted_mean: float
    all_pearson: float
    all_spearman: float


@dataclass(frozen=True)
class ResultsRecord:
    """The figures of a model, and which model that was.

    Attributes:
        model: Name of the model.
        mean: Mean of the yearly means, in [-1, 1]; None without years.
        development: Pearson's r on the development set; None if that was not there.
        years: The results on the years.
        sets: The results on the sets, and on their subsets.
        notes: Sentences that a reader of the numbers must know.
        weights: Checksum of the weights, of an encoder that was measured.
        speed: How fast the encoder is, if that was measured.
    """

    model: str
    mean: float | None
    development: float | None
    years: list[YearResult]
    sets: list[SetRecord]
    notes: list[str]
    weights: str | None = None
    speed: Speed | None = None

    @classmethod
    def from_json(cls, values: Any, where: Path | str) -> ResultsRecord:  # noqa: ANN401
        """Read what `to_json` gave.

        Raises:
            InputError: A value is missing, of another type, or no finite number.
        """
        return from_json(cls, values, where)

    def to_json(self) -> dict[str, Any]:
        """Give the record as JSON values; what was not measured of an encoder is left out."""
        values: dict[str, Any] = to_json(self)
        if values["speed"] is not None:
            values["speed"] = {key: value for key, value in values["speed"].items() if value is not None}
        return {key: value for key, value in values.items() if value is not None or key not in ("weights", "speed")}

    def figures(self) -> dict[str, Any]:
        """Give the results alone as JSON values, without what is said of the encoder."""
        return {key: value for key, value in self.to_json().items() if key not in ("weights", "speed")}


def read_results(path: Path) -> list[ResultsRecord]:
    """Read a file of results.

    Raises:
        InputError: It cannot be read, is damaged, or is of another evaluation.
    """
    values = read_json(path, "what `paranmt evaluate sts --json` wrote")
    if isinstance(values, list) and any(isinstance(entry, dict) and entry.get("kind") for entry in values):
        raise InputError(f"{path} holds results on transfer tasks; expected what `paranmt evaluate sts --json` wrote")
    return from_json(list[ResultsRecord], values, path)
