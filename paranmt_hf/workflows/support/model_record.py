"""The record that a model's card is rendered from: what training wrote, what evaluation found, what people say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from paranmt_hf.corpus.pairs import SelectionConfig
from paranmt_hf.encoders.config import EncoderConfig
from paranmt_hf.errors import InputError
from paranmt_hf.hub.client import is_id
from paranmt_hf.hub.repository import weights_checksum
from paranmt_hf.training.config import TrainConfig

if TYPE_CHECKING:
    from paranmt_hf.encoders.loading import SentenceEncoder
    from paranmt_hf.evaluation.sts_data import StsSet

# What training writes down beside a model.
RECORD = "training.json"
NAMES = {"word": "WORD", "trigram": "TRIGRAM", "lstm": "LSTM", "blstm": "BLSTM"}


@dataclass(frozen=True)
class AboutModel:
    """What no program can know of a model.

    Attributes:
        license: Licence id of the Hub, such as `cc-by-4.0`.
        license_text: Why that one, in a sentence.
        summary: What the model is, in a sentence; made of its settings if left out.
        data: What it learned from; made of its settings if left out.
        commands: The commands that made it; the last one, made of its settings, if left out.
        datasets: Ids of data sets on the Hub that it learned from.
    """

    license: str
    license_text: str = ""
    summary: str = ""
    data: str = ""
    commands: Sequence[str] = ()
    datasets: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("license", "license_text", "summary", "data"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"{name} of a model must be text, was {getattr(self, name)!r}")
        for name in ("commands", "datasets"):
            value = getattr(self, name)
            if not isinstance(value, list | tuple) or not all(isinstance(entry, str) for entry in value):
                raise InputError(f"{name} of a model must be a list of texts, was {value!r}")
        if not self.license:
            raise InputError("a model needs a licence, so that its users know what they may do: name a Hub licence id")
        if wrong := [name for name in self.datasets if not is_id(name)]:
            raise InputError(f"{wrong[0]!r} is no data set on the Hub: expected ORGANISATION/NAME")


def read_about(path: Path | None, **given: Any) -> AboutModel:  # noqa: ANN401
    """Read what people say of a model from a YAML file.

    Args:
        path: The file; None for none.
        given: Values that are stated elsewhere and count more; None and empty ones do not.

    Raises:
        InputError: The file cannot be read, holds something else, or no licence is stated.
    """
    known = {entry.name for entry in fields(AboutModel)}
    values: Any = {}
    if path is not None:
        try:
            values = yaml.safe_load(path.read_text(encoding="utf8")) or {}
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"cannot read {path}: {reason}; expected YAML with {', '.join(sorted(known))}") from None
        if not isinstance(values, dict) or (wrong := sorted(map(str, set(values) - known))):
            found = ", ".join(wrong) if isinstance(values, dict) else f"a {type(values).__name__}"
            raise InputError(f"{path} must hold YAML with {', '.join(sorted(known))}; it holds {found}")
    for name, value in given.items():
        if value and values.get(name, value) != value:
            raise InputError(f"{path} states the {name} {values[name]!r} and --{name} {value!r}; state it once")
    values = {**values, **{name: value for name, value in given.items() if value}}
    if "license" not in values:
        raise InputError(
            "a model needs a licence, so that its users know what they may do: give --license with a Hub licence id "
            "(cc-by-4.0, mit, other, ...)"
        )
    return AboutModel(**values)


def read_training(folder: Path) -> dict[str, Any]:
    """Read what training wrote down of a model.

    Raises:
        InputError: The folder holds no such record.
    """
    path = folder / RECORD
    try:
        training = json.loads(path.read_text(encoding="utf8"))
        # The course of the loss belongs to the model's folder, not to its card.
        history = {name: training["history"][name] for name in ("pairs", "seconds", "best_step")}
        training["settings"]["encoder"]["model"], training["dimension"], training["parameters"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"cannot read {path} ({type(error).__name__}); expected the folder of an encoder made by `paranmt train`"
        ) from None
    return {**training, "history": history}


def model_record(
    name: str, folder: Path, training: dict[str, Any], about: AboutModel, results: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Put the record of a card together.

    Args:
        name: Name of the model.
        folder: Where it is.
        training: As `read_training` gives it.
        about: What people say.
        results: What `paranmt evaluate sts --json` found, if it was measured.

    Returns:
        What `paranmt_hf.hub.model_card.model_card` takes.
    """
    modules = json.loads((folder / "modules.json").read_text(encoding="utf8"))
    size = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
    stored = {"bytes": size, "mean": None, "development": training["development"]}
    if results is not None:
        stored |= {"mean": results["mean"], "development": results["development"]}
    words = asdict(about)
    return {
        "name": name,
        **words,
        "summary": about.summary or summary(training),
        "data": about.data or data(training),
        "commands": list(about.commands) or [command(training)],
        "datasets": sorted({*about.datasets, *hub_datasets(training)}),
        "license_text": about.license_text or f"`{about.license}`",
        "training": training,
        "stock": all(entry["type"].startswith("sentence_transformers.") for entry in modules),
        "results": None if results is None else {key: results[key] for key in results if key not in BESIDE},
        "precisions": {"as stored": stored},
        "speed": None if results is None else results.get("speed"),
    }


