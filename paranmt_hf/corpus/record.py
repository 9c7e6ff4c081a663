"""The record of a release, `build.json`: its inputs, its files, and statistics of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from paranmt_hf.corpus.schema import SCHEMA_VERSION, MadeBy
from paranmt_hf.errors import InputError
from paranmt_hf.util.files import check_regular
from paranmt_hf.util.records import Identity, Record, from_json, read_json

RELEASE_RECORD = "build.json"
# Settings under `release` that only word the card; another wording is not another release.
WORDING = ("title", "description")


@dataclass
class ConfigFiles:
    """The files of one config.

    Attributes:
        files: Path relative to the release and SHA-256 of each file, in order.
        rows: Number of rows.
        bytes: Size of the rows in memory.
        file_bytes: Size of the files.
        selection: What chose the rows, if anything did: ranges of columns, or the seed of a sample.
    """

    files: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    bytes: int = 0
    file_bytes: int = 0
    selection: dict[str, int | list[int | float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Example:
    """A pair that the card shows."""

    reference: str
    translation: str
    para_score: float


@dataclass(frozen=True)
class RangeRecord:
    """Pairs of one range of the paraphrase score; a mean is None if there are no rows."""

    range: str
    rows: int
    mean_trigram_overlap: float | None
    mean_length: float | None
    examples: list[Example]


@dataclass(frozen=True)
class StatisticsRecord:
    """Statistics of the config `default`.

    Attributes:
        rows: Number of pairs.
        mean_reference_length: In word tokens.
        mean_translation_length: In word tokens.
        mean_translation_score: Natural logarithm per target token (<= 0); None for imported pairs.
        ranges: By paraphrase score, ascending.
        histogram: Counts [bin] of the paraphrase score, bins of equal width from -1 to 1.
        histograms: Counts [bin] of the other columns; a release of an earlier version has none.
        mismatches: Number of pairs with a mismatch, by column, for those columns that the release has.
        mean_human_score: Mean of `human_score`; None without this column.
        sentences: Number of distinct ids; None without a column `rank`, when it equals that of the rows.
    """

    rows: int
    mean_reference_length: float
    mean_translation_length: float
    mean_translation_score: float | None
    ranges: list[RangeRecord]
    histogram: list[int]
    histograms: dict[str, list[int]] = field(default_factory=dict)
    mismatches: dict[str, int] = field(default_factory=dict)
    mean_human_score: float | None = None
    sentences: int | None = None


@dataclass(frozen=True)
class HeldOut:
    """How well a classifier separates held-out references from translations.

    Attributes:
        pairs: Pairs that were looked at.
        accuracy: Share of their sentences that were classified correctly.
        ordered: Share of pairs whose reference got the higher score.
    """

    pairs: int
    accuracy: float
    ordered: float


@dataclass(frozen=True)
class FilterRecord:
    """Number of rows that a filter dropped.

    Attributes:
        reason: Why.
        settings: What determines its verdicts.
        dropped: Number of dropped pairs.
    """

    reason: str
    settings: dict[str, Any]
    dropped: int


@dataclass(frozen=True)
class SelectionRecord:
    """How a release was selected from another one; the entry `selection` of its settings.

    Attributes:
        release: Name of the other release.
        files: Path and SHA-256 of each of its files.
        rows: Number of its pairs.
        scorer: The scorer of its paraphrase scores.
        filters: In the order in which they decided.
        before: How the other release was selected, if it was.
    """

    release: str
    files: dict[str, str]
    rows: int
    scorer: dict[str, Any]
    filters: list[FilterRecord]
    before: SelectionRecord | None = None


@dataclass(frozen=True, kw_only=True)
class ReleaseRecord(Record):
    """The content of `build.json`.

    Attributes:
        name: Name of the corpus.
        schema_version: Version of the columns.
        license: Licence: an id that the Hub lists, or `NAME <LINK>`.
        title: What the card is headed with, if not the name.
        description: Description of the corpus on its card, in the words of its maker.
        settings: What determined the release, by part: `bitext` or `pairs`, `translator`, `scorer`, `columns`,
            `release`, and `selection` where it was selected from another one.
        dropped: Lines of the input that are not in it, by reason.
        columns: Names of its columns in order.
        configs: What was written for each config.
        statistics: What is in the config `default`.
        warnings: Notes for the readers of the card.
        held_out: Accuracy of the classifier behind `human_score`; None without this column.
    """

    FILE: ClassVar[str] = RELEASE_RECORD
    KIND: ClassVar[str] = "a release (`paranmt build`, `paranmt import`)"

    name: str
    schema_version: str
    license: str
    title: str | None = None
    description: str | None = None
    settings: dict[str, dict[str, Any]]
    dropped: dict[str, int]
    columns: list[str]
    configs: dict[str, ConfigFiles]
    statistics: StatisticsRecord
    warnings: list[str] = field(default_factory=list)
    held_out: HeldOut | None = None

    @classmethod
    def read(cls, folder: str | Path, name: str = "") -> Self:
        """Read the record of a release, which errors call `name`, without checking its files."""
        folder, name = Path(folder), name or str(folder)
        path = folder / RELEASE_RECORD
        check_regular(path)
        if not path.is_file():
            what = f"holds no {RELEASE_RECORD}" if folder.is_dir() else "is not a folder"
            raise InputError(f"{name} is not a finished release: it {what}; expected what `paranmt build` wrote")
        try:
            values = read_json(path, "the record of a release")
            version = values.get("schema_version") if isinstance(values, dict) else None
            # The version first: a record of another schema is not damaged.
            if version is None or str(version).split(".")[0] == SCHEMA_VERSION.split(".")[0]:
                return cls.from_json(values, path)
        except InputError as error:
            raise InputError(f"{error}; copy or build {name} again") from None
        raise InputError(
            f"{name} has schema version {version}, this program knows {SCHEMA_VERSION}: use the version of paranmt-hf "
            "that its card names, or build it again"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values, without missing ones."""
        return {key: value for key, value in super().to_json().items() if value is not None}

    @property
    def identity(self) -> Identity:
        """Everything that determined the release, see `identity_of`."""
        return identity_of(self.settings)

    @property
    def selection(self) -> SelectionRecord | None:
        """How it was selected from another release; None if it was not."""
        if "selection" not in self.settings:
            return None
        return from_json(SelectionRecord, self.settings["selection"], RELEASE_RECORD)

    @property
    def language(self) -> str:
        """ISO 639-1 code of the language of both sides."""
        return str(self.settings.get("release", {}).get("language", "en"))

    @property
    def made_by(self) -> MadeBy | None:
        """Who wrote the second sentences of imported pairs; None if this package translated them."""
        if "translator" in self.settings:
            return None
        made_by: MadeBy = self.settings.get("pairs", {}).get("made_by", "unknown")
        return made_by

    def with_license(self, license: str) -> ReleaseRecord:
        """The same record of a release under another licence."""
        return replace(
            self,
            license=license,
            settings={**self.settings, "release": {**self.settings["release"], "license": license}},
        )


def identity_of(settings: Mapping[str, Any]) -> Identity:
    """Remove from the settings of a release what follows from others, or only changes its card.

    That is title and description, and of a selection the counts and the name of a release known by its files.
    """
    release = {name: value for name, value in settings["release"].items() if name not in WORDING}
    found = {**settings, "release": release}
    if isinstance(selection := settings.get("selection"), Mapping):
        filters = [{**one, "dropped": 0} for one in selection.get("filters", [])]
        found["selection"] = {**selection, "release": "", "filters": filters}
    return found
