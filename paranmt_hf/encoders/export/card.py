"""The README.md of an exported encoder: how to load it, and what is not as in the encoder it was made from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import yaml

from paranmt_hf.encoders.export.formats import Format
from paranmt_hf.hub.markdown import escape, quoted
from paranmt_hf.hub.repository import Model
from paranmt_hf.util.yaml_files import card_header

LICENSE_KEYS = ("license", "license_name", "license_link")
TRIGRAM_NOTE = (
    "Its tokenizer makes character trigrams out of stock components of the `tokenizers` library: equal for any text, "
    "but 25 times as slow as the source under `paranmt_hf.load`, or more. The vocabulary of the tokenizer holds "
    "trigrams spelled with other symbols."
)


def card(name: str, format: Format, kinds: Sequence[str], source: Model) -> str:
    """Render the README.md of an export.

    Args:
        name: Name of the folder.
        format: Format it was exported to.
        kinds: The encoders that are combined, by the names of the paper.
        source: The encoder that was exported; its licence is taken over.

    Returns:
        YAML header and Markdown text.
    """
    license = stated_license(source)
    header = {
        "library_name": format.library,
        "tags": ["sentence-similarity", "feature-extraction", "paranmt", *(kind.lower() for kind in kinds)],
        **license,
    }
    notes = [format.note]
    if "TRIGRAM" in kinds:
        notes.append(TRIGRAM_NOTE)
    if not license:
        notes.append("The source states no licence; ask its authors before you pass this on.")
    text = "\n\n".join(notes)
    program = f"```{format.language}\n{_usage(name, format, len(kinds))}\n```"
    return (
        f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True)}---\n\n# {escape(name)}\n\n"
        f"{', '.join(kinds)}: the sentence encoder {escape(source.name)} of paranmt-hf, exported with "
        f"`paranmt encoder export --format {format.name}`.\n\n{program}\n\n{text}\n"
    )


def _usage(name: str, format: Format, parts: int) -> str:
    suffixes = [""] if parts == 1 else [f"_{number}" for number in range(parts)]
    # It stands in a string of Python there.
    usage = format.usage_combined if parts > 1 and format.usage_combined else format.usage
    return usage.format(name=quoted(name)[1:-1], suffixes=json.dumps(suffixes))


def stated_license(source: Model) -> dict[str, str]:
    """Read what the header of a model's README.md, or else its training.json, says about its licence."""
    record = source.folder / "training.json"
    stated: Any = card_header(source.folder / "README.md")
    if "license" not in stated and record.is_file():
        try:
            stated = json.loads(record.read_text(encoding="utf8"))
        except (ValueError, RecursionError):
            stated = None
    if not isinstance(stated, dict) or not isinstance(stated.get("license"), str):
        return {}
    return {key: stated[key] for key in LICENSE_KEYS if isinstance(stated.get(key), str)}
