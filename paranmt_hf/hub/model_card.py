"""Cards of encoders, rendered from recorded results and never written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any

import yaml

from paranmt_hf.hub.licenses import License
from paranmt_hf.hub.markdown import code, escape, quoted
from paranmt_hf.util.tables import aligned_table

# The Hub's datasets of the same pairs, and the names of their tasks.
BENCHMARKS = {f"STS{year}": (f"mteb/sts{year}-sts", f"STS{year}") for year in (12, 13, 14, 15, 16)}
DROPPED = "count, but have vectors of zeros"
TRAINED = "share one trained vector"
SHARED = "share the trained vector that the word vectors it started from have for them (trigrams: zeros)"
UNKNOWN = {"drop": DROPPED, "train": TRAINED, "share": SHARED}
CITATION = """\
@inproceedings{wieting-gimpel-2018-paranmt,
    title = "{P}ara{NMT}-50{M}: Pushing the Limits of Paraphrastic Sentence Embeddings with Millions of Machine Translations",
    author = "Wieting, John and Gimpel, Kevin",
    booktitle = "Proceedings of ACL 2018",
    year = "2018",
}"""  # noqa: E501
SENT2VEC_CITATION = """\
@inproceedings{pagliardini-etal-2018-unsupervised,
    title = "Unsupervised Learning of Sentence Embeddings Using Compositional n-Gram Features",
    author = "Pagliardini, Matteo and Gupta, Prakhar and Jaggi, Martin",
    booktitle = "Proceedings of NAACL-HLT 2018",
    year = "2018",
}"""
HALVES = "The 250 pairs of STS 2017 track 5 are also among those of STSB-dev and STSB-test."


def model_card(record: Mapping[str, Any]) -> str:
    """Render the card of an encoder.

    Args:
        record: `name`; `repository`, the id on the Hub, if it has one; `summary`, `data`, `commands`, `license`,
            `license_name`, `license_link` and `license_text`, where a licence is stated; `datasets`, ids
            on the Hub; `training` (the content of the model's `training.json`);
            `limits`, a sentence, and `trigrams`, whether it reads character trigrams; for a model that was not trained
            here `made`, Markdown in place of `training`, and `reading`, how it cuts text and what becomes of unknown
            words; `citation`, the BibTeX entry of another paper; `languages`, if they are not English alone;
            `stock`, whether it loads without this package and without code of its own; `results` (an `StsResult` as
            JSON values), if it was measured; `precisions`: for each way to store the rows its size in bytes and
            results; `speed`, as `encoding_speed` gives it, which is shown if it says how busy the machine was;
            `picture`, the file that shows the course of training, if there is one; `notes`, Markdown of the
            publisher's own.

    Returns:
        YAML header and Markdown text.
    """
    header = yaml.safe_dump(_header(record), sort_keys=False, allow_unicode=True, width=1000)
    template = Template((resources.files("paranmt_hf.hub") / "templates" / "model_card.md").read_text(encoding="utf8"))
    return f"---\n{header}---\n\n{template.substitute(_texts(record))}"


def eval_results(record: Mapping[str, Any]) -> str | None:
    """Write the results that the Hub's leaderboards understand, as the YAML of a file in `.eval_results/`.

    The Hub's benchmarks of these sets rank by Spearman's rho over all pairs of a year.

    Returns:
        None where there are none.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    results = record.get("results") or {"tables": {"Year": []}}
    entries = [
        EvalResultEntry(
            dataset_id=BENCHMARKS[row["name"]][0],
            task_id=BENCHMARKS[row["name"]][1],
            value=round(100 * row["values"]["all_spearman"], 2),
            notes=f"Spearman's rho times 100 over all {row['items']:,} pairs, cosine similarity",
        )
        for row in results["tables"]["Year"]
        if row["name"] in BENCHMARKS
    ]
    return yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False) if entries else None


def _header(record: Mapping[str, Any]) -> dict[str, Any]:
    header: dict[str, Any] = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        **({"language": languages} if (languages := list(record.get("languages", ["en"]))) else {}),
        **_license(record),
        "tags": ["sentence-transformers", "sentence-similarity", "feature-extraction", "paranmt", "paraphrase"],
    }
    if record.get("datasets"):
        header["datasets"] = list(record["datasets"])
    if results := record.get("results"):
        header["model-index"] = [{"name": record["name"], "results": _index(results)}]
    return header


def _license(record: Mapping[str, Any]) -> dict[str, str]:
    if not record.get("license"):
        return {}
    return License(record["license"], record.get("license_name"), record.get("license_link")).header


