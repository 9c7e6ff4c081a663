"""The card of an encoder that was trained on sentences, from its record."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

from paranmt_hf.encoders.families import FAMILIES
from paranmt_hf.evaluation.results import Results
from paranmt_hf.hub.publish import About
from paranmt_hf.training.card import encoder_card, encoder_values
from paranmt_hf.training.sent2vec.config import Sent2VecConfig
from paranmt_hf.training.sent2vec.record import Sent2VecRecord


def sent2vec_values(
    name: str, folder: Path, training: Sent2VecRecord, about: About | None = None, results: Results | None = None
) -> dict[str, Any]:
    """Collect the values of the card; see `encoder_values`."""
    record = training.to_json()
    record["course"] = {"targets": training.course.targets}
    return encoder_values(
        "sent2vec",
        name,
        folder,
        record,
        about,
        results,
        commands=[_command(training)],
        datasets=training.datasets,
        languages=[],
        limits=FAMILIES["sent2vec" if training.ngrams else "word"].limits,
        mean_loss=training.course.mean,
    )


def write_sent2vec_card(folder: Path, name: str, training: Sent2VecRecord) -> None:
    """Write the card of an encoder into its folder, as it is before somebody evaluates or publishes it."""
    card = encoder_card(sent2vec_values(name, folder, training))
    (folder / "README.md").write_text(card, encoding="utf8")


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
