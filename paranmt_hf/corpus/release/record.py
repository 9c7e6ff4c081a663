"""The record of a corpus, `build.json`: its inputs, its files, and statistics of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from paranmt_hf.corpus.release.schema import SCHEMA_VERSION, MadeBy
from paranmt_hf.errors import InputError
from paranmt_hf.hub.licenses import check_terms
from paranmt_hf.util.files import check_regular
from paranmt_hf.util.records import Identity, Record, from_json, read_json
from paranmt_hf.util.wording import counted

RELEASE_RECORD = "build.json"
# Settings under `release` that only word the card; another wording is not another corpus.
WORDING = ("title", "description")


@dataclass
class ConfigFiles:
    """The files of one config."""

    # Path relative to the corpus and SHA-256 of each file, in order
    files: dict[str, str] = field(default_factory=dict)
    rows: int = 0  # Number of rows
    bytes: int = 0  # Size of the rows in memory
    file_bytes: int = 0  # Size of the files
    # What chose the rows, if anything did: ranges of columns, or the seed of a sample
    selection: dict[str, int | list[int | float | None]] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)  # SHA-256 of each column, see `column_checksums`


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
    """Statistics of the config `default`."""

    rows: int  # Number of pairs
    mean_reference_length: float  # In word tokens
    mean_translation_length: float  # In word tokens
    mean_translation_score: float | None  # Natural logarithm per target token (<= 0); None for imported pairs
    ranges: list[RangeRecord]  # By paraphrase score, ascending
    histogram: list[int]  # Counts [bin] of the paraphrase score, bins of equal width from -1 to 1
    # Counts [bin] of the other columns; a corpus of an earlier version has none
    histograms: dict[str, list[int]] = field(default_factory=dict)
    # Number of pairs with a mismatch, by column, for those columns that the corpus has
    mismatches: dict[str, int] = field(default_factory=dict)
    # Number of distinct ids; None without a column `rank`, when it equals that of the rows
    sentences: int | None = None


@dataclass(frozen=True)
class FilterRecord:
    """Number of rows that a filter dropped."""

    reason: str  # Why
    settings: dict[str, Any]  # What determines its verdicts
    dropped: int  # Number of dropped pairs


@dataclass(frozen=True)
class SelectionRecord:
    """How a corpus was selected from another one; the entry `selection` of its settings."""

    release: str  # Name of the other corpus
    files: dict[str, str]  # Path and SHA-256 of each of its files
    rows: int  # Number of its pairs
    scorer: dict[str, Any]  # The scorer of its paraphrase scores
    filters: list[FilterRecord]  # In the order in which they decided
    before: SelectionRecord | None = None  # How the other corpus was selected, if it was


@dataclass(frozen=True, kw_only=True)
class ReleaseRecord(Record):
    """The content of `build.json`."""

    FILE: ClassVar[str] = RELEASE_RECORD
    KIND: ClassVar[str] = "a corpus (`paranmt build`, `paranmt import`)"

    name: str  # Name of the corpus
    schema_version: str  # Version of the columns
    license: str  # Licence: an id that the Hub lists, or `NAME <LINK>`
    title: str | None = None  # What the card is headed with, if not the name
    description: str | None = None  # Description of the corpus on its card, in the words of its maker
    # What determined the corpus, by part: `bitext` or `pairs`, `translator`, `scorer`, `columns`, `release`, and
    # `selection` where it was selected from another one
    settings: dict[str, dict[str, Any]]
    dropped: dict[str, int]  # Lines of the input that are not in it, by reason
    capitals: int = 0  # Lines of the input in capitals, which were translated in the case of sentences
    columns: list[str]  # Names of its columns in order
    configs: dict[str, ConfigFiles]  # What was written for each config
    statistics: StatisticsRecord  # What is in the config `default`
    warnings: list[str] = field(default_factory=list)  # Notes for the readers of the card

    @classmethod
    def read(cls, folder: str | Path, name: str = "") -> Self:
        """Read the record of a corpus, which errors call `name`, without checking its files."""
        folder, name = Path(folder), name or str(folder)
        path = folder / RELEASE_RECORD
        check_regular(path)
        if not path.is_file():
            what = f"holds no {RELEASE_RECORD}" if folder.is_dir() else "is not a folder"
            raise InputError(f"{name} is not a finished corpus: it {what}; expected what `paranmt build` wrote")
        try:
            values = read_json(path, "the record of a corpus")
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
        return {key: value for key, value in super().to_json().items() if value is not None}

    @property
    def written_by(self) -> list[str]:
        """Models that wrote its translations, or those of the corpus that its pairs were mined from."""
        models = [self.settings.get(way, {}).get("model") for way in ("translator", "pivot")]
        return [model for model in models if model] + list(self.settings.get("pairs", {}).get("written_by", ()))

    def check_terms(self, license: str | None) -> None:
        """Reject a licence that the terms of the models that wrote its translations do not permit."""
        for model in self.written_by:
            check_terms(model, license)

    def config_lines(self) -> list[str]:
        """A line for each config, with its rows and bytes, for a terminal."""
        return [
            f"  {name:<9}{counted(config.rows, 'pair'):>18} {config.file_bytes:>15,} bytes"
            for name, config in self.configs.items()
        ]

    @property
    def identity(self) -> Identity:
        """Everything that determined the corpus, see `identity_of`."""
        return identity_of(self.settings)

    @property
    def selection(self) -> SelectionRecord | None:
        """How it was selected from another corpus; None if it was not."""
        if "selection" not in self.settings:
            return None
        return from_json(SelectionRecord, self.settings["selection"], RELEASE_RECORD)

    @property
    def selections(self) -> list[SelectionRecord]:
        """The selections from which its rows come, the first one first."""
        found, last = list[SelectionRecord](), self.selection
        while last is not None:
            found.insert(0, last)
            last = last.before
        return found

    @property
    def source(self) -> dict[str, Any]:
        """Identity of the input that its rows come from."""
        return next((self.settings[part] for part in ("bitext", "text", "pairs") if part in self.settings), {})

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
        """The same record of a corpus under another licence."""
        return replace(
            self,
            license=license,
            settings={**self.settings, "release": {**self.settings["release"], "license": license}},
        )


def identity_of(settings: Mapping[str, Any]) -> Identity:
    """Remove from the settings of a corpus what follows from others, or only changes its card.

    That is title and description, and of a selection the counts and the name of a corpus known by its files.
    """
    release = {name: value for name, value in settings["release"].items() if name not in WORDING}
    found = {**settings, "release": release}
    if isinstance(selection := settings.get("selection"), Mapping):
        filters = [{**one, "dropped": 0} for one in selection.get("filters", [])]
        found["selection"] = {**selection, "release": "", "filters": filters}
    return found
