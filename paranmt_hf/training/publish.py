"""Publish encoders; folder, record, results and published files must belong to the same model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paranmt_hf.encoders.model_folder import MODULE_FILES, PREFIX, code_files
from paranmt_hf.encoders.pushing import LOADER, MadeRecord
from paranmt_hf.errors import InputError
from paranmt_hf.evaluation.results import Results, all_results
from paranmt_hf.hub.publish import KINDS, About, Kind, PublishPlan, files_of, kind_of
from paranmt_hf.hub.repository import CALIBRATION_FILE, Model, files_checksum, weights_checksum
from paranmt_hf.hub.upload import Content
from paranmt_hf.training.card import (
    distill_commands,
    encoder_card,
    encoder_values,
    eval_results,
    folder_card,
    made_values,
    trained_values,
    write_model_card,
)
from paranmt_hf.training.record import (
    CALIBRATION_PICTURE,
    DISTILLATION_FILE,
    TRAINING_PICTURE,
    TrainingRecord,
)
from paranmt_hf.util.records import Record

if TYPE_CHECKING:
    from paranmt_hf.encoders.sentence_encoder import SentenceEncoder

RESULTS_FILE = ".eval_results/sts.yaml"
# Files of a published encoder besides those of its modules.
_OF_MODELS = {
    "modules.json",
    "config_sentence_transformers.json",
    TRAINING_PICTURE,
    CALIBRATION_PICTURE,
    CALIBRATION_FILE,
    DISTILLATION_FILE,
    *KINDS,
}


def belongs_to_an_encoder(path: str) -> bool:
    """Whether a file of a repository belongs to a published encoder."""
    return path == RESULTS_FILE or _is_model_file(path) or bool(re.fullmatch(r"paranmt_\w+\.py", path))


def _is_model_file(path: str) -> bool:
    """Whether a file belongs to a published encoder; its code and results do not count here."""
    return path in _OF_MODELS or bool(MODULE_FILES.fullmatch(path))


def _plan(
    folder: Path,
    about: About,
    results: Sequence[Any],
    *,
    kind: type[Record],
    own_values: Callable[[Any, Path], dict[str, Any]],
    wanted: Sequence[str],
) -> PublishPlan:
    """Check the folder of an encoder, and plan its publication; other arguments as in `encoder_kind`.

    Args:
        folder: The folder.
        about: Information by its authors.
        results: Results on STS, or files of them.
        kind: The record of such encoders.
        own_values: Values of the card.
        wanted: Fields of `about` without which the card lacks something.
    """
    from paranmt_hf.encoders.loading import load

    record: Any = kind.read(folder)
    encoder = load(folder, device="cpu")
    dimension = encoder.get_embedding_dimension()
    if dimension != record.dimension:
        raise InputError(
            f"{folder} gives vectors of {dimension} dimensions, its record says {record.dimension}; they do not "
            "belong together",
            path=folder,
        )
    own = own_values(record, folder)
    about = about.required(own.get("license"))
    figures = results_of_weights(results, folder) if results else []
    files = encoder_files(folder)
    if (entries := eval_results(figures[0] if figures else None)) is not None:
        files[RESULTS_FILE] = entries.encode()

    @cache
    def values(repository: str) -> dict[str, Any]:
        found = encoder_values(own, repository.split("/")[1], folder, about, figures)
        return {**found, "repository": repository}

    missing = []
    if not figures:
        missing.append("results: paranmt evaluate sts FOLDER --data STS --speed --json FILE, then --results FILE")
    from_others = getattr(record, "mean_of", None) or "init_from" in getattr(record, "inputs", ())
    if from_others and not (about.commands or distill_commands(folder)):
        missing.append("the commands of the models it came from: 'commands' in --about FILE")
    for name in wanted:
        if not getattr(about, name):
            missing.append(f"your own words on the {name.replace('_', ' ')}: {name!r} in --about FILE")
    return PublishPlan(
        files,
        lambda repository: encoder_card(values(repository)),
        folder_card(folder, folder.resolve().name, own),
        f"Encoder {folder.resolve().name}",
        missing,
        verify=partial(_verify, folder, encoder),
        values=values,
    )


def _verify(folder: Path, encoder: SentenceEncoder, staged: Path) -> None:
    """Check that the files to publish make the same encoder as the folder.

    Args:
        folder: Folder of the encoder.
        encoder: The encoder that was loaded from it.
        staged: Folder of the files to publish.

    Raises:
        InputError: They give other vectors, or the calibration is also of files that are not published.
    """
    from paranmt_hf.encoders.loading import load

    if encoder.calibration is not None and files_checksum(staged) != files_checksum(folder):
        raise InputError(
            f"{folder} has files that are not published, and its calibration is of them too; put them elsewhere and "
            "calibrate the encoder again",
            path=folder,
        )
    probe = ["A man is playing a guitar.", "Isn't it 3.5 km to the town?", ""]
    # The staged files are links to files of the folder, which were checked when it was loaded.
    vectors = load(Model(folder.name, staged, ""), device="cpu").encode(probe, show_progress_bar=False)
    expected = encoder.encode(probe, show_progress_bar=False)
    if not np.array_equal(vectors, expected) or not np.isfinite(vectors).all():
        raise InputError(
            f"{folder} gives vectors that differ from those of its published files; train or copy it again",
            path=folder,
        )


def rewrite_card(folder: Path, name: str) -> None:
    """Write the card of an encoder again, if this package wrote it."""
    kind = kind_of(folder)
    if kind is not None and kind.rewrite_card is not None:
        kind.rewrite_card(folder, name)


def encoder_files(folder: Path) -> dict[str, Content]:
    """Return the files of an encoder to publish, by their paths, with the code that it needs without this package.

    The code is that of this version, which has loaded the model, not the code in the folder.
    """
    files: dict[str, Content] = {path: folder / path for path in files_of(folder) if _is_model_file(path)}
    kinds = [entry["type"] for entry in json.loads((folder / "modules.json").read_text(encoding="utf8"))]
    if any(kind.startswith(PREFIX) for kind in kinds):
        files |= {name: code.encode() for name, code in code_files().items()}
    return files


def results_of_weights(results: Sequence[Any], folder: Path) -> list[Results]:
    """Select the results on STS that were measured with the weights in a folder.

    Args:
        results: Results, or files of them; of several for the same weights the last ones count.
        folder: Folder of the encoder.

    Returns:
        The results of the encoder, then those of copies stored in other precisions.

    Raises:
        InputError: There are none of these weights.
    """
    weights = weights_checksum(folder)
    matching = [each for each in all_results(results) if each.weights == weights and each.kind == "sts"]
    last = {each.settings.get("stored"): each for each in matching}
    if None not in last:
        raise InputError(
            f"the results have none on STS of the weights in {folder}; evaluate them: paranmt evaluate sts {folder} "
            "--data STS --speed --json FILE",
            option="results",
        )
    return [last.pop(None), *last.values()]


def encoder_kind(
    title: str,
    record: type[Record],
    own_values: Callable[[Any, Path], dict[str, Any]],
    wanted: tuple[str, ...] = ("summary", "data", "license_text"),
) -> Kind:
    """Describe a way to make encoders, for publishing.

    Args:
        title: Name of such an encoder in sentences: `an encoder`.
        record: Its record.
        own_values: Values of its card, of the record and the folder, such as `trained_values`.
        wanted: Fields of `About` without which the card lacks something.
    """

    def write_again(folder: Path, name: str) -> None:
        write_model_card(folder, name, own_values(record.read(folder), folder))

    def copy(folder: Path, other: Path) -> None:
        from paranmt_hf.encoders.loading import load
        from paranmt_hf.encoders.saving import save

        save(load(folder, device="cpu"), other)

    return Kind(
        title,
        "model",
        LOADER,
        owns=belongs_to_an_encoder,
        plan=partial(_plan, kind=record, own_values=own_values, wanted=wanted),
        takes_results=True,
        code=code_files,
        copy=copy,
        rewrite_card=write_again,
    )


ENCODER = encoder_kind("an encoder", TrainingRecord, trained_values)
MADE = encoder_kind("an encoder made in Python", MadeRecord, made_values, ("data", "license_text"))
