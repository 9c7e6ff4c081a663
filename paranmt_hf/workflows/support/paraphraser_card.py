"""The card of a paraphraser, from its record."""

from __future__ import annotations

import shlex
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from paranmt_hf.hub.markdown import code, escape
from paranmt_hf.hub.paraphraser_card import paraphraser_card
from paranmt_hf.paraphrase.config import ParaphraserConfig, ParaphraserTraining
from paranmt_hf.paraphrase.modeling_paranmt_lstm import ParaNMTLstmConfig
from paranmt_hf.paraphrase.record import ParaphraserRecord
from paranmt_hf.workflows.support.model_record import license_text

DIRECTIONS = {
    "to-reference": "translations are the sources and references the targets",
    "to-translation": "references are the sources and translations the targets",
    "both": "each side of a pair is the source of the other",
}


def write_paraphraser_card(folder: Path, name: str, record: ParaphraserRecord) -> None:
    """Write the card into the folder of a paraphraser."""
    (folder / "README.md").write_text(paraphraser_card(card_values(name, record)), encoding="utf8")


def card_values(name: str, record: ParaphraserRecord) -> dict[str, Any]:
    """Put the record of a card together; what `paraphraser_card` takes."""
    best = record.course.best
    own = record.model_type == ParaNMTLstmConfig.model_type
    sources = record.inputs["data"]
    return {
        "name": name,
        "summary": _summary(record, own),
        "data": f"Trained on {record.pairs:,} pairs of {escape(sources)}; {record.held_out:,} more pairs, whose "
        f"references are in none of these, were held out, and {record.too_long:,} were too long.",
        "command": _command(record),
        "made": _made(record),
        "measured": [asdict(each) for each in record.course.measured],
        "best": best.step if best is not None else record.course.steps,
        "own": own,
        "license_text": license_text(None),
    }


def _summary(record: ParaphraserRecord, own: bool) -> str:
    if own:
        return (
            "Generates paraphrases of English sentences: a bidirectional LSTM encoder and an LSTM decoder with "
            "bilinear attention, after ParaNMT-50M (Wieting and Gimpel 2018), section 6."
        )
    return f"Generates paraphrases of English sentences: {escape(record.inputs['base'])}, trained further on pairs."


def _command(record: ParaphraserRecord) -> str:
    words = ["paranmt train-paraphraser", *(shlex.quote(name) for name in record.inputs["data"].split(", "))]
    for kind, key in ((ParaphraserConfig, "paraphraser"), (ParaphraserTraining, "training")):
        values = {**record.settings[key], **({"base": record.inputs["base"]} if "base" in record.inputs else {})}
        for entry in fields(kind):
            value = values.get(entry.name)
            if entry.name not in values or value in (None, entry.default):
                continue
            flag = f"--{entry.name.replace('_', '-')}"
            words += [flag] if value is True else [flag, shlex.quote(f"{value}")]
    return " ".join([*words, "--out FOLDER"])


def _made(record: ParaphraserRecord) -> str:
    training, course = record.settings["training"], record.course
    versions = ", ".join(f"{escape(name)} {escape(version)}" for name, version in record.versions.items())
    return (
        f"{DIRECTIONS[training['direction']][0].upper()}{DIRECTIONS[training['direction']][1:]}. {course.steps:,} "
        f"steps, {course.pairs:,} pairs and {course.tokens:,} target pieces in {course.seconds:,.0f} seconds on "
        f"{code(record.device)} ({code(record.machine)}), Adam with a highest rate of {training['learning_rate']:g}, "
        f"label smoothing {training['label_smoothing']:g}, seed {training['seed']}. {record.parameters:,} parameters, "
        f"{record.pieces:,} pieces. Made with {versions}."
    )
