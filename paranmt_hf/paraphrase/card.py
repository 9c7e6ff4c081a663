"""The card of a paraphraser, from its record."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from paranmt_hf.corpus.pairs import languages
from paranmt_hf.hub.languages import LANGUAGES
from paranmt_hf.hub.markdown import code, escape
from paranmt_hf.hub.paraphraser_card import paraphraser_card
from paranmt_hf.hub.publish import About
from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
from paranmt_hf.paraphrase.modeling_paranmt_lstm import ParaNMTLstmConfig
from paranmt_hf.paraphrase.record import ParaphraserRecord
from paranmt_hf.paraphrase.syntax.record import ControlledRecord
from paranmt_hf.text.word_rules import ENGLISH
from paranmt_hf.training.card import data_options, hub_datasets

DIRECTIONS = {
    "to-reference": "translations are the sources and references the targets",
    "to-translation": "references are the sources and translations the targets",
    "both": "each side of a pair is the source of the other",
}


def license_text(about: About | None) -> str:
    """Say under which licence a model is."""
    if about is None:
        return "None is stated yet; the publisher of the model states one."
    if about.license_name and about.license_link:
        return f"[{escape(about.license_name)}]({about.license_link})"
    return code(about.license)


def write_paraphraser_card(folder: Path, name: str, record: ParaphraserRecord) -> None:
    """Write the card into the folder of a paraphraser."""
    (folder / "README.md").write_text(paraphraser_card(card_values(name, record)), encoding="utf8")


def card_values(name: str, record: ParaphraserRecord, about: About | None = None) -> dict[str, Any]:
    """Put the record of a card together.

    Args:
        name: Name of the model.
        record: What training wrote down.
        about: What people say; None before anybody did.

    Returns:
        What `paraphraser_card` takes.
    """
    best = record.course.best
    own = record.model_type == ParaNMTLstmConfig.model_type
    sources = record.inputs["data"]
    said: dict[str, Any] = asdict(about) if about is not None else {}
    return {
        "name": name,
        **said_of_terms(said, record.settings),
        "summary": said.get("summary") or _summary(record, own),
        "data": said.get("data")
        or f"Trained on {record.pairs:,} pairs of {escape(sources)}; {record.held_out:,} more pairs, whose "
        f"references are in none of these, were held out, and {record.too_long:,} were too long.",
        "command": "\n".join(said.get("commands", ())) or _command(record),
        "made": made_with(record, timed=about is not None),
        "measured": [asdict(each) for each in record.course.measured],
        "best": best.step if best is not None else record.course.steps,
        "own": own,
        "license_text": said.get("license_text") or license_text(about),
    }


def said_of_terms(said: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Licence, where one is stated, data sets on the Hub, and languages, where they are not English alone.

    Args:
        said: What people say, by the names of `About`.
        settings: Settings of the record.
    """
    terms: dict[str, Any] = {key: said[key] for key in ("license", "license_name", "license_link") if said.get(key)}
    if spoken := languages(settings["data"]):
        terms["languages"] = spoken
    return {**terms, "datasets": sorted({*said.get("datasets", ()), *hub_datasets(settings["data"])})}


def missing_of_paraphraser(record: ParaphraserRecord | ControlledRecord, about: About) -> list[str]:
    """What a reader of a paraphraser's card would miss, in sentences."""
    missing = [] if record.course.measured else ["figures: nothing was held out (--held-out)"]
    if "base" in record.inputs and not about.summary:
        missing.append(
            "what the model it began with is, and its terms: --about FILE with 'summary' and 'license_text'"
        )
    for name in ("data", "license_text"):
        if not getattr(about, name):
            missing.append(f"words of your own on the {name.replace('_', ' ')}: --about FILE with {name!r}")
    return missing


def _summary(record: ParaphraserRecord, own: bool) -> str:
    what = f"Generates paraphrases of {spoken(record.settings)} sentences"
    if own:
        return (
            f"{what}: a bidirectional LSTM encoder and an LSTM decoder with bilinear attention, after ParaNMT-50M "
            "(Wieting and Gimpel 2018), section 6."
        )
    return f"{what}: {escape(record.inputs.get('base', record.model_type))}, trained further on pairs."


def spoken(settings: Mapping[str, Any]) -> str:
    """Name the languages that a paraphraser learned from: `Czech and English`."""
    *others, last = [LANGUAGES.get(code, code) for code in languages(settings["data"]) or [ENGLISH]]
    return f"{', '.join(others)} and {last}" if others else last


def _command(record: ParaphraserRecord) -> str:
    base = {"base": record.inputs["base"]} if "base" in record.inputs else {}
    settings = {**record.settings, "paraphraser": {**record.settings["paraphraser"], **base}}
    kinds = {"paraphraser": ParaphraserConfig, "training": ParaphraserTraining}
    return command_line("train-paraphraser", record.inputs["data"], settings, kinds)


def command_line(command: str, data: str, settings: Mapping[str, Any], kinds: Mapping[str, type]) -> str:
    """Write the command that makes a model again.

    Args:
        command: Its name.
        data: Names of what the pairs are from, between commas.
        settings: Settings as the record has them, by the keys of `kinds`.
        kinds: Their classes; what has its default is left out.
    """
    words = [f"paranmt {command}", *(shlex.quote(name) for name in data.split(", "))]
    for key, kind in kinds.items():
        for entry in fields(kind):
            value = settings[key].get(entry.name)
            if value in (None, entry.default):
                continue
            flag = f"--{entry.name.replace('_', '-')}"
            words += [flag] if value is True else [flag, shlex.quote(f"{value}")]
    chosen, without = data_options(settings["data"])
    return " ".join([*words, *chosen, *(["--exclude", "SETS"] if without else []), "--out FOLDER"])


def made_with(record: ParaphraserRecord | ControlledRecord, *, timed: bool) -> str:
    """Say with what a model was trained, and `timed` how long; equal runs have equal cards in their folders."""
    took = f" in {record.course.seconds:,.0f} seconds" if timed else ""
    training, course = record.settings["training"], record.course
    versions = ", ".join(f"{escape(name)} {escape(version)}" for name, version in record.versions.items())
    return (
        f"{DIRECTIONS[training['direction']][0].upper()}{DIRECTIONS[training['direction']][1:]}. {course.steps:,} "
        f"steps, {course.pairs:,} pairs and {course.tokens:,} target pieces{took} on "
        f"{code(record.device)} ({code(record.machine)}), Adam with a highest rate of {training['learning_rate']:g}, "
        f"label smoothing {training['label_smoothing']:g}, seed {training['seed']}. {record.parameters:,} parameters, "
        f"{record.pieces:,} pieces. Made with {versions}."
    )
