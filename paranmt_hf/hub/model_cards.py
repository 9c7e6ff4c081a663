"""Cards of encoders, rendered from recorded results and never written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from string import Template
from typing import Any

import yaml

DEVELOPMENT = "STS17-track5"
BAG = "The order of words tells nothing apart: “dog bites man” is “man bites dog”."
SEQUENCE = "It reads words in order, but was trained on sentences of at most some dozens of words."


def model_card(record: Mapping[str, Any]) -> str:
    """Render the card of an encoder.

    Args:
        record: `name`, `summary`, `data`, `commands`, `license`, `license_text`, `training` (the content of the
            model's `training.json`), `results` (an `StsResult` as JSON values), and `precisions`: for each way to
            store the rows its size in bytes and results.

    Returns:
        YAML header and Markdown text.
    """
    header = yaml.safe_dump(_header(record), sort_keys=False, allow_unicode=True, width=1000)
    template = Template((resources.files("paranmt_hf.hub") / "templates" / "model_card.md").read_text(encoding="utf8"))
    return f"---\n{header}---\n\n{template.substitute(_texts(record))}"


def _header(record: Mapping[str, Any]) -> dict[str, Any]:
    results = record["results"]
    entries = [
        _result(year["name"], year["name"], "Pearson, mean of the sets", year["mean"]) for year in results["years"]
    ]
    entries += [
        _result(one["name"], one["name"], "Pearson", one["pearson"])
        for one in results["sets"]
        if one["year"] is None and one["part_of"] is None
    ]
    return {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "language": ["en"],
        "license": record["license"],
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", "paranmt", "paraphrase"],
        "model-index": [{"name": record["name"], "results": entries}],
    }


def _result(kind: str, name: str, metric: str, value: float) -> dict[str, Any]:
    return {
        "task": {"type": "sentence-similarity", "name": "Semantic textual similarity"},
        "dataset": {"type": kind.lower(), "name": name},
        "metrics": [{"type": "pearson", "name": metric, "value": round(100 * value, 2)}],
    }


def _texts(record: Mapping[str, Any]) -> dict[str, str]:
    results, training = record["results"], record["training"]
    parts = training["settings"]["encoder"]["model"]
    return {
        "name": record["name"],
        "summary": record["summary"],
        "usage": _usage(record["name"], record["stock"]),
        "sets": _sets(results),
        "years": "\n".join(
            f"| {year['name']} | {_percent(year['mean'])} | {_percent(year['weighted_mean'])} | "
            f"{_percent(year['all_pearson'])} | {_percent(year['all_spearman'])} |"
            for year in results["years"]
        )
        + f"\n| mean | **{_percent(results['mean'])}** | | | |",
        "notes": " ".join(results["notes"]),
        "precisions": "\n".join(
            f"| {name} | {entry['bytes'] / 1e6:.1f} | {_percent(entry['mean'])} | {_percent(entry['development'])} |"
            for name, entry in record["precisions"].items()
        ),
        "data": record["data"],
        "commands": "\n".join(record["commands"]),
        "training": _training(training),
        "trigrams": " and character trigrams" if "trigram" in parts else "",
        "order": SEQUENCE if "lstm" in parts else BAG,
        "license_text": record["license_text"],
    }


def _usage(name: str, stock: bool) -> str:
    lines = ["import paranmt_hf", "", f'model = paranmt_hf.load("{name}")  # no code of the model runs']
    flag = "" if stock else ", trust_remote_code=True"
    lines += ["", "# without this package", "from sentence_transformers import SentenceTransformer", ""]
    lines.append(f'model = SentenceTransformer("{name}"{flag})')
    lines += ["", 'vectors = model.encode(["A dog runs.", "A dog is running."])']
    return "\n".join(lines)


def _sets(results: Mapping[str, Any]) -> str:
    rows = ["| set | pairs | Pearson | 95 % | Spearman |", "|---|---:|---:|---|---:|"]
    for one in results["sets"]:
        # A subset stands below its set, under its own name.
        name = (
            f"{one['part_of']} {one['name']}" if one["part_of"] and one["part_of"] not in one["name"] else one["name"]
        )
        name = f"{one['year']} {name}" if one["year"] else name
        interval = " to ".join(_percent(bound) for bound in one["interval"]) if one["interval"] else ""
        rows.append(
            f"| {name} | {one['pairs']:,} | {_percent(one['pearson'])} | {interval} | {_percent(one['spearman'])} |"
        )
    return "\n".join(rows)


def _training(training: Mapping[str, Any]) -> str:
    settings, history = training["settings"]["training"], training["history"]
    versions = ", ".join(f"{name} {version}" for name, version in training["versions"].items())
    lines = [
        f"The last command: {history['pairs']:,} pairs in passes over {training['pairs']:,}, mini-batches of "
        f"{settings['batch_size']} pairs, {_objective(settings)}, Adam at {settings['learning_rate']}, seed "
        f"{settings['seed']}; {history['seconds']:,.0f} s of training. {training['dimension']} dimensions, "
        f"{training['parameters']:,} parameters. Made with paranmt-hf {training['paranmt_hf']}, {versions}."
    ]
    if training["development"] is not None:
        lines.append(
            "Every setting was chosen on the development set, the 250 pairs of STS 2017 track 5 (Pearson "
            f"{_percent(training['development'])})."
        )
    if excluded := training["settings"]["data"]["unwanted_sentences"]:
        lines[-1] += f" Pairs with one of {excluded:,} sentences of STS sets were left out of the training data."
    return "\n\n".join(lines)


def _objective(settings: Mapping[str, Any]) -> str:
    terms = []
    if not settings["teacher"] or settings["teacher_weight"] < 1:
        terms.append(f"margin {settings['margin']} with M = {settings['mega_batch']}")
    if settings["teacher"]:
        terms.append("a teacher's similarities")
    return " and ".join(terms)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"
