"""The record that a model's card is rendered from: what training wrote, what evaluation gave, what people say."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from paranmt_hf.corpus.pair_files import languages
from paranmt_hf.corpus.pairs import PairSelection
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.encoders.families import title_of
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import Results
from paranmt_hf.evaluation.sts_data import DEVELOPMENT
from paranmt_hf.hub.client import is_id
from paranmt_hf.hub.licenses import License
from paranmt_hf.hub.markdown import code, escape
from paranmt_hf.hub.model_card import model_card
from paranmt_hf.training.config import TrainConfig
from paranmt_hf.training.record import TRAINING_PICTURE, TrainingRecord
from paranmt_hf.util.files import read_text
from paranmt_hf.util.records import to_json
from paranmt_hf.util.settings import check
from paranmt_hf.util.yaml_files import parse_yaml

NO_LICENSE = "None is stated yet; whoever publishes the model states one."


@dataclass(frozen=True)
class AboutModel:
    """What no program can know of a model.

    Attributes:
        license: Licence id of the Hub, such as `cc-by-4.0`.
        license_name: Name of a licence whose id is `other`.
        license_link: Address of its text.
        license_text: Why that one, in a sentence.
        summary: What the model is, in a sentence; made of its settings if left out.
        data: What it learned from; made of its settings if left out.
        commands: The commands that made it; the last one, made of its settings, if left out.
        datasets: Ids of data sets on the Hub that it learned from.
    """

    license: str
    license_name: str | None = None
    license_link: str | None = None
    license_text: str = ""
    summary: str = ""
    data: str = ""
    commands: Sequence[str] = ()
    datasets: Sequence[str] = ()

    def __post_init__(self) -> None:
        check(self)
        if not self.license:
            raise InputError("a model needs a licence, so that its users know what they may do: name a Hub licence id")
        License(self.license, self.license_name, self.license_link).check()
        if wrong := [name for name in self.datasets if not is_id(name)]:
            raise InputError(f"{wrong[0]!r} is no data set on the Hub: expected ORGANISATION/NAME")


def read_about(path: Path | None, stated: License | None = None, **given: Any) -> AboutModel:  # noqa: ANN401
    """Read what people say of a model from a YAML file.

    Args:
        path: The file; None for none.
        stated: The licence that the model's own record states, which counts where no other is given.
        given: Values that are stated elsewhere and count more; None and empty ones do not.

    Raises:
        InputError: The file cannot be read, holds something else, or no licence is stated.
    """
    known = {entry.name for entry in fields(AboutModel)}
    values: Any = {}
    if path is not None:
        try:
            values = parse_yaml(read_text(path)) or {}
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"cannot read {path}: {reason}; expected YAML with {', '.join(sorted(known))}") from None
        if not isinstance(values, dict) or (wrong := sorted(map(str, set(values) - known))):
            content = ", ".join(wrong) if isinstance(values, dict) else f"a {type(values).__name__}"
            raise InputError(f"{path} must hold YAML with {', '.join(sorted(known))}; it holds {content}")
    for name, value in given.items():
        if value and values.get(name, value) != value:
            raise InputError(
                f"{path} states the {name} {values[name]!r} and --{name.replace('_', '-')} {value!r}; state it once"
            )
    values = {**values, **{name: value for name, value in given.items() if value}}
    if "license" not in values and stated is not None:
        values |= stated.header
    if "license" not in values:
        raise InputError(
            "a model needs a licence, so that its users know what they may do: give --license with a Hub licence id "
            "(cc-by-4.0, mit, other, ...)"
        )
    return AboutModel(**values)


def model_record(
    name: str,
    folder: Path,
    training: TrainingRecord,
    about: AboutModel | None = None,
    results: Results | None = None,
) -> dict[str, Any]:
    """Put the record of a card together.

    Args:
        name: Name of the model.
        folder: Where it is.
        training: What training wrote down.
        about: What people say; None before anybody did.
        results: Its figures, if it was measured.

    Returns:
        What `model_card` takes.
    """
    modules = json.loads((folder / "modules.json").read_text(encoding="utf8"))
    size = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
    stored = {"bytes": size, "mean": None, "development": training.development}
    if results is not None:
        stored |= {"mean": results.mean, "development": results.value(DEVELOPMENT)}
    said: dict[str, Any] = asdict(about) if about is not None else {}
    return {
        "name": name,
        **{key: value for key, value in said.items() if value is not None},
        "summary": said.get("summary") or summary(training),
        "data": said.get("data") or data(training),
        "commands": list(said.get("commands", ())) or [command(training)],
        "datasets": sorted({*said.get("datasets", ()), *hub_datasets(training.settings.data)}),
        "license_text": said.get("license_text") or license_text(about),
        **({"languages": spoken} if (spoken := languages(training.settings.data)) else {}),
        **({"picture": TRAINING_PICTURE} if (folder / TRAINING_PICTURE).is_file() else {}),
        "training": training.for_card(),
        "stock": all(entry["type"].startswith("sentence_transformers.") for entry in modules),
        **limits(training),
        "results": None if results is None else results.to_json(),
        "precisions": {"as stored": stored},
        "speed": None if results is None or results.speed is None else to_json(results.speed),
    }


def license_text(about: AboutModel | None) -> str:
    """Say under which licence a model is."""
    if about is None:
        return NO_LICENSE
    if about.license_name and about.license_link:
        return f"[{escape(about.license_name)}]({about.license_link})"
    return code(about.license)


def write_model_card(folder: Path, name: str, training: TrainingRecord) -> None:
    """Write the card of an encoder into its folder, as it is before somebody measures or publishes it.

    Args:
        folder: Where the encoder lies.
        name: Name of the encoder.
        training: Its record.
    """
    text = folder_card(folder, name, training)
    (folder / "README.md").write_text(text, encoding="utf8")


def write_derived_card(folder: Path, name: str, values: Mapping[str, Any]) -> None:
    """Write the card of an encoder made from others, unless its `training.json` says too little.

    Args:
        folder: Folder of the encoder.
        name: Name of the encoder.
        values: Its `training.json`.
    """
    if "settings" in values:
        write_model_card(folder, name, TrainingRecord.from_json(values, folder / TrainingRecord.FILE))


def folder_card(folder: Path, name: str, training: TrainingRecord) -> str:
    """Render the card that `write_model_card` writes; equal runs have equal cards, so no time stands in it."""
    record = model_record(name, folder, training)
    history = {**record["training"]["history"], "seconds": None}
    return model_card({**record, "training": {**record["training"], "history": history}})


def summary(training: TrainingRecord) -> str:
    """Say what a model is."""
    config = training.settings.encoder
    papers = " and ".join(dict.fromkeys(family.paper for family in config.families))
    title = title_of(config.parts, config.mode)
    return f"{title} sentence encoder of {training.dimension} dimensions, after {papers}."


def limits(training: TrainingRecord) -> dict[str, Any]:
    """What a card says of the limits of a model's kind of encoder."""
    config = training.settings.encoder
    # One encoder that reads words in order makes the whole tell orders apart.
    family = next((family for family in config.families if family.ordered), config.families[0])
    return {"limits": family.limits, "trigrams": "trigram" in config.kinds}


