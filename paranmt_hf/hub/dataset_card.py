"""Cards of corpora for the Hub and its readers, rendered from values and never written by hand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

import yaml

from paranmt_hf.hub.languages import LANGUAGES
from paranmt_hf.hub.licenses import License
from paranmt_hf.hub.markdown import Code, code, escape, quoted, table
from paranmt_hf.hub.pair_kinds import (
    ANSWERED,
    BUILT,
    IMPORTED,
    MINED,
    PARAPHRASED,
    PIVOTED,
    USES,
    USES_LABELLED,
    PairKind,
)

# What the two sentences of a pair are to each other, by the labels that were asked for.
MEANING = {
    "1": "that mean about the same",
    "0": "that do not mean the same, as their authors' labels say",
    "any": "of which those that mean about the same have a `label` of 1",
}
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


# Settings that are words of the card.
WORDS = ("title", "description")


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
            `made_by` who wrote the second sentences of imported pairs, None for translations of this package; under
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
        "pretty_name": " ".join(_title(values).split()),
        **_license(values).header,
        "language": [_language(values)],
        "multilinguality": ["monolingual"],
        "language_creators": list(_kind(values).creators),
        "source_datasets": [_source_dataset(values["settings"])],
        "task_categories": ["sentence-similarity", "text-generation"],
        "size_categories": [size_category(configs["default"]["rows"])],
        "tags": ["paraphrase", *_kind(values).tags, "paranmt"],
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


def _kind(values: Mapping[str, Any]) -> PairKind:
    if _is_mined(values):
        return MINED[values["made_by"]]
    if "paraphraser" in values["settings"]:
        return PARAPHRASED
    if str(values["settings"].get("translator", {}).get("model")).startswith("openai:"):
        return ANSWERED
    if "pivot" in values["settings"]:
        return PIVOTED
    return BUILT if values["made_by"] is None else IMPORTED[values["made_by"]]


def _is_mined(values: Mapping[str, Any]) -> bool:
    return values["settings"].get("pairs", {}).get("kind") == "mined"


def _title(values: Mapping[str, Any]) -> str:
    return str(values.get("title") or values["name"])


def _license(values: Mapping[str, Any]) -> License:
    return License(values["license"], values.get("license_name"), values.get("license_link"))


def _source_dataset(settings: Mapping[str, Any]) -> str:
    """The Hub's name for where a corpus comes from: a dataset there, or text from elsewhere."""
    source: Mapping[str, Any] = next((settings[part] for part in ("bitext", "text", "pairs") if part in settings), {})
    return f"extended|{source['dataset']}" if source.get("kind") == "hub" else "extended|other"


def _usage(values: Mapping[str, Any]) -> str:
    configs, name = values["configs"], quoted(values["repository"] or values["name"])
    where = "" if values["repository"] else ", from the folder above this one"
    lines = [
        "from datasets import load_dataset",
        "",
        f"pairs = load_dataset({name})  # every pair{where}",
    ]
    if "filtered" in configs:
        lines.append(
            f'best = load_dataset({name}, "filtered")  # top two tenths of the paraphrase score, at most 30 tokens'
        )
    lines.append(f'few = load_dataset({name}, "sample")  # at most 1,000 pairs drawn by chance')
    if revision := values["revision"]:
        lines.append(
            f'same = load_dataset({name}, revision="{revision}")  # one of the versions, which stay as they are'
        )
    lines += [
        "stream = load_dataset(",
        f"    {name},",
        '    split="train",',
        "    streaming=True,",
        '    filters=[("para_score", ">", 0.7)],',
        ').select_columns(["reference", "translation", "para_score"])',
        "for pair in stream:  # to its end: a process that leaves a stream early may abort when it ends",
        '    print(pair["para_score"], pair["reference"], pair["translation"])',
    ]
    return "\n".join(lines)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    statistics, configs, kind = values["statistics"], values["configs"], _kind(values)
    return {
        "title": escape(_title(values)),
        "description": _description(values, kind),
        "usage": _usage(values),
        "uses": "\n\n".join(USES if _wanted(values) is None else USES_LABELLED),
        "configs": table(
            [Code(name), f"{config['rows']:,}", f"{config['file_bytes']:,}", _selection(name, config["selection"])]
            for name, config in configs.items()
        ),
        "columns": table([Code(column["name"]), column["type"], column["meaning"]] for column in values["columns"]),
        "reading": _reading(values),
        "ranges": table(
            [
                part["range"],
                f"{part['rows']:,}",
                _number(part["mean_trigram_overlap"], 2),
                _number(part["mean_length"], 1),
            ]
            for part in statistics["ranges"]
        ),
        "histogram": _histogram(values),
        "examples": _examples(statistics["ranges"]),
        "means": _means(values),
        "made": _settings({name: part for name, part in values["settings"].items() if name != "selection"}),
        "selected": "".join(_selected(values["settings"].get("selection"))),
        "dropped": ", ".join(f"{count:,} {escape(reason)}" for reason, count in values["dropped"].items())
        or "nothing",
        "schema_version": escape(values["schema_version"]),
        "version": escape(values["paranmt_hf"]),
        "warnings": _warnings(values),
        "license": _stated(_license(values)),
        "provenance": _provenance(values["settings"], kind),
        "noise": kind.noise,
    }


