"""The card of a model that was trained on sentences, from its record; arguments as those of `model_record.py`."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from paranmt_hf.encoders.families import FAMILIES
from paranmt_hf.evaluation.results import Results
from paranmt_hf.evaluation.sts_data import DEVELOPMENT
from paranmt_hf.hub.markdown import escape
from paranmt_hf.hub.model_card import SENT2VEC_CITATION, model_card
from paranmt_hf.training.card import AboutModel, license_text
from paranmt_hf.training.record import TRAINING_PICTURE
from paranmt_hf.training.sent2vec.config import Sent2VecConfig
from paranmt_hf.training.sent2vec.record import Sent2VecRecord
from paranmt_hf.util.records import to_json


def sent2vec_card(
    name: str,
    folder: Path,
    training: Sent2VecRecord,
    about: AboutModel | None = None,
    results: Results | None = None,
) -> dict[str, Any]:
    """Put the record of a card together; what `model_card` takes."""
    modules = json.loads((folder / "modules.json").read_text(encoding="utf8"))
    stock = all(entry["type"].startswith("sentence_transformers.") for entry in modules)
    said: dict[str, Any] = asdict(about) if about is not None else {}
    stored: dict[str, Any] = {"bytes": sum(path.stat().st_size for path in folder.rglob("*.safetensors"))}
    stored |= {"mean": None, "development": None}
    if results is not None:
        stored |= {"mean": results.mean, "development": results.value(DEVELOPMENT)}
    return {
        "name": name,
        **{key: value for key, value in said.items() if value is not None},
        "summary": said.get("summary") or _summary(training),
        "data": said.get("data") or _data(training),
        "commands": list(said.get("commands", ())) or [_command(training)],
        "datasets": sorted({*said.get("datasets", ()), *training.datasets}),
        "license_text": said.get("license_text") or license_text(about),
        **({"picture": TRAINING_PICTURE} if (folder / TRAINING_PICTURE).is_file() else {}),
        "made": _made(training),
        "reading": _reading(training, stock),
        "citation": SENT2VEC_CITATION,
        "languages": [],
        "stock": stock,
        "limits": FAMILIES["sent2vec" if training.ngrams else "word"].limits,
        "results": None if results is None else results.to_json(),
        "precisions": {"as stored": stored},
        "speed": None if results is None or results.speed is None else to_json(results.speed),
    }


def write_sent2vec_card(folder: Path, name: str, training: Sent2VecRecord) -> None:
    """Write the card of an encoder into its folder, as it is before somebody measures or publishes it."""
    (folder / "README.md").write_text(own_sent2vec_card(folder, name, training), encoding="utf8")


def own_sent2vec_card(folder: Path, name: str, training: Sent2VecRecord) -> str:
    """Render the card that `write_sent2vec_card` writes."""
    return model_card(sent2vec_card(name, folder, training))


def missing_of_sent2vec(training: Sent2VecRecord, about: AboutModel, results: Results | None) -> list[str]:
    """What a reader of the card would miss, in sentences."""
    missing = []
    if results is None:
        missing.append("results: paranmt evaluate sts FOLDER --data STS --json FILE, then --results FILE")
    for name in ("summary", "data", "license_text"):
        if not getattr(about, name):
            missing.append(f"words of your own on the {name.replace('_', ' ')}: --about FILE with {name!r}")
    return missing


def _summary(training: Sent2VecRecord) -> str:
    longest = training.settings.sent2vec.ngrams
    units = "words" if longest == 1 else f"words and n-grams of up to {longest} words"
    return (
        f"Sent2Vec sentence encoder of {training.dimension} dimensions, after Pagliardini, Gupta and Jaggi (2018): "
        f"the average of the vectors of {units}."
    )


def _data(training: Sent2VecRecord) -> str:
    names = ", ".join(map(escape, training.sources))
    return f"Trained without supervision on {training.sentences:,} sentences of {names}."


def _command(training: Sent2VecRecord) -> str:
    words = ["paranmt train-sent2vec", *(shlex.quote(" ".join(name.split())) for name in training.sources)]
    columns = [str(source.get("columns", {}).get("sentence", "")) for source in training.settings.data]
    if columns and all(columns) and set(columns) != {"reference", "translation"}:
        words += ["--columns", *map(shlex.quote, dict.fromkeys(columns))]
    config = training.settings.sent2vec
    usual = Sent2VecConfig(ngrams=config.ngrams).resolved()
    for entry in fields(config):
        value = getattr(config, entry.name)
        if entry.name not in ("preset", "ngrams") and value is not None and value != getattr(usual, entry.name):
            words += [f"--{entry.name.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value)]
    if config.ngrams > 1:
        words += ["--ngrams", str(config.ngrams)]
    return " ".join([*words, "--out FOLDER"])


def _made(training: Sent2VecRecord) -> str:
    config, course = training.settings.sent2vec, training.course
    rows = f"{training.words:,} words"
    if config.ngrams > 1:
        rows += f" and {training.ngrams:,} of {config.buckets:,} buckets of n-grams"
    lines = [
        f"Each word of a sentence is predicted from the average of the others, with {config.negatives} negatives: "
        f"{config.epochs} passes over {training.known:,} known words, {course.targets:,} targets, rate "
        f"{config.learning_rate:g} falling to zero, threshold {config.threshold:g}, seed {config.seed}; mean loss of "
        f"a target {course.mean:.3f}. Words occur at least {config.min_count} times, targets "
        f"{config.min_target_count}."
    ]
    if config.ngrams > 1:
        lines.append(f"Of each sentence {config.dropped_ngrams} n-grams were left out, drawn anew in each pass.")
    if config.threads > 1:
        lines.append(f"{config.threads} threads trained at once without locks, so that an equal run differs a little.")
    versions = ", ".join(f"{escape(name)} {escape(version)}" for name, version in training.versions.items())
    lines.append(
        f"{training.dimension} dimensions, {training.parameters:,} parameters: the vectors of {rows}. Made with "
        f"paranmt-hf {escape(training.paranmt_hf)}, {versions}."
    )
    return "\n\n".join(lines)


def _reading(training: Sent2VecRecord, stock: bool) -> str:
    if training.settings.sent2vec.cut == "words":
        first = "Text is lower-cased, so case tells nothing apart."
    else:
        first = "Text is cut at white space and nothing else: it must be tokenised as the training text was."
    if stock:
        unknown = "Words that are not in the vocabulary count, but have vectors of zeros."
    else:
        unknown = "Words that are not in the vocabulary are left out, before n-grams are made."
    return f"{first} {unknown} The model knows the language of its training text, which no record names."
