"""Cards of paraphrasers, rendered from recorded values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from paranmt_hf.hub.licenses import License
from paranmt_hf.hub.markdown import Code, escape, quoted, table
from paranmt_hf.hub.model_card import CITATION

LIMITS = (
    "A paraphrase may lose, add or change what a sentence says: names, numbers and negations most of all. Its "
    "paraphrase score tells nothing about these; look at them before they are used."
)


def paraphraser_card(record: Mapping[str, Any]) -> str:
    """Render the card of a paraphraser.

    Args:
        record: `name`, the id or the folder's name; `summary`, a sentence; `data`, what it was trained on; `command`;
            `made`, Markdown on settings and versions; `figures`, Markdown of more figures, where there are some;
            `measured`: figures over the steps, each with `step`, `loss`, `perplexity` and `bleu`; `best`, the step
            whose weights are kept; `own`, whether the model needs this package or its own code to load; `license`,
            `license_name`, `license_link`, where a licence is stated, and `license_text`; `datasets`, ids on the Hub;
            `languages`, where they are not English alone; where it is published, `repository`, and `notes`, Markdown
            of the publisher's own. Of a syntactically controlled network also `templates`, the most frequent ones with
            their counts, and `parses`, figures of the parse generator over the steps, each with `step`, `loss`,
            `perplexity` and `template_match`.

    Returns:
        YAML header and Markdown text.
    """
    header: dict[str, Any] = {"library_name": "transformers", "pipeline_tag": "text-generation"}
    header["language"] = list(record.get("languages", ["en"]))
    if record.get("license"):
        header |= License(record["license"], record.get("license_name"), record.get("license_link")).header
    header["tags"] = ["paraphrase", "paraphrase-generation", "paranmt"]
    if record.get("datasets"):
        header["datasets"] = list(record["datasets"])
    head = yaml.safe_dump(header, sort_keys=False, allow_unicode=True, width=1000)
    parts = [
        f"# {escape(record['name'])}",
        record["summary"],
        f"## Use\n\n```python\n{_usage(record)}\n```\n\n{_loading(record)}",
        f"## Results\n\n{_results(record)}",
        *([f"## Templates\n\n{_templates(record)}"] if record.get("templates") else []),
        f"## Training\n\n{record['data']}\n\n```\n{record['command']}\n```\n\n{record['made']}",
        f"## Limits\n\n{LIMITS}",
        f"## Licence\n\n{record['license_text']}",
        f"## Citation\n\n```\n{CITATION}\n```",
    ]
    if notes := str(record.get("notes") or "").strip():
        parts.insert(-2, f"## Notes\n\n{notes}")
    return f"---\n{head}---\n\n" + "\n\n".join(parts) + "\n"


def _usage(record: Mapping[str, Any]) -> str:
    asked, shown = "n=3", "paraphrase.score, paraphrase.text"
    if record.get("templates"):
        first = [template for template, _ in record["templates"][:2]]
        asked, shown = f"templates=[{', '.join(map(quoted, first))}]", f"paraphrase.template, {shown}"
    return "\n".join(
        [
            "from paranmt_hf import load_paraphraser",
            "",
            f"paraphraser = load_paraphraser({quoted(record.get('repository') or record['name'])})",
            f'for paraphrase in paraphraser(["a man is playing a guitar ."], {asked})[0]:',
            f"    print({shown})",
        ]
    )


def _loading(record: Mapping[str, Any]) -> str:
    if not record["own"]:
        return "`AutoModelForSeq2SeqLM` and `AutoTokenizer` of transformers load it too."
    return (
        "`AutoModelForSeq2SeqLM` of transformers loads it too: after `import paranmt_hf.paraphrase.loading`, or, "
        "where that package is not installed, with `trust_remote_code=True`, which runs the code beside the weights."
    )


def _results(record: Mapping[str, Any]) -> str:
    if not record["measured"]:
        return "No pairs were held out, so nothing was measured."
    rows = [
        (
            f"{each['step']:,}",
            f"{each['loss']:.3f}",
            f"{each['perplexity']:.2f}",
            "" if each["bleu"] is None else f"{each['bleu']:.1f}",
        )
        for each in record["measured"]
    ]
    figures = f"\n\n{record['figures']}" if record.get("figures") else ""
    return (
        "Pairs whose references are in no pair that was trained on: cross-entropy of a target piece, perplexity, and "
        f"BLEU of the most probable pieces. The weights are those of step {record['best']:,}.\n\n"
        f"| step | loss | perplexity | BLEU |\n|---:|---:|---:|---:|\n{table(rows)}{figures}"
    )


def _templates(record: Mapping[str, Any]) -> str:
    seen = table([(Code(template), f"{count:,}") for template, count in record["templates"]])
    parts = [f"The most frequent ones that it was trained on:\n\n| template | sentences |\n|---|---:|\n{seen}"]
    if record["parses"]:
        rows = [
            (f"{each['step']:,}", f"{each['loss']:.3f}", f"{each['perplexity']:.2f}", f"{each['template_match']:.1%}")
            for each in record["parses"]
        ]
        parts.append(
            "The parse generator on held-out pairs: cross-entropy of a token of the tree, perplexity, and how many of "
            "the most probable trees have the template that was asked for. The paraphrase generator above had the "
            f"targets' own trees.\n\n| step | loss | perplexity | template |\n|---:|---:|---:|---:|\n{table(rows)}"
        )
    return "\n\n".join(parts)