def data(training: TrainingRecord) -> str:
    """Say what a model learned from."""
    names = ", ".join(map(escape, sources(training))) or "unnamed files"
    return f"Trained on {training.pairs:,} pairs of sentences of {names}."


def sources(training: TrainingRecord) -> list[str]:
    """Names of the files and data sets that a model learned from, without their folders."""
    names: list[str] = []
    for source in training.settings.data["sources"]:
        if isinstance(source, Mapping) and "release" in source:
            names.append(str(source["release"]))
        elif isinstance(source, Mapping) and source.get("kind") == "phrases":
            names += [str(file["name"]) for file in source["files"]]
        elif isinstance(source, Mapping):
            names.append(f"{source['dataset']}@{source['revision']}" if "revision" in source else source["dataset"])
        else:
            names += [str(file).split(" ")[0] for file in source]
    if text := training.inputs.get("text"):
        names += text.split(", ")
    return names


def hub_datasets(data: Mapping[str, Any]) -> list[str]:
    """Data sets on the Hub that a model learned from."""
    names = [str(source.get("dataset", "")) for source in data["sources"] if isinstance(source, Mapping)]
    return [name for name in names if is_id(name)]


def command(training: TrainingRecord) -> str:
    """Write the command that made a model, without the folders of files."""
    settings = training.settings
    words = ["paranmt train --data", *map(_word, sources(training))]
    inputs = training.inputs
    for usual, given in ((EncoderConfig().resolved(), settings.encoder), (TrainConfig(), settings.training)):
        for entry in fields(usual):
            value = getattr(given, entry.name)
            if value is not None and value != getattr(usual, entry.name):
                words += _option(entry.name, inputs.get(entry.name, value))
    chosen, without = data_options(settings.data)
    words += chosen
    if name := settings.development:
        words += ["--development", "STS" if name == DEVELOPMENT else _word(name)]
    return " ".join([*words, *without, "--out FOLDER"])


def data_options(data: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Options of a command that chose pairs, and those that left some out, of what a record says of the data."""
    words: list[str] = []
    ranges, usual = data.get("ranges", {}), PairSelection()
    for name, column, bound in (
        ("min_score", "para_score", 0),
        ("max_score", "para_score", 1),
        ("max_overlap", "trigram_overlap", 1),
        ("min_length", "reference_length", 0),
        ("max_length", "reference_length", 1),
    ):
        if column in ranges and ranges[column][bound] is not None:
            words += _option(name, ranges[column][bound])
    scores = [source.get("score") for source in data["sources"] if isinstance(source, Mapping)]
    if score := next(filter(None, scores), None):
        words += _option("ppdb_score", score)
    for name in ("subset", "max_pairs", "first_pairs"):
        if data.get(name, getattr(usual, name)) != getattr(usual, name):
            words += _option(name, data[name])
    return words, ["--exclude", "STS"] if data.get("unwanted_sentences") else []


def _option(name: str, value: Any) -> list[str]:  # noqa: ANN401
    flag = f"--{name.replace('_', '-')}"
    if value is True:
        return [flag]
    text = f"{value:g}" if isinstance(value, float) else str(value)
    # A checksum tells which file it was, but not its name.
    return [flag, name.upper() if text.startswith("sha256:") else _word(text)]


def _word(text: str) -> str:
    """Write a word of a command, on one line and in quotes where the shell needs them."""
    return shlex.quote(" ".join(text.split()))
