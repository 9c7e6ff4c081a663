"""The card of a corpus, made from a template, the record of the corpus and the schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from paranmt_hf.corpus.language_models.config import PREFIX
from paranmt_hf.corpus.release.record import WORDING, ReleaseRecord
from paranmt_hf.corpus.release.release import FOLDERS
from paranmt_hf.corpus.release.schema import COLUMNS, IMPORTED, MEANINGS, SECOND
from paranmt_hf.corpus.statistics.release_counts import text_histogram
from paranmt_hf.hub.cards import render
from paranmt_hf.hub.licenses import License
from paranmt_hf.text.languages import LANGUAGES

HISTOGRAMS_PICTURE = "histograms.png"
# Paths of all files of a corpus except its card and its record.
RELEASE_FILES = re.compile(rf"({'|'.join(FOLDERS.values())})/[^/]+\.parquet|{re.escape(HISTOGRAMS_PICTURE)}")


def release_card(
    record: ReleaseRecord,
    *,
    picture: bool,
    repository: str | None = None,
    notes: str = "",
) -> str:
    """Return the card of a corpus: a YAML header and text in Markdown.

    Args:
        record: Record of the corpus.
        picture: Whether the picture of the histograms is next to the card.
        repository: Id on the Hub; None for the card of a local folder.
        notes: Section by the publisher, in Markdown; empty for none.
    """
    settings, columns = record.settings, described_columns(record)
    values = {
        "record": record,
        "license": License.parse(record.license, listed=False),
        "kind": pair_kind(record),
        "wanted": settings.get("pairs", {}).get("wanted"),
        "hypotheses": settings.get("translator", {}).get("hypotheses", 1),
        "translator": (settings.get("translator") or settings.get("paraphraser") or {}).get("model", ""),
        "pivot": settings.get("pivot", {}).get("model", ""),
        "chosen": {name: _chosen(name, config.selection) for name, config in record.configs.items()},
        "columns": columns,
        "made": {part: _filled(value) for part, value in settings.items() if part != "selection"},
        "picture": HISTOGRAMS_PICTURE if picture else None,
        "text_histogram": text_histogram(record.statistics.histogram),
        "repository": repository,
        "notes": notes.strip(),
    }
    return render("release", _header(record, columns), values)


def pair_kind(record: ReleaseRecord) -> str:
    """Return how the pairs were made.

    That is "imported", "mined", "paraphrased" (by a language model), "answered" (translated by a language model),
    "pivoted" (translated there and back) or "built" (translated).
    """
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
    """Return the values of the YAML header."""
    kind, source = pair_kind(record), record.source
    translated = kind not in ("mined", "imported")
    creators, tags = [], ["paraphrase", "paranmt"]
    if translated or kind == "imported" or record.made_by != "machine":
        creators.append("found")
    if translated or record.made_by == "machine":
        creators.append("machine-generated")
    if kind in ("built", "pivoted", "answered"):
        tags.insert(1, "back-translation")
    header: dict[str, Any] = {
        "pretty_name": " ".join((record.title or record.name).split()),
        **License.parse(record.license, listed=False).header,
        "language": [record.language],
        "multilinguality": ["monolingual"],
        "language_creators": creators,
        "source_datasets": [f"extended|{source['dataset']}" if source.get("kind") == "hub" else "extended|other"],
        "task_categories": ["sentence-similarity", "text-generation"],
        "size_categories": [size_category(record.configs["default"].rows)],
        "tags": tags,
        "configs": [],
        "dataset_info": [],
    }
    features = [{"name": column["name"], "dtype": column["type"]} for column in columns]
    for name, config in record.configs.items():
        files = [{"split": "train", "path": f"{FOLDERS[name]}/train-*.parquet"}]
        default = {"default": True} if name == "default" else {}
        header["configs"].append({"config_name": name, **default, "data_files": files})
        # There are no `splits`, because `datasets` would compare their counts with the rows that `filters=` leaves,
        # and fail. The counts are in the table of the card and in build.json.
        sizes = {"download_size": config.file_bytes, "dataset_size": config.bytes}
        header["dataset_info"].append({"config_name": name, "features": features, **sizes})
    return header


def size_category(rows: int) -> str:
    """Return the Hub's name for the range that a number of rows is in, such as "1K<n<10K"."""
    names = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M")
    return next((name for power, name in enumerate(names, 3) if rows < 10**power), "100M<n<1B")


def _chosen(name: str, selection: Mapping[str, Any]) -> str:
    """Describe which rows a config has, for the table of configs."""
    if name == "default":
        return "all"
    if name == "sample":
        return f"at most 1,000 sampled at random, seed {selection['seed']}"
    parts = []
    for column, (low, high) in selection.items():
        if low is not None:
            parts.append(f"{column} >= {low:.4f}")
        if high is not None:
            parts.append(f"{column} <= {high}")
    return ", ".join(parts)


def _filled(value: Any) -> Any:  # noqa: ANN401 - JSON values
    """Return a part of the settings without unset values and without texts of the card."""
    if not isinstance(value, Mapping):
        return value
    return {name: part for name, part in value.items() if part not in (None, [], {}) and name not in WORDING}


def described_columns(record: ReleaseRecord) -> list[dict[str, str]]:
    """Return name, type and meaning of each column of a corpus, for the table of columns."""
    kind, source = pair_kind(record), record.source
    meanings = {column.name: column.meaning for column in COLUMNS}
    meanings["reference"] = meanings["reference"].replace("English", LANGUAGES.get(record.language, "English"))
    if record.made_by is not None:
        meanings |= IMPORTED | {"translation": SECOND[record.made_by]}
    meanings |= MEANINGS.get(kind, {})
    if "rank" in record.columns:
        translation = meanings["translation"].replace("best hypothesis", "hypothesis")
        meanings["translation"] = f"{translation}, that of this rank"
    columns = source.get("columns")
    if isinstance(columns, Mapping) and "origin" in columns:
        meanings["origin"] = f"what stands in the input's column {columns['origin']!r} (null where that is empty)"
    if source.get("kind") == "preset" and source.get("label_meaning"):
        meanings["label"] = str(source["label_meaning"])
    if source.get("kind") == "phrases":
        meanings["ppdb_score"] = f"the feature {source.get('score')} of PPDB (null where that is NA)"
    described = []
    for column in COLUMNS:
        if column.name in record.columns:
            dtype = "float32" if column.type == pa.float32() else str(column.type)
            described.append({"name": column.name, "type": dtype, "meaning": meanings[column.name]})
    return described