# What a results file says beside the results themselves.
BESIDE = ("weights", "speed")


def measured(encoder: SentenceEncoder, sets: Sequence[StsSet]) -> dict[str, Any]:
    """What a results file says of a model beside its results: which weights these are, and how fast they encode.

    Args:
        encoder: As `paranmt_hf.load` gives it.
        sets: The sets it was evaluated on, whose sentences are encoded.
    """
    from paranmt_hf.encoders.loading import load
    from paranmt_hf.evaluation.speed import PASSES, encoding_speed

    assert encoder.source is not None
    found: dict[str, Any] = {"weights": weights_checksum(encoder.source.folder)}
    sentences = [sentence for part in sets for sentence in [*part.left, *part.right]]
    if len(set(sentences)) > PASSES:
        # Speed is told of a core.
        on_cpu = encoder if encoder.device.type == "cpu" else load(encoder.source.folder, device="cpu")
        found["speed"] = encoding_speed(on_cpu, sentences)
    return found


def summary(training: Mapping[str, Any]) -> str:
    """Say what a model is."""
    name = training["settings"]["encoder"]["model"].replace("-", ",")
    for plain, paper in NAMES.items():
        name = name.replace(plain, paper)
    return (
        f"{name} sentence encoder of {training['dimension']} dimensions, after ParaNMT-50M (Wieting and Gimpel 2018, "
        "section 4)."
    )


def data(training: Mapping[str, Any]) -> str:
    """Say what a model learned from."""
    return f"Trained on {training['pairs']:,} pairs of sentences of {', '.join(sources(training)) or 'unnamed files'}."


def sources(training: Mapping[str, Any]) -> list[str]:
    """Names of the files and data sets that a model learned from, without their places."""
    names: list[str] = []
    for source in training["settings"]["data"]["sources"]:
        if isinstance(source, Mapping) and "release" in source:
            names.append(str(source["release"]))
        elif isinstance(source, Mapping):
            names.append(f"{source['dataset']}@{source['revision']}" if "revision" in source else source["dataset"])
        else:
            names += [str(file).split(" ")[0] for file in source]
    return names


def hub_datasets(training: Mapping[str, Any]) -> list[str]:
    """Data sets on the Hub that a model learned from."""
    found = training["settings"]["data"]["sources"]
    names = [str(source.get("dataset", "")) for source in found if isinstance(source, Mapping)]
    return [name for name in names if is_id(name)]


def command(training: Mapping[str, Any]) -> str:
    """Write the command that made a model, without the places of files."""
    settings = training["settings"]
    words = ["paranmt train --data", *sources(training)]
    inputs = training.get("inputs", {})
    for kind, values in ((EncoderConfig(), settings["encoder"]), (TrainConfig(), settings["training"])):
        for entry in fields(kind):
            value = values.get(entry.name, getattr(kind, entry.name))
            if value == getattr(kind, entry.name):
                continue
            words += _option(entry.name, inputs.get(entry.name, value))
    ranges, usual = settings["data"].get("ranges", {}), SelectionConfig()
    for name, column, bound in (
        ("min_score", "para_score", 0),
        ("max_score", "para_score", 1),
        ("max_overlap", "trigram_overlap", 1),
        ("max_length", "reference_length", 1),
    ):
        if column in ranges and ranges[column][bound] is not None:
            words += _option(name, ranges[column][bound])
    for name in ("subset", "max_pairs"):
        if settings["data"].get(name, getattr(usual, name)) != getattr(usual, name):
            words += _option(name, settings["data"][name])
    for option, given in (
        ("development", settings["development"]),
        ("exclude", settings["data"]["unwanted_sentences"]),
    ):
        words += [f"--{option} STS"] if given else []
    words.append("--out FOLDER")
    return " ".join(words)


def _option(name: str, value: Any) -> list[str]:  # noqa: ANN401
    flag = f"--{name.replace('_', '-')}"
    if value is True:
        return [flag]
    text = f"{value:g}" if isinstance(value, float) else str(value)
    # A checksum tells which file it was, but not its name.
    return [flag, name.upper() if text.startswith("sha256:") else text]
