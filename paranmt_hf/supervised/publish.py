"""Publish models for a task: the encoder, its head, and a card with the figures of the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paranmt_hf.encoders.model_folder import code_files
from paranmt_hf.hub.cards import render
from paranmt_hf.hub.licenses import License
from paranmt_hf.hub.publish import About, Kind, PublishPlan
from paranmt_hf.supervised.config import CONFIG_FILE, HEAD_FOLDER, WEIGHTS_FILE, SupervisedRecord, figure_rows
from paranmt_hf.supervised.model import SupervisedModel
from paranmt_hf.training.publish import belongs_to_an_encoder, encoder_files
from paranmt_hf.util.tables import markdown_table

# Files that a model for a task has besides those of its encoder.
TASK_FILES = (SupervisedRecord.FILE, f"{HEAD_FOLDER}/{CONFIG_FILE}", f"{HEAD_FOLDER}/{WEIGHTS_FILE}")


def _plan(folder: Path, about: About, results: Sequence[Any]) -> PublishPlan:
    """Plan the publication of the model in a folder: its files, its card, and what is still missing."""
    record, head = SupervisedRecord.read(folder), SupervisedModel.from_pretrained(folder).head.config
    about, task = about.required(), record.settings.training.task

    def values(repository: str) -> dict[str, Any]:
        said = {**dict.fromkeys(("summary", "data", "license_text", "commands")), **about.values}
        shown = {"name": repository.split("/")[1], "repository": repository, "notes": about.notes}
        return {**said, **shown, "record": record.to_json(), "sides": head.sides, "scores": head.values is not None}

    return PublishPlan(
        {**encoder_files(folder), **{path: folder / path for path in TASK_FILES}},
        lambda repository: supervised_card(values(repository)),
        "",
        f"Model for {task} {folder.resolve().name}",
        [] if about.summary else ["your own words on the summary: 'summary' in --about FILE"],
        values=values,
    )


def supervised_card(values: Mapping[str, Any]) -> str:
    """Render the card of a model for a task.

    Args:
        values: Values of the template, as `values` of a `PublishPlan` gives them.
    """
    record = values["record"]
    license, figures = License.parse(values["license"], listed=False), record["figures"]
    header = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity" if values["scores"] else "text-classification",
        "language": ["en"],
        **license.header,
        "tags": ["sentence-transformers", "paranmt", record["settings"]["training"]["task"]],
        **({"datasets": list(values["datasets"])} if values.get("datasets") else {}),
    }
    table = markdown_table(["part", "items", *figures["test"]], figure_rows(figures, record["items"]))
    return render("supervised", header, {**values, "license": license, "figures": table})


SUPERVISED = Kind(
    "a model for a task",
    "model",
    "SupervisedModel.from_pretrained",
    owns=lambda path: path in TASK_FILES or belongs_to_an_encoder(path),
    plan=_plan,
    code=code_files,
    copy=lambda folder, other: SupervisedModel.from_pretrained(folder).save_pretrained(other),
)
