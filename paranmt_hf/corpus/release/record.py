"""The record of a corpus, `build.json`: its inputs, its files, and statistics of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from paranmt_hf.corpus.release.schema import SCHEMA_VERSION, MadeBy
from paranmt_hf.errors import InputError
from paranmt_hf.hub.licenses import check_terms
from paranmt_hf.util.files import check_regular, resolved
from paranmt_hf.util.records import Identity, Record, from_json, read_json
from paranmt_hf.util.wording import counted

RELEASE_RECORD = "build.json"
# Settings under `release` that are only texts of the card; other texts do not make another corpus.
WORDING = ("title", "description")


@dataclass
class ConfigFiles:
    """The files of one config of a corpus."""

    # SHA-256 of each file, in hexadecimal, by its path in the folder of the corpus, in order
    files: dict[str, str] = field(default_factory=dict)
    rows: int = 0  # Number of rows
    bytes: int = 0  # Size of the rows in memory, in bytes
    file_bytes: int = 0  # Size of the files, in bytes
    # How the rows were chosen: ranges of columns, or size and seed of a sample; empty for all rows
    selection: dict[str, int | list[int | float | None]] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)  # SHA-256 of each column, see `column_checksums`


@dataclass(frozen=True)
class Example:
    """A pair that the card shows as an example."""

    reference: str
    translation: str
    para_score: float


@dataclass(frozen=True)
class RangeRecord:
    """Figures of the pairs in one range of the paraphrase score."""

    range: str  # The range, such as "(0.2, 0.4]"
    rows: int  # Number of pairs
    mean_trigram_overlap: float | None  # None if no pair has an overlap
    mean_length: float | None  # Mean number of word tokens over both sides; None without pairs
    examples: list[Example]  # At most three pairs


@dataclass(frozen=True)
class StatisticsRecord:
    """Statistics of the pairs in the config `default`."""

    rows: int  # Number of pairs
    mean_reference_length: float  # Mean number of word tokens in a reference
    mean_translation_length: float  # Mean number of word tokens in a translation
    mean_translation_score: float | None  # Mean of the column, at most 0; None for imported pairs
    ranges: list[RangeRecord]  # Figures by range of the paraphrase score, ascending
    histogram: list[int]  # Counts [bin] of the paraphrase score, in bins of equal width from -1 to 1
    # Counts [bin] of other columns; empty for corpora of earlier versions
    histograms: dict[str, list[int]] = field(default_factory=dict)
    # Number of pairs with a mismatch, for each column of mismatches that the corpus has
    mismatches: dict[str, int] = field(default_factory=dict)
    # Number of distinct ids; None without a column `rank`, because each row then has an id of its own
    sentences: int | None = None


@dataclass(frozen=True)
class FilterRecord:
    """How many pairs one filter dropped."""

    reason: str  # Why the filter drops pairs, in words
    settings: dict[str, Any]  # What determines which pairs it drops
    dropped: int  # Number of pairs that it dropped


@dataclass(frozen=True)
class SelectionRecord:
    """How a corpus was selected from another one; the part `selection` of its settings."""

    release: str  # Name of the other corpus
    files: dict[str, str]  # SHA-256 of each file of the other corpus, by its path
    rows: int  # Number of pairs in the other corpus
    scorer: dict[str, Any]  # Identity of the scorer of its paraphrase scores
    filters: list[FilterRecord]  # The filters, in the order in which they decided
    before: SelectionRecord | None = None  # How the other corpus was selected; None if it was not


@dataclass(frozen=True, kw_only=True)
class ReleaseRecord(Record):
    """The content of `build.json`, the record of a corpus."""

    FILE: ClassVar[str] = RELEASE_RECORD
    KIND: ClassVar[str] = "a corpus (`paranmt build`, `paranmt import`)"

    name: str  # Name of the corpus
    schema_version: str  # Version of the columns
    license: str  # Licence: an id that the Hub lists, or `NAME <LINK>`
    title: str | None = None  # Heading of the card; None for the name
    description: str | None = None  # Description of the corpus on its card, in the words of its maker
    # What determined the corpus, by part: `bitext`, `text` or `pairs`, `pivot`, `translator` or `paraphraser`,
    # `scorer`, `columns`, `release`, and `selection` if it was selected from another corpus
    settings: dict[str, dict[str, Any]]
    dropped: dict[str, int]  # Number of lines of the input that are not in the corpus, by reason
    capitals: int = 0  # Number of lines of the input in capitals, which were translated in sentence case
    columns: list[str]  # Names of the columns, in order
    configs: dict[str, ConfigFiles]  # The files of each config
    statistics: StatisticsRecord  # Statistics of the config `default`
    warnings: list[str] = field(default_factory=list)  # Warnings that the card shows

    @classmethod
    def read(cls, folder: str | Path, name: str = "") -> Self:
        """Read the record of a corpus, without checking the files of the corpus.

        Args:
            folder: The corpus.
            name: What errors call it; its folder if left out.

        Raises:
            InputError: If there is no record, or it is damaged or of another major schema version.
        """
        folder, name = Path(folder), name or str(folder)
        path = folder / RELEASE_RECORD
        check_regular(path)
        if not path.is_file():
            what = f"holds no {RELEASE_RECORD}" if folder.is_dir() else "is not a folder"
            raise InputError(f"{name} is not a finished corpus: it {what}; expected what `paranmt build` wrote")
        try:
            values = read_json(path, "the record of a corpus")
            version = values.get("schema_version") if isinstance(values, dict) else None
            # The version is checked first, because a record of another schema is not damaged.
            if version is None or str(version).split(".")[0] == SCHEMA_VERSION.split(".")[0]:
                return cls.from_json(values, path)
        except InputError as error:
            raise InputError(f"{error}; copy or build {name} again") from None
        raise InputError(
            f"{name} has schema version {version}, this program knows {SCHEMA_VERSION}: use the version of paranmt-hf "
            "that its card names, or build it again"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values; entries that are None are left out."""
        return {key: value for key, value in super().to_json().items() if value is not None}

    @property
    def written_by(self) -> list[str]:
        """Names of the models that wrote the translations; of mined pairs, those of the corpus they come from."""
        models = [self.settings.get(way, {}).get("model") for way in ("translator", "pivot")]
        return [model for model in models if model] + list(self.settings.get("pairs", {}).get("written_by", ()))

    def check_terms(self, license: str | None) -> None:
        """Reject a licence that the terms of the models that wrote the translations do not permit."""
        for model in self.written_by:
            check_terms(model, license)

    def config_lines(self) -> list[str]:
        """Return a line for each config with its numbers of pairs and bytes, for a terminal."""
        return [
            f"  {name:<9}{counted(config.rows, 'pair'):>18} {config.file_bytes:>15,} bytes"
            for name, config in self.configs.items()
        ]

    @property
    def identity(self) -> Identity:
        """Everything that determined the corpus; see `identity_of`."""
        return identity_of(self.settings)

    @property
    def selection(self) -> SelectionRecord | None:
        """How the corpus was selected from another one; None if it was not."""
        if "selection" not in self.settings:
            return None
        return from_json(SelectionRecord, self.settings["selection"], RELEASE_RECORD)

    @property
    def selections(self) -> list[SelectionRecord]:
        """All selections that led to the corpus, the first one first."""
        selections, selection = list[SelectionRecord](), self.selection
        while selection is not None:
            selections.insert(0, selection)
            selection = selection.before
        return selections

    @property
    def source(self) -> dict[str, Any]:
        """Identity of the input of the corpus: a bitext, text or pairs."""
        return next((self.settings[part] for part in ("bitext", "text", "pairs") if part in self.settings), {})

    @property
    def language(self) -> str:
        """Language of both sides (ISO 639-1)."""
        return str(self.settings.get("release", {}).get("language", "en"))

    @property
    def made_by(self) -> MadeBy | None:
        """Who wrote the second sentences of imported pairs; None if a model translated them for this corpus."""
        if "translator" in self.settings:
            return None
        made_by: MadeBy = self.settings.get("pairs", {}).get("made_by", "unknown")
        return made_by

    def with_license(self, license: str) -> ReleaseRecord:
        """Return this record with another licence."""
        return replace(
            self,
            license=license,
            settings={**self.settings, "release": {**self.settings["release"], "license": license}},
        )