def _description(values: Mapping[str, Any], kind: PairKind) -> str:
    own = [escape(values["description"])] if values.get("description") else []
    name = LANGUAGES.get(_language(values), "English")
    pairs = kind.pairs.replace("{language}", name)
    meaning = MEANING[_wanted(values) or "1"]
    counted = f"{values['statistics']['rows']:,} pairs of {name} sentences {meaning}. {pairs}"
    if (sentences := values["statistics"].get("sentences")) is not None:
        several = f"{_hypotheses(values)} translations"
        if sentences == values["statistics"]["rows"]:
            counted += f" One of up to {several} of each sentence is left."
        else:
            counted += f" A sentence has up to {several}, each in a row of its own: these are pairs of {sentences:,}."
    return "\n\n".join([*own, counted])


def _wanted(values: Mapping[str, Any]) -> str | None:
    """Which labels the pairs of a labelled data set have: 0, 1 or any; None where there are no labels."""
    wanted: str | None = (values["settings"].get("pairs") or {}).get("wanted")
    return wanted


def _language(values: Mapping[str, Any]) -> str:
    return str(values["settings"].get("release", {}).get("language", "en"))


def _hypotheses(values: Mapping[str, Any]) -> int:
    return int(values["settings"].get("translator", {}).get("hypotheses", 1))


def _reading(values: Mapping[str, Any]) -> str:
    """Say how to read the columns that tell where a row comes from and how good it is."""
    if _is_mined(values):
        return "Provenance: `id` is the rank of the pair, best first. The pairs of another release have other ids."
    names = {column["name"] for column in values["columns"]}
    lines = [
        "Provenance: `id` counts the rows of the input that is named below, those of its files one after the other "
        "and dropped ones too, so the same number means the same row in every release of that input."
    ]
    if "rank" in names:
        lines.append(
            "Rows of one `id` are translations of one sentence, `rank` 1 the best; no two of them have the same text. "
            "Keep them together where data are split into parts, for they share the reference."
        )
    if "origin" in names:
        lines.append("`origin` repeats what the input says of a row; filter by it to take or leave a part.")
    if "translation_score" in names and (values["made_by"] is None or "paraphraser" in values["settings"]):
        lines.append("`translation_score` compares translations of one model, and not those of different models.")
    return " ".join(lines)


def _histogram(values: Mapping[str, Any]) -> str:
    if picture := values["picture"]:
        return f"![Histograms of scores, overlap and length]({picture})"
    return f"```\n{values['text_histogram']}\n```"


