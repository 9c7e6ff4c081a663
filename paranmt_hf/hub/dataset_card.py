"""Cards: what the Hub and a reader are told about a corpus, rendered from values and never written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

import yaml

# What the small translator that the package carries is: its name says too little.
CARRIED_TRANSLATORS = {
    "captions-cs-en": ", the small Czech-English translator that paranmt-hf carries: trained on captions of Multi30k, "
    "for descriptions of everyday scenes and nothing else, weights under CC BY-NC-SA 4.0"
}
SIZES = (
    (1e3, "n<1K"),
    (1e4, "1K<n<10K"),
    (1e5, "10K<n<100K"),
    (1e6, "100K<n<1M"),
    (1e7, "1M<n<10M"),
    (1e8, "10M<n<100M"),
)


TRANSLATED = "Each pair is the English side of a bitext and a machine translation of the other side"
IMPORTED = "Each pair is a reference and what was brought as its translation or paraphrase"


class _Plain(yaml.SafeDumper):
    """Writes what stands in several places in full, which is easier to read than a reference."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401
        return True


def size_category(rows: int) -> str:
    """The Hub's name for a number of rows."""
    return next((name for limit, name in SIZES if rows < limit), "100M<n<1B")


def dataset_card(values: Mapping[str, Any]) -> str:
    """Render the card of a corpus.

    Args:
        values: The content of a release's `build.json`; under `columns` name, type and meaning of each column; under
            `picture` the histograms' file, if there is one, and under `text_histogram` one of the score in characters;
            under `repository` the id on the Hub, or None for a card that speaks of the folder; under
            `revision` the name of a version there, or None; under `notes` Markdown of the publisher's own.

    Returns:
        YAML header and Markdown text.
    """
    header = yaml.dump(_header(values), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=1000)
    template = Template(
        (resources.files("paranmt_hf.hub") / "templates" / "dataset_card.md").read_text(encoding="utf8")
    )
    return f"---\n{header}---\n\n{template.substitute(_texts(values))}"


def _header(values: Mapping[str, Any]) -> dict[str, Any]:
    configs = values["configs"]
    features = [{"name": column["name"], "dtype": column["type"]} for column in values["columns"]]
    header: dict[str, Any] = {
        "pretty_name": values["name"],
        "license": values["license"],
        "language": ["en"],
        "multilinguality": ["monolingual"],
        "language_creators": ["found", "machine-generated"],
        "source_datasets": [_source_dataset(values["settings"])],
        "task_categories": ["sentence-similarity", "text-generation"],
        "size_categories": [size_category(configs["default"]["rows"])],
        "tags": ["paraphrase", "back-translation", "paranmt"],
        "configs": [],
        "dataset_info": [],
    }
    for name, config in configs.items():
        folder = next(iter(config["files"])).split("/")[0]
        entry: dict[str, Any] = {"config_name": name}
        if name == "default":
            entry["default"] = True
        entry["data_files"] = [{"split": "train", "path": f"{folder}/train-*.parquet"}]
        header["configs"].append(entry)
        # Without `splits`: `datasets` would compare them with the rows that `filters=` leaves, and refuse. The counts
        # stand in the card's table and in build.json.
        header["dataset_info"].append(
            {
                "config_name": name,
                "features": features,
                "download_size": config["file_bytes"],
                "dataset_size": config["bytes"],
            }
        )
    return header


def _source_dataset(settings: Mapping[str, Any]) -> str:
    """The Hub's name for where a corpus comes from: a dataset there, or text from elsewhere."""
    source = settings.get("bitext", settings.get("pairs", {}))
    return f"extended|{source['dataset']}" if source.get("kind") == "hub" else "extended|other"


