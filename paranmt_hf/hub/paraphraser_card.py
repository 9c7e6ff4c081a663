"""Cards of paraphrasers, rendered from recorded values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paranmt_hf.hub.cards import render
from paranmt_hf.hub.licenses import License

# Values that a paraphraser may not have.
ABSENT = ("repository", "figures", "templates", "parses", "notes")


def paraphraser_card(values: Mapping[str, Any]) -> str:
    """Render the card of a paraphraser.

    Args:
        values: `name`, of the folder; `summary`, a sentence; `data`, what it was trained on; `command`; `made`,
            Markdown on settings and versions; `figures`, Markdown of more figures, if there are some; `measured`:
            figures over the steps, each with `step`, `loss`, `perplexity` and `bleu`; `best`, the step whose
            weights are kept; `own`, whether the model needs this package or its own code to load; `license`,
            `license_name`, `license_link`, if a licence is stated, and `license_text`; `datasets`, ids on the Hub; `languages`, if
            they are not English alone; if it is published, `repository`, and `notes`, the publisher's own section. Of
            a syntactically controlled network also `templates`, the most frequent ones with their counts, and
            `parses`, figures of the parse generator, each with `step`, `loss`, `perplexity` and `template_match`.

    Returns:
        YAML header and Markdown text.
    """
    license = License(values.get("license") or "", values.get("license_name"), values.get("license_link"))
    header: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "language": list(values.get("languages") or ["en"]),
        **license.header,
        "tags": ["paraphrase", "paraphrase-generation", "paranmt"],
    }
    if values.get("datasets"):
        header["datasets"] = list(values["datasets"])
    return render("paraphraser", header, {**dict.fromkeys(ABSENT), **values})