def _means(values: Mapping[str, Any]) -> str:
    statistics = values["statistics"]
    lines = [
        f"Mean length: {statistics['mean_reference_length']} tokens (reference), "
        f"{statistics['mean_translation_length']} tokens (translation)."
    ]
    if (score := statistics.get("mean_translation_score")) is not None:
        lines.append(f"Mean translation score: {_number(score, 3)}.")
    if mismatches := statistics.get("mismatches"):
        shares = (f"{code(name)} {count / statistics['rows']:.1%}" for name, count in mismatches.items())
        lines.append(f"Pairs with a mismatch: {', '.join(shares)}.")
    if held_out := values.get("held_out"):
        lines.append(
            f"Mean {code('human_score')}: {_number(statistics['mean_human_score'], 3)}. Its classifier tells "
            f"{held_out['accuracy']:.1%} of held-out sentences right, as many references as translations, and gives "
            f"the reference the higher score in {held_out['ordered']:.1%} of {held_out['pairs']:,} held-out pairs."
        )
    return "\n".join(lines)


def _stated(license: License) -> str:
    return f"[{escape(license.name)}]({license.link})" if license.name and license.link else code(license.id)


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


def _number(value: float | None, digits: int) -> str:
    return "none" if value is None else f"{value:.{digits}f}"


def _examples(ranges: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [part["range"], f"{row['para_score']:.2f}", row["reference"], row["translation"]]
        for part in ranges
        for row in part["examples"]
    ]
    return f"| range | score | reference | translation |\n|---|---:|---|---|\n{table(rows)}"


def _settings(settings: Mapping[str, Any]) -> str:
    """List nested settings, one line for each part; the words at the top of the card are left out."""
    lines = []
    for part, value in settings.items():
        if isinstance(value, Mapping):
            shown = {name: entry for name, entry in value.items() if entry not in (None, [], {}) and name not in WORDS}
            text = ", ".join(f"{escape(name)} {_short(entry)}" for name, entry in shown.items())
        else:
            text = _short(value)
        lines.append(f"- **{escape(part.replace('_', ' '))}**: {text}")
    return "\n".join(lines)


def _selected(selection: Mapping[str, Any] | None) -> list[str]:
    """Say of what release these rows are, and what each filter dropped; the first selection first."""
    if not selection:
        return []
    checksum = hashlib.sha256(json.dumps(selection["files"], sort_keys=True).encode()).hexdigest()
    rows = table([one["reason"], f"{one['dropped']:,}", _recipe(one["settings"])] for one in selection["filters"])
    files = f"{len(selection['files'])} file{'s' * (len(selection['files']) != 1)}"
    text = (
        f"Selected from {code(selection['release'])}, {selection['rows']:,} pairs in {files} (SHA-256 of their names "
        f"and checksums: `{checksum[:16]}`), under the scorer {code(selection['scorer']['name'])}. The first filter "
        "that drops a pair counts it; they stand in order:\n\n"
        f"| dropped because | pairs | recipe |\n|---|---:|---|\n{rows}\n\n"
    )
    return [*_selected(selection.get("before")), text]


def _recipe(settings: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in settings.items() if value is not None}
    return ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in shown.items())


def _plain(value: Any) -> str:  # noqa: ANN401
    return " ".join(map(_plain, value)) if isinstance(value, list | tuple) else str(value)


def _short(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{escape(name)} {_short(entry)}" for name, entry in value.items()) + ")"
    if isinstance(value, list | tuple):
        return ", ".join(_short(entry) for entry in value)
    return code(value)


def _warnings(values: Mapping[str, Any]) -> str:
    lines = [f"**Warning:** {escape(warning)}." for warning in values.get("warnings", ())]
    lines += [f"## Notes\n\n{values['notes'].strip()}"] if values.get("notes") else []
    return "".join(f"{line}\n\n" for line in lines)


def _provenance(settings: Mapping[str, Any], kind: PairKind) -> str:
    model = (settings.get("translator") or settings.get("paraphraser") or {}).get("model", "")
    pivot = settings.get("pivot", {}).get("model", "")
    translator = f"{code(model)}{CARRIED_TRANSLATORS.get(model, '')}"
    return (
        "The reference sentences come from the input named above; its licence binds whoever uses them. "
        f"{kind.provenance.replace('{pivot}', code(pivot)).replace('{translator}', translator)}"
    )