def _usage(values: Mapping[str, Any]) -> str:
    configs, name = values["configs"], values["repository"] or values["name"]
    where = "" if values["repository"] else ", from the folder above this one"
    lines = [
        "from datasets import load_dataset",
        "",
        f'pairs = load_dataset("{name}")  # every pair{where}',
    ]
    if "filtered" in configs:
        lines.append(
            f'best = load_dataset("{name}", "filtered")  # top two tenths of the paraphrase score, at most 30 tokens'
        )
    lines.append(f'few = load_dataset("{name}", "sample")  # at most 1,000 pairs drawn by chance')
    if revision := values["revision"]:
        lines.append(
            f'same = load_dataset("{name}", revision="{revision}")  # one of the versions, which stay as they are'
        )
    lines += [
        "stream = load_dataset(",
        f'    "{name}",',
        '    split="train",',
        "    streaming=True,",
        '    columns=["reference", "translation", "para_score"],',
        '    filters=[("para_score", ">", 0.7)],',
        ")",
        "for pair in stream:  # to its end: a process that leaves a stream early may hang when it ends",
        '    print(pair["para_score"], pair["reference"], pair["translation"])',
    ]
    return "\n".join(lines)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    statistics, configs = values["statistics"], values["configs"]
    picture = values["picture"]
    return {
        "name": values["name"],
        "rows": f"{statistics['rows']:,}",
        "origin": TRANSLATED if "translator" in values["settings"] else IMPORTED,
        "usage": _usage(values),
        "configs": _table(
            [_Code(name), f"{config['rows']:,}", f"{config['file_bytes']:,}", _selection(name, config["selection"])]
            for name, config in configs.items()
        ),
        "columns": _table([_Code(column["name"]), column["type"], column["meaning"]] for column in values["columns"]),
        "ranges": _table(
            [
                part["range"],
                f"{part['rows']:,}",
                _number(part["mean_trigram_overlap"], 2),
                _number(part["mean_length"], 1),
            ]
            for part in statistics["ranges"]
        ),
        "picture": f"![Histograms of scores, overlap and length]({picture})\n\n" if picture else "",
        "histogram": values["text_histogram"],
        "examples": _examples(statistics["ranges"]),
        "mean_reference_length": str(statistics["mean_reference_length"]),
        "mean_translation_length": str(statistics["mean_translation_length"]),
        "mean_translation_score": _number(statistics["mean_translation_score"], 3),
        "made": _settings(values["settings"]),
        "dropped": ", ".join(f"{count:,} {reason}" for reason, count in values["dropped"].items()) or "nothing",
        "schema_version": values["schema_version"],
        "version": values["version"],
        "warnings": _warnings(values),
        "license": values["license"],
        "provenance": _provenance(values["settings"]),
    }


def _selection(name: str, selection: Mapping[str, Any]) -> str:
    if name == "default":
        return "all"
    if name == "sample":
        return f"at most 1,000 drawn by chance, seed {selection['seed']}"
    parts = []
    for column, (low, high) in selection.items():
        parts += [f"{column} >= {low:.4f}"] if low is not None else []
        parts += [f"{column} <= {high}"] if high is not None else []
    return ", ".join(parts)


def _table(rows: Any) -> str:  # noqa: ANN401
    return "\n".join("| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows)


class _Code(str):
    """A cell to be set as code."""


def _cell(text: str) -> str:
    """Keep text from breaking out of its table cell or becoming markup."""
    if isinstance(text, _Code):
        return _code(text)
    for character in "\\|<>`*_[]":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


def _code(value: object) -> str:
    """Set a value as code; a backtick in it would end that."""
    return "`" + " ".join(str(value).replace("`", "'").replace("|", "/").split()) + "`"


def _number(value: float | None, digits: int) -> str:
    return "none" if value is None else f"{value:.{digits}f}"


def _examples(ranges: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [part["range"], f"{row['para_score']:.2f}", row["reference"], row["translation"]]
        for part in ranges
        for row in part["examples"]
    ]
    return f"| range | score | reference | translation |\n|---|---:|---|---|\n{_table(rows)}"


def _settings(settings: Mapping[str, Any]) -> str:
    """List nested settings, one line for each part."""
    lines = []
    for part, value in settings.items():
        if isinstance(value, Mapping):
            text = ", ".join(f"{name} {_short(entry)}" for name, entry in value.items() if entry not in (None, [], {}))
        else:
            text = _short(value)
        lines.append(f"- **{part.replace('_', ' ')}**: {text}")
    return "\n".join(lines)


def _short(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{name} {_short(entry)}" for name, entry in value.items()) + ")"
    if isinstance(value, list | tuple):
        return ", ".join(_short(entry) for entry in value)
    return _code(value)


def _warnings(values: Mapping[str, Any]) -> str:
    lines = [f"**Warning:** {_cell(warning)}." for warning in values.get("warnings", ())]
    lines += [f"## Notes\n\n{values['notes'].strip()}"] if values.get("notes") else []
    return "".join(f"{line}\n\n" for line in lines)


def _provenance(settings: Mapping[str, Any]) -> str:
    lines = ["The reference sentences come from the input named above; its licence binds whoever uses them."]
    if "translator" in settings:
        model = settings["translator"]["model"]
        lines.append(f"The translations were made by the model {_code(model)}{CARRIED_TRANSLATORS.get(model, '')}.")
    else:
        lines.append("The translations were imported; which system made them is for the input's owner to say.")
    return " ".join(lines)
