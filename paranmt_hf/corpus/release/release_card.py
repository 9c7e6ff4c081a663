"""The card of a corpus: the values of its template, from its record and the schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from paranmt_hf.corpus.language_models.config import PREFIX
from paranmt_hf.corpus.release.record import WORDING, ReleaseRecord
from paranmt_hf.corpus.release.release import FOLDERS
from paranmt_hf.corpus.release.schema import ANSWERED, COLUMNS, PIVOTED, meanings
from paranmt_hf.corpus.statistics.release_counts import text_histogram
from paranmt_hf.hub.cards import render
from paranmt_hf.hub.languages import LANGUAGES
from paranmt_hf.hub.licenses import License

HISTOGRAMS_PICTURE = "histograms.png"
# Files of a corpus by their paths, other than its card and its record.
RELEASE_FILES = re.compile(rf"({'|'.join(FOLDERS.values())})/[^/]+\.parquet|{re.escape(HISTOGRAMS_PICTURE)}")


def release_card(
    record: ReleaseRecord,
    *,
    picture: bool,
    repository: str | None = None,
    notes: str = "",
) -> str:
    """Render the card of a corpus: YAML header and Markdown text.

    `picture` says whether the histograms are next to the card. Without a `repository`, an id on the Hub, it is the
    card of a local folder; `notes` are a section by the publisher, in Markdown.
    """
    settings, columns = record.settings, described_columns(record)
    configs = {
        name: {**vars(config), "chosen": _chosen(name, config.selection)} for name, config in record.configs.items()
    }
    values = {
        **vars(record),
        "license": License.parse(record.license, listed=False),
        "kind": pair_kind(record),
        "made_by": record.made_by,
        "language": record.language,
        "wanted": settings.get("pairs", {}).get("wanted"),
        "hypotheses": settings.get("translator", {}).get("hypotheses", 1),
        "translator": (settings.get("translator") or settings.get("paraphraser") or {}).get("model", ""),
        "pivot": settings.get("pivot", {}).get("model", ""),
        "configs": configs,
        "columns": columns,
        "names": record.columns,
        "made": {part: _filled(value) for part, value in settings.items() if part != "selection"},
        "selections": _selections(settings.get("selection")),
        "picture": HISTOGRAMS_PICTURE if picture else None,
        "text_histogram": text_histogram(record.statistics.histogram),
        "repository": repository,
        "notes": notes.strip(),
    }
    return render("release", _header(record, columns), values)


def pair_kind(record: ReleaseRecord) -> str:
    """How the pairs were made: imported, mined, paraphrased, answered (by a language model), pivoted or built."""
    settings = record.settings
    if settings.get("pairs", {}).get("kind") == "mined":
        return "mined"
    if "paraphraser" in settings:
        return "paraphrased"
    if str(settings.get("translator", {}).get("model", "")).startswith(PREFIX):
        return "answered"
    if "pivot" in settings:
        return "pivoted"
    return "built" if record.made_by is None else "imported"


def _header(record: ReleaseRecord, columns: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    kind, made_by = pair_kind(record), record.made_by
    found = kind not in ("mined", "imported") or made_by != "machine"
    generated = kind not in ("mined", "imported") or made_by == "machine"
    creators = ["found"] * (found or kind == "imported") + ["machine-generated"] * generated
    source = record.source
    features = [{"name": column["name"], "dtype": column["type"]} for column in columns]
    header: dict[str, Any] = {
        "pretty_name": " ".join((record.title or record.name).split()),
        **License.parse(record.license, listed=False).header,
        "language": [record.language],
        "multilinguality": ["monolingual"],
        "language_creators": creators,
        "source_datasets": [f"extended|{source['dataset']}" if source.get("kind") == "hub" else "extended|other"],
        "task_categories": ["sentence-similarity", "text-generation"],
        "size_categories": [size_category(record.configs["default"].rows)],
        "tags": ["paraphrase", *(["back-translation"] * (kind in ("built", "pivoted", "answered"))), "paranmt"],
        "configs": [],
        "dataset_info": [],
    }
    for name, config in record.configs.items():
        folder = next(iter(config.files)).split("/")[0]
        files = [{"split": "train", "path": f"{folder}/train-*.parquet"}]
        default = {"default": True} if name == "default" else {}
        header["configs"].append({"config_name": name, **default, "data_files": files})
        # Without `splits`: `datasets` would compare them with the rows that `filters=` leaves, and refuse. The counts
        # are in the card's table and in build.json.
        sizes = {"download_size": config.file_bytes, "dataset_size": config.bytes}
        header["dataset_info"].append({"config_name": name, "features": features, **sizes})
    return header


def size_category(rows: int) -> str:
    """The Hub's name for a number of rows."""
    names = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M")
    return next((name for power, name in enumerate(names, 3) if rows < 10**power), "100M<n<1B")


def _chosen(name: str, selection: Mapping[str, Any]) -> str:
    """Describe which rows a config contains."""
    if name == "default":
        return "all"
    if name == "sample":
        return f"at most 1,000 sampled at random, seed {selection['seed']}"
    parts = []
    for column, (low, high) in selection.items():
        parts += [f"{column} >= {low:.4f}"] if low is not None else []
        parts += [f"{column} <= {high}"] if high is not None else []
    return ", ".join(parts)


def _filled(value: Any) -> Any:  # noqa: ANN401 - JSON values
    """Part of the settings without unset values and without card texts."""
    if not isinstance(value, Mapping):
        return value
    return {name: part for name, part in value.items() if part not in (None, [], {}) and name not in WORDING}


def _selections(selection: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """The corpora from which the rows were selected, the first selection first."""
    return [] if not selection else [*_selections(selection.get("before")), selection]


def described_columns(record: ReleaseRecord) -> list[dict[str, str]]:
    """Name, type and meaning of each column of a corpus."""
    said = meanings(record.made_by, record.source, LANGUAGES.get(record.language, "English"))
    if "pivot" in record.settings:
        said |= PIVOTED
    if record.settings.get("translator", {}).get("model", "").startswith(PREFIX):
        said |= ANSWERED
    if "rank" in record.columns:
        said["translation"] = f"{said['translation'].replace('best hypothesis', 'hypothesis')}, that of this rank"
    return [
        {
            "name": column.name,
            "type": {"float": "float32"}.get(str(column.type), str(column.type)),
            "meaning": said[column.name],
        }
        for column in COLUMNS
        if column.name in record.columns
    ]
