"""The card of a release: its record and the schema, turned into what the template takes."""

from __future__ import annotations

import re

import pyarrow as pa

from paranmt_hf.corpus.language_models.config import PREFIX
from paranmt_hf.corpus.record import ReleaseRecord
from paranmt_hf.corpus.release import FOLDERS
from paranmt_hf.corpus.schema import ANSWERED, COLUMNS, PIVOTED, meanings
from paranmt_hf.corpus.statistics import text_histogram
from paranmt_hf.hub.dataset_card import dataset_card
from paranmt_hf.hub.languages import LANGUAGES

HISTOGRAMS_PICTURE = "histograms.png"
# Files of a release by their paths, beside its card and its record.
RELEASE_FILES = re.compile(rf"({'|'.join(FOLDERS.values())})/[^/]+\.parquet|{re.escape(HISTOGRAMS_PICTURE)}")


def release_card(
    record: ReleaseRecord,
    *,
    picture: bool,
    repository: str | None = None,
    version: str | None = None,
    notes: str = "",
) -> str:
    """Render the card of a release.

    Args:
        record: Its record.
        picture: Whether the histograms lie beside the card as a picture.
        repository: Id on the Hub; without one the card speaks of the folder.
        version: Name of a version on the Hub, for the example.
        notes: Markdown of the publisher's own, which becomes a section.

    Returns:
        YAML header and Markdown text.
    """
    drawn = text_histogram(record.statistics.histogram)
    values = {
        "made_by": record.made_by,
        "picture": HISTOGRAMS_PICTURE if picture else None,
        "text_histogram": drawn,
        "repository": repository,
        "revision": version,
        "notes": notes,
    }
    return dataset_card({**record.to_json(), **values, "columns": described_columns(record)})


def described_columns(record: ReleaseRecord) -> list[dict[str, str]]:
    """Give the name, the type and the meaning of each column of a release."""
    language = LANGUAGES.get(record.language, "English")
    source = next((record.settings[part] for part in ("bitext", "text", "pairs") if part in record.settings), {})
    said = meanings(record.made_by, source, language)
    if "pivot" in record.settings:
        said |= PIVOTED
    if record.settings.get("translator", {}).get("model", "").startswith(PREFIX):
        said |= ANSWERED
    if "rank" in record.columns:
        said["translation"] = f"{said['translation'].replace('best hypothesis', 'hypothesis')}, that of this rank"
    return [
        {"name": column.name, "type": _type_name(column.type), "meaning": said[column.name]}
        for column in COLUMNS
        if column.name in record.columns
    ]


def _type_name(kind: pa.DataType) -> str:
    """The name that the Hub has for an Arrow type."""
    return {"float": "float32"}.get(str(kind), str(kind))