def _index(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The results as `model-index` wants them: the papers' figures."""
    tables = results["tables"]
    years = [
        _result(row["name"], row["name"], "Pearson, mean of the sets", row["values"]["mean"])
        for row in tables["Year"]
        if row["name"] != "Mean"
    ]
    alone = [row for row in tables["Set"] if row["group"] is None]
    return years + [_result(row["name"], row["name"], "Pearson", row["values"]["pearson"]) for row in alone]


def _result(kind: str, name: str, metric: str, value: float) -> dict[str, Any]:
    return {
        "task": {"type": "sentence-similarity", "name": "Semantic textual similarity"},
        "dataset": {"type": kind.lower(), "name": name},
        "metrics": [{"type": "pearson", "name": metric, "value": round(100 * value, 2)}],
    }


def _texts(record: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": escape(record["name"]),
        "summary": record["summary"],
        "usage": _usage(record.get("repository") or record["name"], record["stock"]),
        "results": _results(record.get("results")),
        "size_title": "Size and speed" if _is_comparable(record.get("speed")) else "Size",
        "sizes": _sizes(record),
        "data": record["data"],
        "commands": "\n".join(record["commands"]),
        "training": record.get("made") or _training(record["training"], record.get("results") or {}),
        "picture": f"![Loss and development score over the steps]({record['picture']})\n\n"
        if record.get("picture")
        else "",
        "reading": record.get("reading") or _reading(record),
        "citation": record.get("citation") or CITATION,
        "order": record["limits"] + (" The model was trained on English alone." if "languages" not in record else ""),
        "license_text": record["license_text"],
        "notes": f"## Notes\n\n{record['notes'].strip()}\n\n" if record.get("notes") else "",
    }


def _reading(record: Mapping[str, Any]) -> str:
    """Say how text is cut, and what becomes of unknown units."""
    trigrams = " and character trigrams" if record["trigrams"] else ""
    unknown = UNKNOWN[record["training"]["settings"]["encoder"].get("unknown") or "drop"]
    return (
        f"Text is lower-cased, so case tells nothing apart. Words{trigrams} that are not in the vocabulary\n{unknown}."
    )


def _results(results: Mapping[str, Any] | None) -> str:
    if results is None:
        return "This model was not measured."
    blocks = [
        "Pearson's r times 100, with a 95 % bootstrap interval; the cosine of two sentence vectors against the gold "
        "score. Of a year, the mean of the sets is the papers' figure, and Spearman over all pairs MTEB's."
    ]
    blocks += [_figures(title, rows) for title, rows in results["tables"].items() if rows]
    said = list(results["notes"])
    if {"STS17-track5", "STSB-test"} <= {row["name"] for row in results["tables"]["Set"]}:
        said.append(HALVES)
    return "\n\n".join([*blocks, *([" ".join(map(escape, said))] if said else [])])


def _figures(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    measures = list(dict.fromkeys(measure for row in rows for measure in row["values"]))
    bounded = any(row["interval"] for row in rows)
    lines = []
    for row in rows:
        bounds = [" to ".join(map(_percent, row["interval"] or ()))] if bounded else []
        values = [_percent(row["values"].get(measure)) for measure in measures]
        items = "" if row["items"] is None else f"{row['items']:,}"
        lines.append([escape(row["name"]), items, values[0], *bounds, *values[1:]])
    titles = [measure.replace("_", " ").capitalize() for measure in measures]
    return aligned_table([title, "Items", titles[0], *(["95 %"] if bounded else []), *titles[1:]], lines)


def _sizes(record: Mapping[str, Any]) -> str:
    entries = record["precisions"]
    # A model that was not measured has no figures to show here.
    kinds = {"mean": "mean of the years", "development": "STS 2017 track 5"}
    shown = [kind for kind in kinds if any(entry[kind] is not None for entry in entries.values())]
    rows = [" | ".join(["| stored rows", "megabytes", *(kinds[kind] for kind in shown)]) + " |"]
    rows.append("|---|---:|" + "---:|" * len(shown))
    for name, entry in entries.items():
        rows.append(
            " | ".join([f"| {name}", f"{entry['bytes'] / 1e6:.1f}", *(_percent(entry[k]) for k in shown)]) + " |"
        )
    blocks = ["\n".join(rows)]
    speed = record.get("speed")
    if speed and _is_comparable(speed):
        blocks.append(
            f"`paranmt_hf.load(...).encode` encodes {_rounded(speed['sentences_per_second'])} sentences of "
            f"{speed['words']} words a second of one core ({escape(speed['processor'])}, {speed['cores']} cores, load "
            f"{speed['load']} in the minute before): text not seen before, median of {speed['passes']} passes over "
            f"{speed['sentences']:,} sentences each."
        )
    return "\n\n".join(blocks)


def _is_comparable(speed: Mapping[str, Any] | None) -> bool:
    """Tell whether a figure of speed says of what machine it is, and how busy that was."""
    return speed is not None and None not in (speed.get("cores"), speed.get("load"))


def _rounded(rate: float) -> str:
    """Two digits of a measured rate are what another run confirms."""
    return f"{float(f'{rate:.2g}'):,.0f}"


def _usage(name: str, stock: bool) -> str:
    lines = ["import paranmt_hf", "", f"model = paranmt_hf.load({quoted(name)})  # no code of the model runs"]
    flag = "" if stock else ", trust_remote_code=True"
    lines += ["", "# without this package", "from sentence_transformers import SentenceTransformer", ""]
    lines.append(f"model = SentenceTransformer({quoted(name)}{flag})")
    lines += ["", 'vectors = model.encode(["A dog runs.", "A dog is running."])']
    return "\n".join(lines)


def _training(training: Mapping[str, Any], results: Mapping[str, Any]) -> str:
    settings, history = training["settings"]["training"], training["history"]
    inputs = training.get("inputs", {})
    objective = _objective(settings, [inputs[name] for name in ("teacher", "second_teacher") if name in inputs])
    optimizer = "AdaGrad" if settings.get("optimizer") == "adagrad" else "Adam"
    seconds = f"; {history['seconds']:,.0f} s of training" if history.get("seconds") is not None else ""
    versions = ", ".join(f"{escape(name)} {escape(version)}" for name, version in training["versions"].items())
    lines = [
        f"The last command: {history['pairs']:,} pairs in passes over {training['pairs']:,}, mini-batches of "
        f"{settings['batch_size']} pairs, {objective}, {optimizer} at "
        f"{settings['learning_rate']}, seed {settings['seed']}{seconds}. "
        f"{training['dimension']} dimensions, "
        f"{training['parameters']:,} parameters. Made with paranmt-hf {escape(training['paranmt_hf'])}, {versions}."
    ]
    if start := inputs.get("init_from"):
        lines.append(f"It went on from the encoder {code(start)}.")
    if others := training.get("mean_of"):
        names = ", ".join(code(other["name"]) for other in others)
        lines.append(f"The weights are the mean of those of the models {names}; these settings are the last one's.")
    if rotation := training.get("rotated"):
        lines.append(_rotation(rotation))
    sets = results.get("tables", {}).get("Set", [])
    measured = next((row["values"]["pearson"] for row in sets if row["name"] == "STS17-track5"), None)
    development = measured or training["development"]
    if development is not None:
        name = training["settings"]["development"]
        own = measured is None and name not in (None, "STS17-track5")
        which = code(name) if own else "the 250 pairs of STS 2017 track 5"
        lines.append(
            f"On the development set, {which}, on which settings are chosen, it reaches a Pearson of "
            f"{_percent(development)}."
        )
    if excluded := training["settings"]["data"]["unwanted_sentences"]:
        lines.append(f"Pairs with one of {excluded:,} sentences of STS sets were left out of the training data.")
    return "\n\n".join(lines)


def _rotation(rotation: Mapping[str, Any]) -> str:
    """Say how the dimensions were ordered."""
    kept = rotation.get("dimension")
    first = f", of which the first {kept} are kept" if kept else ""
    whole = "" if kept else " Whole vectors have the cosines of before."
    order = {
        "even": "the dimensions were rotated so that each holds as much as any other",
        "principal": "the dimensions were rotated to principal components, the largest first",
    }.get(rotation["order"], escape(rotation["order"]))
    return (
        f"After training, {order}{first} (`paranmt encoder rotate`, of the model "
        f"{code(rotation['model']['name'])}).{whole} "
        "`truncate_dim` cuts dimensions off."
    )


# Of a teacher of which no name is known.
NO_NAME = "a teacher's similarities"


def _objective(settings: Mapping[str, Any], teachers: Sequence[str]) -> str:
    terms = []
    if not settings["teacher"] or settings["teacher_weight"] < 1:
        terms.append(f"margin {settings['margin']} with M = {settings['mega_batch']}")
    if settings["teacher"]:
        names = " and ".join(map(code, teachers))
        terms.append(f"the similarities of the teacher{'s' * (len(teachers) > 1)} {names}" if names else NO_NAME)
    return " and ".join(terms)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"