def identity_of(settings: Mapping[str, Any]) -> Identity:
    """Return the settings of a corpus without what follows from others, or only changes its card.

    Left out are title and description, and of a selection the counts of dropped pairs and the name of the other
    corpus, which its files identify.
    """
    release = {name: value for name, value in settings["release"].items() if name not in WORDING}
    found = {**settings, "release": release}
    if isinstance(selection := settings.get("selection"), Mapping):
        filters = [{**one, "dropped": 0} for one in selection.get("filters", [])]
        found["selection"] = {**selection, "release": "", "filters": filters}
    return found


def language_of(path: str | Path) -> str | None:
    """Return the language (ISO 639-1) of the corpus that a path belongs to; None if it belongs to none."""
    path = resolved(path)
    # The path is a corpus, the folder of one of its configs, or a file in that.
    for folder in (path, *path.parents[:2]):
        if (folder / RELEASE_RECORD).is_file():
            return ReleaseRecord.read(folder).language
    return None


def written_by(sides: list[tuple[str | Path | None, str | None]], license: str | None) -> list[str]:
    """Find the translation models that wrote sentences of corpora, given by path and column, and return their names.

    Raises `InputError` if the terms of a model do not permit the licence of the new corpus.
    """
    written: list[str] = []
    for path, column in sides:
        if path is not None and (Path(path).expanduser() / RELEASE_RECORD).is_file():
            record = ReleaseRecord.read(path)
            # In a corpus of mined pairs, either side may hold translations of the corpus that it was mined from.
            if column == "translation" or record.settings.get("pairs", {}).get("written_by"):
                record.check_terms(license)
                written += record.written_by
    return list(dict.fromkeys(written))
